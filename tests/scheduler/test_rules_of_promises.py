"""Rules behind the promises that a deliberate bug once broke unseen (tests/mutants), each told step by step."""

import msgspec
import pytest

from gpu_worker.scheduler.policy.projects import Budget, Preemption, QoS
from tests.scheduler.bench import MINUTE, SETTINGS, evicted, granted, project, slots
from tests.scheduler.quota_bench import Quotas, changed, taken

KEPT = msgspec.structs.replace(SETTINGS.qos[0], name="kept", preemption=Preemption.NEVER)


def crowded(*qos: QoS, elsewhere: str = "interactive") -> Quotas:
    """Bob of the lab and dan of the club wait for two GPUs each, that are guaranteed: all of them are too young to go.

    On the first node are an older cell that borrows, and one in quota; `elsewhere` is the class of all other cells.
    """
    pool = Quotas(
        project("lab", guaranteed_milli=2000),
        project("club", guaranteed_milli=2000),
        project("school", guaranteed_milli=1000),
        project("choir", guaranteed_milli=1000),
        qos=qos or SETTINGS.qos,
    )
    pool.join("a", slots(2))
    pool.busy("guests.eve", "choir.kim")
    pool.later(2 * MINUTE)
    pool.join("b", slots(2))
    pool.join("c", slots(2))
    pool.busy("guests.tom", "guests.jim", "guests.sue", "guests.pat", qos=elsewhere)
    assert taken(pool.ask("lab.bob", project="lab", gpus=2)) == []
    assert taken(pool.ask("club.dan", project="club", gpus=2)) == []
    return pool


# Who is covered


def test_who_is_in_quota_comes_before_whoever_of_its_project_asks_for_more() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(2))
    pool.busy("guests.eve", "guests.tom")
    assert pool.wants("lab.bob", gpus=2) == []
    assert pool.wants("lab.ann") == []
    assert granted(pool.join("b", slots(2))) == ["lab.ann:1"]
    pool.replay()


def test_who_is_in_quota_inside_a_project_comes_first_outside_it_too() -> None:
    pool = Quotas(project("school"), project("maths", "school", guaranteed_milli=1000), project("physics", "school"))
    pool.join("a", slots(2))
    pool.busy("physics.eve", "guests.tom")
    assert pool.wants("lab.ann") == []
    pool.later(20_000)
    assert pool.wants("maths.bob") == []
    assert granted(pool.free("guests.tom:1")) == ["maths.bob:1"]
    pool.replay()


def test_what_is_guaranteed_comes_although_others_wait_in_vain_for_what_is_guaranteed_to_them() -> None:
    pool = crowded()
    assert taken(pool.ask("school.ann", project="school")) == ["guests.eve:1"]
    pool.replay()


def test_who_is_in_quota_does_not_pass_one_who_has_waited_for_long() -> None:
    """What runs elsewhere is never taken back, so bob waits for who is in quota on the first node."""
    short = [msgspec.structs.replace(one, patience_ms=20_000) for one in (*SETTINGS.qos, KEPT)]
    pool = crowded(*short, elsewhere="kept")
    pool.later(20_000)
    assert taken(pool.ask("school.ann", project="school")) == []
    pool.replay()


def test_who_has_waited_for_long_and_soon_takes_back_elsewhere_keeps_nobody_from_a_node() -> None:
    pool = crowded(*(msgspec.structs.replace(one, patience_ms=20_000) for one in SETTINGS.qos))
    pool.later(20_000)
    assert taken(pool.ask("school.ann", project="school")) == ["guests.eve:1"]
    pool.replay()


def test_what_is_being_freed_for_one_is_given_to_nobody_else_who_is_in_quota() -> None:
    pool = Quotas(
        project("lab", guaranteed_milli=2000),
        project("club", guaranteed_milli=2000),
        project("school", guaranteed_milli=1000),
    )
    pool.join("a", slots(2))
    pool.busy("guests.eve")
    pool.later(2 * MINUTE)
    pool.join("b", slots(2))
    pool.join("c", slots(2))
    pool.busy("guests.tom", "guests.sue", gpus=2)
    assert taken(pool.ask("lab.bob", project="lab", gpus=2)) == ["guests.eve:1"]
    assert taken(pool.ask("club.dan", project="club", gpus=2)) == []
    assert pool.wants("school.ann") == []
    pool.replay()


def test_who_may_take_back_nothing_keeps_nobody_from_what_they_may() -> None:
    pool = Quotas(
        project("school", guaranteed_milli=2000),
        project("maths", "school"),
        project("physics", "school", guaranteed_milli=2000),
        project("lab", guaranteed_milli=2000),
    )
    pool.join("a", slots(2))
    pool.busy("maths.eve", "maths.tom")
    pool.later(2 * MINUTE)
    pool.join("b", slots(2))
    pool.busy("guests.sue", "guests.pat")
    assert taken(pool.ask("lab.bob", project="lab", gpus=2)) == []
    assert sorted(taken(pool.ask("physics.dan", project="physics", gpus=2))) == ["maths.eve:1", "maths.tom:1"]
    pool.replay()


