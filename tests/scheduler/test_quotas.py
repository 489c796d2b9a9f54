"""Quotas as admins read of them: guarantees, limits, borrowing, weights, trees. Each told step by step."""

import msgspec
import pytest

from bulletin.ids import LeaseId, ProjectId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Grant
from gpu_worker.scheduler.policy.projects import Budget
from tests.scheduler.bench import MINUTE, SETTINGS, evicted, granted, project, refused, slots
from tests.scheduler.quota_bench import Quotas, changed


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


def test_a_user_with_many_requests_does_not_delay_another_users_one() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    pool.busy("course.ann0")
    for number in range(1, 4):
        assert pool.wants(f"course.ann{number}") == []
    assert pool.wants("course.bob") == []
    assert pool.why("course.bob/1").position == 1
    assert granted(pool.free("course.ann0:1")) == ["course.bob:1"]
    pool.replay()


def test_who_used_less_before_comes_first() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    for user, minutes in (("ann", 20), ("bob", 5)):
        pool.busy(f"course.{user}")
        pool.later(minutes * MINUTE)
        pool.free(f"course.{user}:1")
    pool.busy("course.cem")
    assert pool.wants("course.ann", n=2) == pool.wants("course.bob", n=2) == []
    assert granted(pool.free("course.cem:1")) == ["course.bob:2"]
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


def test_use_that_a_ledger_recalls_counts_by_its_age() -> None:
    pool = Quotas()
    for user, minutes in (("ann", 30), ("bob", 20)):
        past = ev.PastUse(ProjectId("course"), UserName(user), 1000 * minutes * MINUTE)
        assert pool.say(ev.UseRecalled((past,))) == []
        pool.later(7 * 24 * 60 * MINUTE)  # what ann used counts for half of it
    pool.join("a", slots(1))
    pool.busy("course.cem")
    assert pool.wants("course.bob") == pool.wants("course.ann") == []
    assert granted(pool.free("course.cem:1")) == ["course.ann:1"]
    pool.replay()


def test_what_a_ledger_recalls_of_a_budget_is_spent() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "day")))
    pool.join("a", slots(3))
    pool.say(ev.UseRecalled((), {ProjectId("club"): 1000 * 40 * MINUTE}))
    pool.busy("club.ann", walltime_ms=20 * MINUTE)
    assert pool.wants("club.bob") == []
    assert pool.why("club.bob/1").reason == (
        "what runs may use all that is left of the 1 GPU-hour of this day in project 'club'; "
        "the next one begins in 24 h, and `%gpu request --budget HOURS` asks for more of this one"
    )
    pool.replay()


def test_what_is_refunded_may_be_spent_at_once_and_is_no_past_use() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "day")), project("choir", "club"))
    pool.join("a", slots(1))
    pool.busy("choir.ann")
    pool.later(60 * MINUTE)
    pool.free("choir.ann:1")
    assert pool.wants("choir.bob") == []
    used = ev.PastUse(ProjectId("choir"), UserName("ann"), 1000 * 45 * MINUTE)
    refund = ev.UseRefunded((used,), {ProjectId("club"): 1000 * 45 * MINUTE})
    assert granted(pool.say(refund)) == ["choir.bob:1"]
    pool.start("choir.bob:1")
    accounts = pool.scheduler.state.accounts
    users = accounts.of(ProjectId("choir")).users
    for history in (users[UserName("ann")].history, *(accounts.of(ProjectId(p)).history for p in ("choir", "club"))):
        assert history.at(pool.now_ms) // (1000 * MINUTE) == 15
    pool.free("choir.bob:1")
    pool.later(15 * MINUTE)
    assert accounts.of(ProjectId("club")).left(pool.now_ms) == 1000 * 45 * MINUTE
    pool.replay()


def test_no_more_is_refunded_than_was_used() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "day")))
    pool.join("a", slots(1))
    pool.busy("club.ann")
    pool.later(10 * MINUTE)
    pool.free("club.ann:1")
    pool.later(24 * 60 * MINUTE)
    pool.busy("club.bob")
    pool.later(MINUTE)
    pool.free("club.bob:1")
    lost = ev.PastUse(ProjectId("club"), UserName("ann"), 1000 * 20 * MINUTE)
    pool.say(ev.UseRefunded((lost,), {ProjectId("club"): 1000 * 20 * MINUTE}))
    club = pool.scheduler.state.accounts.of(ProjectId("club"))
    assert club.left(pool.now_ms) == 1000 * 60 * MINUTE
    assert club.users[UserName("ann")].history.amount == 0
    assert club.history.amount == club.users[UserName("bob")].history.amount > 0
    pool.replay()


