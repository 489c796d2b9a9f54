"""Quotas as admins read of them: guarantees, limits, borrowing, weights, trees. Each told step by step."""

import pytest

from bulletin.ids import LeaseId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.projects import Budget
from tests.scheduler.bench import MINUTE, evicted, granted, project, refused, slots
from tests.scheduler.quota_bench import Quotas


def test_who_is_in_quota_comes_before_who_borrows() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000), project("guests", weight=2))
    pool.join("a", slots(2))
    pool.busy("guests.eve1", "guests.eve2")
    assert pool.wants("guests.tom") == []
    assert pool.wants("lab.ann") == []
    assert pool.wants("lab.bob") == []
    assert [pool.why(f"{one}/1").in_quota for one in ("guests.tom", "lab.ann", "lab.bob")] == [False, True, True]
    assert pool.order(["guests.eve1:1", "guests.eve2:1"]) == ["lab.ann:1", "guests.tom:1"]
    assert pool.why("lab.bob/1").in_quota is False
    assert pool.why("lab.bob/1").reason == "project 'lab' uses 1 of 1 guaranteed GPU; all 2 GPUs are busy"
    pool.replay()


def test_weights_three_to_one_split_the_surplus_three_to_one() -> None:
    pool = Quotas(project("big", weight=3, guaranteed_milli=1000), project("small", guaranteed_milli=1000))
    pool.join("a", slots(6))
    pool.busy(*(f"guests.eve{n}" for n in range(6)), walltime_ms=MINUTE)
    for number in range(3):
        for user in "abc":
            assert pool.wants(f"big.{user}{number}") == pool.wants(f"small.{user}{number}") == []
    got = pool.order([f"guests.eve{n}:1" for n in range(6)])
    assert [one.partition(".")[0] for one in got].count("big") == 4
    assert [one.partition(".")[0] for one in got].count("small") == 2
    pool.replay()


def test_a_static_quota_never_borrows() -> None:
    pool = Quotas(project("static", guaranteed_milli=1000, can_borrow=False))
    pool.join("a", slots(3))
    pool.busy("static.ann")
    assert pool.wants("static.bob") == []
    assert pool.why("static.bob/1").reason == "project 'static' uses 1 of 1 GPU that it may use"
    assert pool.wants("other.eve") == ["other.eve:1"]
    assert granted(pool.free("static.ann:1")) == ["static.bob:1"]
    pool.replay()


def test_a_limit_is_for_all_in_the_project_and_what_is_inside() -> None:
    pool = Quotas(project("school", limit_milli=2000), project("maths", "school"), project("physics", "school"))
    pool.join("a", slots(4))
    pool.busy("maths.ann", "physics.bob")
    assert pool.wants("maths.cem") == []
    assert pool.why("maths.cem/1").reason == "project 'school' uses 2 of 2 GPUs that it may use"
    assert granted(pool.free("physics.bob:1")) == ["maths.cem:1"]
    pool.replay()


def test_a_hot_session_counts_for_the_limit_and_makes_room_for_its_own_project() -> None:
    pool = Quotas(project("lab", limit_milli=1000))
    pool.join("a", slots(3))
    pool.busy("lab.ann")
    pool.end("lab.ann:1")
    assert evicted(pool.ask("lab.bob", project="lab")) == ["lab.ann:1"]
    assert granted(pool.free("lab.ann:1")) == ["lab.bob:1"]
    pool.replay()


def test_the_hot_session_that_was_used_the_longest_ago_goes_first_also_after_its_agent_came_back() -> None:
    pool = Quotas(project("lab", limit_milli=2000))
    pool.join("a", slots(1))
    pool.busy("lab.ann")
    pool.end("lab.ann:1")
    pool.join("b", slots(2))
    pool.busy("lab.bob")
    pool.end("lab.bob:1")
    lease = pool.scheduler.state.leases[LeaseId("lab.ann:1")]
    report = ev.ReportedLease(
        lease.id, lease.session, lease.user, lease.project, lease.qos, lease.slots, None, MINUTE, 0
    )
    pool.join("a", slots(1), report)
    assert evicted(pool.ask("lab.cem", project="lab")) == ["lab.ann:1"]
    pool.replay()


def test_a_limit_is_kept_for_a_cell_for_four_that_has_waited_for_its_patience() -> None:
    pool = Quotas(project("lab", limit_milli=4000))
    pool.join("a", slots(4))
    pool.join("b", slots(1))
    pool.busy("guests.eve", gpus=2)
    assert pool.wants("lab.ann", gpus=4) == []
    assert pool.wants("lab.bob") == ["lab.bob:1"]
    pool.later(60 * MINUTE)
    pool.free("lab.bob:1")
    assert pool.wants("lab.cem") == []
    assert pool.order(["guests.eve:1", "lab.ann:1"]) == ["lab.ann:1", "lab.cem:1"]
    pool.replay()


def test_one_user_may_not_take_all_that_the_project_has() -> None:
    pool = Quotas(project("lab", guaranteed_milli=4000, user_limit_milli=1000))
    pool.join("a", slots(4))
    pool.busy("lab.ann1")
    assert pool.wants("lab.ann2") == []
    assert pool.why("lab.ann2/1").reason == "you use 1 of 1 GPU that one user of project 'lab' may use"
    assert pool.wants("lab.bob") == ["lab.bob:1"]
    pool.replay()