def test_all_that_is_guaranteed_is_freed_at_once_and_borrowers_are_served_beside() -> None:
    pool = Quotas(project("lab", guaranteed_milli=5000))
    pool.join("a", slots(6))
    pool.busy(*(f"guests.{name}" for name in ("eve", "tom", "jim", "sue", "pat", "kim")))
    pool.later(2 * MINUTE)
    for name in ("ann", "bob", "cem", "dan", "fay"):
        assert len(taken(pool.ask(f"lab.{name}", project="lab"))) == 1
    running = [lease.id for lease in pool.scheduler.state.leases.values() if lease.phase.name == "BUSY"]
    assert pool.wants("others.lea") == []
    assert evicted(pool.end(running[0])) == running
    pool.replay()


def test_when_nodes_are_back_all_of_the_guarantee_is() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000), project("school", guaranteed_milli=2000))
    pool.join("a", slots(2))
    pool.join("b", slots(2))
    pool.lose("b")
    pool.join("b", slots(2))
    pool.busy("guests.eve", "guests.tom", "guests.sue", "guests.pat")
    pool.later(2 * MINUTE)
    assert len(taken(pool.ask("lab.ann", project="lab"))) == 1
    assert len(taken(pool.ask("lab.bob", project="lab"))) == 1
    pool.replay()


# What is borrowed


def test_a_guarantee_covers_first_what_may_not_be_taken_back() -> None:
    pool = Quotas(
        project("lab", guaranteed_milli=1000), project("school", guaranteed_milli=1000), qos=(*SETTINGS.qos, KEPT)
    )
    pool.join("a", slots(2))
    pool.busy("lab.eve")
    pool.busy("lab.kim", qos="kept")
    pool.later(2 * MINUTE)
    assert taken(pool.ask("school.ann", project="school")) == ["lab.eve:1"]
    pool.replay()


def test_a_guarantee_covers_a_cell_that_fits_behind_one_that_does_not() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000), project("school", guaranteed_milli=1000))
    pool.join("a", slots(4))
    pool.busy("lab.eve")
    pool.later(1000)
    pool.busy("lab.tom", gpus=2)
    pool.later(1000)
    pool.busy("lab.kim")
    pool.later(2 * MINUTE)
    assert taken(pool.ask("school.ann", project="school")) == ["lab.tom:1"]
    pool.replay()


def test_what_the_outer_projects_guarantee_covers_is_not_taken_by_those_outside() -> None:
    pool = Quotas(
        project("school", guaranteed_milli=2000), project("maths", "school"), project("lab", guaranteed_milli=1000)
    )
    pool.join("a", slots(3))
    pool.busy("guests.kim")
    pool.later(MINUTE)
    pool.busy("maths.eve", "maths.tom")
    pool.later(2 * MINUTE)
    assert taken(pool.ask("lab.ann", project="lab")) == ["guests.kim:1"]
    pool.replay()


def test_from_inside_a_department_what_its_guarantee_alone_covers_of_its_own_users_is_borrowed() -> None:
    pool = Quotas(project("school", guaranteed_milli=2000), project("maths", "school", guaranteed_milli=1000))
    pool.join("a", slots(2))
    pool.busy("school.eve", "school.tom")
    pool.later(2 * MINUTE)
    assert len(taken(pool.ask("maths.bob", project="maths"))) == 1
    pool.replay()


def test_the_cell_goes_that_leaves_its_project_least_below_its_guarantee() -> None:
    pool = Quotas(
        project("lab", guaranteed_milli=1000),
        project("club", guaranteed_milli=1000),
        project("school", guaranteed_milli=2000),
    )
    pool.join("a", slots(4))
    pool.busy("guests.eve", gpus=2)
    pool.later(MINUTE)
    pool.busy("lab.tom", gpus=2)
    pool.later(2 * MINUTE)
    assert taken(pool.ask("school.ann", project="school", gpus=2)) == ["guests.eve:1"]
    pool.replay()


def test_of_borrowed_cells_one_of_the_lowest_class_goes() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(2))
    pool.busy("guests.eve", qos="batch")
    pool.later(MINUTE)
    pool.busy("guests.tom")
    pool.later(2 * MINUTE)
    assert taken(pool.ask("lab.ann", project="lab")) == ["guests.eve:1"]
    pool.replay()


def test_no_running_cell_goes_whose_gpus_are_not_needed() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000))
    pool.join("a", slots(3))
    pool.busy("guests.eve", gpus=2)
    pool.later(MINUTE)
    pool.busy("guests.tom")
    pool.later(2 * MINUTE)
    assert taken(pool.ask("lab.ann", project="lab", gpus=2)) == ["guests.eve:1"]
    pool.replay()


# Who never borrows


def test_a_hot_session_that_never_borrows_keeps_its_part_of_the_guarantee_until_it_leaves() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(3))
    pool.busy("lab.ann", qos="reserved")
    pool.end("lab.ann:1")
    actions = pool.ask("lab.bob", project="lab", user="bob", qos="reserved")
    assert (granted(actions), evicted(actions)) == ([], ["lab.ann:1"])
    assert granted(pool.free("lab.ann:1")) == ["lab.bob:1"]
    pool.replay()