def test_a_budget_that_is_spent_waits_for_the_next_period() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "day")))
    pool.join("a", slots(3))
    pool.busy("club.ann", "club.bob")
    pool.later(30 * MINUTE)
    assert pool.wants("club.cem") == []
    assert pool.why("club.cem/1").reason == (
        "project 'club' has used the 1 GPU-hour of this day; the next one begins in 23 h, "
        "and `%gpu request --budget HOURS` asks for more of this one"
    )
    assert evicted(pool.end("club.ann:1")) == ["club.ann:1"]
    assert pool.free("club.ann:1") == []
    assert pool.order(["club.bob:1"]) == []
    assert granted(pool.later(23 * 60 * MINUTE + 30 * MINUTE)) == ["club.cem:1"]
    pool.replay()


def test_who_waits_for_one_of_several_budgets_reads_which_one_to_ask_for() -> None:
    of_day = Budget(60 * MINUTE, "day")
    pool = Quotas(project("our club", budget=of_day), project("choir", "our club", budget=Budget(120 * MINUTE, "day")))
    pool.join("a", slots(3))
    pool.busy("choir.ann", "choir.bob")
    pool.later(30 * MINUTE)
    assert pool.wants("choir.cem") == []
    assert "`%gpu request --budget HOURS --budget-of 'our club'`" in pool.why("choir.cem/1").reason


def test_a_cell_starts_only_if_the_budget_can_finish_it() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "week")))
    pool.join("a", slots(3))
    pool.busy("club.ann", "club.bob")
    pool.later(10 * MINUTE)
    assert evicted(pool.end("club.ann:1")) == ["club.ann:1"], "its next cell would not fit"
    pool.free("club.ann:1")
    assert pool.wants("club.cem") == []
    assert pool.why("club.cem/1").reason == (
        "the 1 GPU-hour of this week in project 'club' is enough for 20 min of such a cell beside what runs, "
        "and yours may take 30 min: ask for less with --time; the next one begins in 3.9 days, "
        "and `%gpu request --budget HOURS` asks for more of this one"
    )
    assert granted(pool.ask("club.dan", project="club", walltime_ms=15 * MINUTE)) == ["club.dan:1"]
    pool.replay()


def test_more_time_than_the_whole_budget_is_refused_with_what_would_fit() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "week")))
    pool.join("a", slots(4))
    said = refused(pool.ask("club.ann", project="club", gpus=4))["club.ann/1"]
    assert said == (
        "4 GPUs for 30 min is more than the 1 GPU-hour that project 'club' has each week. "
        "Ask for 15 min or less with --time."
    )
    pool.replay()


def test_a_budget_of_nothing_is_refused_at_once() -> None:
    pool = Quotas(project("club", budget=Budget(0, "week")))
    pool.join("a", slots(3))
    assert refused(pool.ask("club.ann", project="club"))["club.ann/1"].endswith(
        "project 'club' may use 0 GPUs at most. Choose another project with --project."
    )
    pool.replay()


def test_new_quotas_hold_at_once_for_who_waits() -> None:
    pool = Quotas(project("lab", limit_milli=1000))
    pool.join("a", slots(3))
    pool.busy("lab.ann")
    assert pool.wants("lab.bob") == pool.wants("lab.cem") == []
    assert granted(changed(pool, project("lab", limit_milli=2000))) == ["lab.bob:1"]
    assert changed(pool, project("lab", limit_milli=1000)) == []
    assert pool.free("lab.ann:1") == []
    assert granted(pool.free("lab.bob:1")) == ["lab.cem:1"]
    pool.replay()


def test_what_can_never_run_under_new_quotas_is_refused_with_its_reason() -> None:
    pool = Quotas()
    pool.join("a", slots(2))
    pool.busy("lab.ann", "lab.bob")
    pool.wants("lab.cem", gpus=2)
    pool.wants("lab.dan", qos="batch")
    pool.wants("lab.eve", walltime_ms=20 * MINUTE)
    quick = (msgspec.structs.replace(SETTINGS.qos[0], walltime_ms=10 * MINUTE),)
    said = refused(changed(pool, project("lab", limit_milli=1000), qos=quick))
    assert said["lab.cem/1"].startswith("2 GPUs were asked for, and project 'lab' may use 1 GPU at most.")
    assert said["lab.dan/1"].startswith("there is no QoS 'batch' in this pool.")
    assert said["lab.eve/1"].startswith("a walltime of 20 min is more than the 10 min that QoS 'interactive' gives.")
    pool.replay()