def test_inside_a_project_its_parts_are_guaranteed_theirs() -> None:
    pool = Quotas(
        project("school", guaranteed_milli=3000),
        project("maths", "school", guaranteed_milli=1000),
        project("physics", "school"),
    )
    pool.join("a", slots(3))
    pool.busy("physics.ann", "physics.bob", "physics.cem")
    assert pool.wants("physics.dan") == pool.wants("maths.eve") == []
    assert granted(pool.free("physics.ann:1")) == ["maths.eve:1"]
    pool.replay()


def test_the_higher_project_takes_of_the_surplus_first() -> None:
    pool = Quotas(project("urgent", priority=1), project("lab", weight=9))
    pool.join("a", slots(1))
    pool.busy("guests.eve")
    assert pool.wants("lab.ann") == pool.wants("urgent.bob") == []
    assert granted(pool.free("guests.eve:1")) == ["urgent.bob:1"]
    pool.replay()


def test_who_never_borrows_is_told_that_more_is_guaranteed_than_there_is() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000), project("course", guaranteed_milli=4000))
    pool.join("a", slots(4))
    assert pool.wants("lab.bob", qos="reserved") == []
    assert pool.why("lab.bob/1").reason == (
        "QoS 'reserved' never borrows, and more is guaranteed than there is now: "
        "of 1 GPU of project 'lab' there are 0.8 GPUs"
    )


def test_a_qos_that_never_borrows_waits_for_the_guarantee() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(3))
    pool.busy("lab.ann")
    assert pool.wants("lab.bob", qos="reserved") == []
    assert pool.why("lab.bob/1").reason == (
        "QoS 'reserved' never borrows, and the guarantee of project 'lab' is in use"
    )
    assert granted(pool.free("lab.ann:1")) == ["lab.bob:1"]
    pool.start("lab.bob:1")
    assert pool.wants("lab.bob2", qos="reserved") == []
    assert pool.why("lab.bob2/1").reason.startswith("project 'lab'") is False
    pool.replay()


def test_a_qos_may_allow_a_user_one_at_a_time_in_all_projects() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000), project("course", guaranteed_milli=2000))
    pool.join("a", slots(4))
    pool.busy("lab.ann", qos="reserved")
    assert pool.wants("course.ann", qos="reserved") == []
    assert pool.why("course.ann/1").reason == "a cell of yours runs in QoS 'reserved', which is all that it allows"
    assert pool.wants("course.bob", qos="reserved") == ["course.bob:1"]
    assert granted(pool.free("lab.ann:1")) == ["course.ann:1"]
    pool.replay()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"gpus": 2}, "2 GPUs were asked for, and project 'lab' may use 1.5 GPUs at most. Ask for fewer with --gpus"),
        ({"gpus": 1, "qos": "reserved"}, "1 GPU was asked for in QoS 'reserved', which never borrows, and project"),
    ],
)  # fmt: skip
def test_what_a_project_may_never_have_is_refused_at_once(asked: dict[str, object], sentence: str) -> None:
    pool = Quotas(project("lab", guaranteed_milli=500, limit_milli=1500))
    pool.join("a", slots(4))
    said = refused(pool.ask("lab.ann", project="lab", **asked))["lab.ann/1"]  # type: ignore[arg-type]
    assert said.startswith(sentence)
    pool.replay()


def test_cpu_cells_cost_nothing_in_a_pool_with_gpus() -> None:
    pool = Quotas(project("lab", limit_milli=1000))
    pool.join("a", slots(1) + slots(3, "cpu"))
    pool.busy("lab.ann")
    assert pool.wants("lab.bob", gpus=0) == ["lab.bob:1"]
    pool.replay()


def test_cpu_slots_count_as_gpus_until_the_pool_shows_one() -> None:
    pool = Quotas(project("lab", limit_milli=1000))
    pool.join("a", slots(2, "cpu"))
    pool.busy("lab.ann")
    assert pool.wants("lab.bob") == []
    assert pool.why("lab.bob/1").reason == "project 'lab' uses 1 of 1 CPU slot that it may use"
    assert granted(pool.join("b", slots(1))) == ["lab.bob:1"]
    pool.replay()


def test_a_cell_that_no_connected_node_can_hold_takes_nothing_of_its_projects_limit() -> None:
    pool = Quotas(project("lab", limit_milli=2000))
    pool.join("a", slots(2))
    pool.join("b", slots(1))
    assert pool.lose("a") == []
    assert pool.wants("lab.ann", gpus=2) == []
    assert pool.wants("lab.bob") == ["lab.bob:1"]
    assert pool.wants("lab.cem") == []
    pool.free("lab.bob:1")
    pool.start("lab.cem:1")
    assert pool.wants("lab.dan") == []
    assert granted(pool.free("lab.cem:1")) == ["lab.dan:1"]
    assert granted(pool.join("a", slots(2))) == []
    assert granted(pool.free("lab.dan:1")) == ["lab.ann:1"]
    pool.replay()


def test_a_pool_that_has_shown_no_slot_yet_names_no_kind_of_slot() -> None:
    pool = Quotas(project("lab", limit_milli=1000), project("club", budget=Budget(MINUTE, "week")))
    too_many = "2 slots were asked for, and project 'lab' may use 1 slot at most."
    assert too_many in refused(pool.ask("ann", gpus=2, project="lab"))["ann/1"]
    too_long = "1 slot for 30 min is more than the 1 slot-minute that project 'club' has each week."
    assert too_long in refused(pool.ask("bob", project="club"))["bob/1"]
    pool.join("a", slots(2))
    assert "2 GPUs were asked for" in refused(pool.ask("ann", n=2, gpus=2, project="lab"))["ann/2"]
    pool.replay()