def test_a_static_quota_with_a_limit_has_the_smaller_one() -> None:
    pool = Quotas(
        project("school", limit_milli=1000, can_borrow=False),
        project("maths", "school", guaranteed_milli=1000),
        project("physics", "school", guaranteed_milli=1000),
    )
    pool.join("a", slots(3))
    pool.busy("maths.ann")
    assert pool.wants("physics.bob") == []
    assert granted(pool.free("maths.ann:1")) == ["physics.bob:1"]
    pool.replay()


def test_what_costs_nothing_runs_although_the_project_is_above_its_guarantee() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000))
    pool.join("a", slots(2) + slots(1, "cpu"))
    pool.busy("lab.ann", "lab.bob", qos="reserved")
    changed(pool, project("lab", guaranteed_milli=1000))
    assert pool.wants("lab.cem", gpus=0, qos="reserved") == ["lab.cem:1"]
    pool.replay()


# Beside the head of the line


def test_who_waits_for_running_cells_keeps_nobody_from_taking_back_on_another_node() -> None:
    pool = Quotas(project("others", priority=1))
    pool.join("a", slots(2))
    pool.busy("guests.eve", "guests.tom")
    pool.join("b", slots(2))
    pool.busy("lab.bob", "lab.cem", qos="batch")
    pool.later(2 * MINUTE)
    assert pool.wants("others.dan", gpus=2) == []
    assert len(taken(pool.ask("lab.ann", project="lab"))) == 1
    pool.replay()


def test_hot_gpus_of_other_nodes_are_used_while_a_large_request_waits() -> None:
    pool = Quotas(project("others", priority=1))
    pool.join("a", slots(2))
    pool.busy("guests.eve", "guests.tom")
    pool.join("b", slots(2))
    pool.busy("guests.pat", qos="batch")
    pool.busy("club.fay")
    pool.end("club.fay:1")
    assert pool.wants("others.dan", gpus=2) == []
    assert evicted(pool.ask("lab.ann", project="lab")) == ["club.fay:1"]
    pool.replay()


@pytest.mark.parametrize(("walltime_ms", "gone"), [(5 * MINUTE, ["club.fay:1"]), (30 * MINUTE, [])])
def test_a_hot_gpu_of_the_node_that_is_held_is_used_by_who_is_over_in_time(walltime_ms: int, gone: list[str]) -> None:
    pool = Quotas(project("others", priority=1))
    pool.join("a", slots(2))
    pool.busy("guests.eve")
    pool.busy("club.fay", walltime_ms=5 * MINUTE)
    pool.end("club.fay:1")
    assert evicted(pool.ask("others.dan", project="others", gpus=2)) == []
    assert evicted(pool.ask("lab.ann", project="lab", walltime_ms=walltime_ms)) == gone
    pool.replay()


def test_a_hot_gpu_is_used_by_who_is_over_in_time_also_behind_one_who_is_not() -> None:
    pool = Quotas(project("others", priority=1))
    pool.join("a", slots(2))
    pool.busy("guests.eve")
    pool.busy("club.fay", walltime_ms=5 * MINUTE)
    pool.end("club.fay:1")
    assert evicted(pool.ask("others.dan", project="others", gpus=2)) == []
    assert evicted(pool.ask("others.sue", project="others")) == []
    assert evicted(pool.ask("lab.ann", project="lab", walltime_ms=5 * MINUTE)) == ["club.fay:1"]
    pool.replay()


# Budgets


def test_hot_sessions_leave_for_the_budget_of_the_outer_project_one_after_the_other() -> None:
    pool = Quotas(project("club", budget=Budget(100 * MINUTE, "day")), project("choir", "club"))
    pool.join("a", slots(4))
    pool.busy("choir.ann", "choir.bob", "choir.cem")
    for name in ("ann", "bob", "cem"):
        assert pool.end(f"choir.{name}:1") == []
    actions = pool.ask("choir.dan", project="choir")
    assert (granted(actions), evicted(actions)) == ([], ["choir.ann:1"])
    assert granted(pool.free("choir.ann:1")) == ["choir.dan:1"]
    pool.replay()


def test_no_more_hot_sessions_leave_than_the_budget_does_not_reach_for() -> None:
    pool = Quotas(project("club", budget=Budget(100 * MINUTE, "day")))
    pool.join("a", slots(3))
    pool.busy("club.ann", "club.bob", "club.kim")
    pool.end("club.ann:1")
    pool.end("club.bob:1")
    assert pool.later(40 * MINUTE) == []
    assert evicted(pool.later(1)) == ["club.ann:1"]
    pool.replay()


def test_one_cell_may_ask_for_a_whole_budget() -> None:
    pool = Quotas(project("club", budget=Budget(30 * MINUTE, "day")))
    pool.join("a", slots(1))
    assert pool.wants("club.ann") == ["club.ann:1"]
    pool.replay()