def test_a_waiting_cell_that_asked_for_no_walltime_gets_that_of_the_new_settings() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    pool.busy("lab.ann")
    pool.wants("lab.bob")
    changed(pool, qos=(msgspec.structs.replace(SETTINGS.qos[0], walltime_ms=10 * MINUTE),))
    grant = pool.free("lab.ann:1")[0]
    assert isinstance(grant, Grant)
    assert grant.walltime_ms == 10 * MINUTE
    pool.replay()


def test_what_was_used_before_is_known_after_a_change() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "day")))
    pool.join("a", slots(1))
    pool.busy("club.ann")
    pool.later(60 * MINUTE)
    changed(pool, project("club", budget=Budget(90 * MINUTE, "day")))
    assert pool.wants("club.bob") == []
    assert pool.why("club.bob/1").reason == "the only GPU is busy"
    pool.later(30 * MINUTE)
    assert pool.free("club.ann:1") == []
    assert pool.why("club.bob/1").reason.startswith("project 'club' has used the 1.5 GPU-hours of this day")
    pool.replay()


def test_what_runs_has_spent_of_the_budget_of_what_its_project_is_in_for_as_long_as_it_is_there() -> None:
    def left() -> int | None:
        return pool.scheduler.state.accounts.of(ProjectId("dep")).left(pool.now_ms)

    dep = project("dep", budget=Budget(60 * MINUTE, "day"))
    pool = Quotas(dep, project("club"))
    pool.join("a", slots(2))
    pool.busy("club.ann")
    pool.later(20 * MINUTE)
    lefts = []
    for parent in ("dep", None, "dep"):
        changed(pool, dep, project("club", parent=parent))
        pool.later(5 * MINUTE)
        lefts.append(left())
    assert lefts == [1000 * minutes * MINUTE for minutes in (35, 60, 25)]
    pool.free("club.ann:1")
    assert left() == 1000 * 25 * MINUTE
    pool.replay()


@pytest.mark.parametrize("before", [None, Budget(600 * MINUTE, "week")], ids=["no budget", "one of another period"])
def test_of_a_new_budget_what_runs_has_spent_since_the_period_began(before: Budget | None) -> None:
    pool = Quotas(project("dep", budget=before), project("club", parent="dep"))
    pool.join("a", slots(2))
    pool.later(24 * 60 * MINUTE - 10 * MINUTE)
    pool.busy("club.ann")
    pool.later(30 * MINUTE)  # over midnight
    changed(pool, project("dep", budget=Budget(60 * MINUTE, "day")), project("club", parent="dep"))
    left = pool.scheduler.state.accounts.of(ProjectId("dep")).left(pool.now_ms)
    assert left == 1000 * 40 * MINUTE
    pool.later(5 * MINUTE)
    pool.free("club.ann:1")
    left = pool.scheduler.state.accounts.of(ProjectId("dep")).left(pool.now_ms)
    assert left == 1000 * 35 * MINUTE
    pool.replay()


def test_of_projects_that_are_no_more_those_stay_known_that_somebody_used() -> None:
    names = [f"club-{number}" for number in range(50)]
    pool = Quotas(project("club"), *(project(name, parent="club") for name in names))
    pool.join("a", slots(1))
    pool.busy("club-7.ann")
    pool.later(MINUTE)
    changed(pool, project("club"))
    assert set(pool.scheduler.state.accounts.by_id) == {"club", "club-7"}
    assert pool.free("club-7.ann:1") == []
    pool.replay()


def test_who_used_much_is_put_back_but_not_for_ever() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    pool.busy("course.ann")
    pool.later(20 * 60 * MINUTE)
    pool.free("course.ann:1")
    pool.busy("course.bob")
    assert pool.wants("course.ann", n=2) == []
    pool.later(5 * MINUTE)
    assert pool.wants("course.cem") == []
    pool.later(6 * MINUTE)
    assert pool.wants("course.dan") == []
    assert pool.order(["course.bob:1", "course.cem:1", "course.ann:2"]) == [
        "course.cem:1", "course.ann:2", "course.dan:1",
    ]  # fmt: skip
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
