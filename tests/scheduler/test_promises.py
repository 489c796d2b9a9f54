"""Promises that a deliberate bug once broke unseen (tests/mutants), each told step by step."""

import msgspec

from bulletin.ids import ProjectId
from gpu_worker.scheduler.policy.projects import Budget
from tests.scheduler.bench import MINUTE, SETTINGS, evicted, granted, project, reclaimed, slots
from tests.scheduler.quota_bench import Quotas, changed, lent

HOUR = 60 * MINUTE


# Budgets


def test_what_runs_over_midnight_is_spent_in_the_new_day_from_its_first_moment() -> None:
    pool = Quotas(project("club", budget=Budget(HOUR, "day")))
    pool.join("a", slots(2))
    pool.later(23 * HOUR + 30 * MINUTE)
    pool.busy("club.ann")
    pool.later(90 * MINUTE)
    assert pool.wants("club.bob") == []
    assert pool.why("club.bob/1").reason.startswith("project 'club' has used the 1 GPU-hour of this day")
    pool.replay()


def test_a_hot_session_spends_no_budget_and_leaves_where_another_cell_of_it_would_be_too_much() -> None:
    pool = Quotas(project("club", budget=Budget(HOUR, "day")))
    pool.join("a", slots(3))
    pool.busy("club.ann", "club.bob")
    pool.later(10 * MINUTE)
    assert evicted(pool.end("club.ann:1")) == ["club.ann:1"], "10 min are spent, bob may use 20: another 30 would be 60"
    pool.free("club.ann:1")
    assert pool.wants("club.cem") == []
    pool.later(5 * MINUTE)
    pool.free("club.bob:1")
    assert granted(pool.ask("club.dan", project="club", walltime_ms=20 * MINUTE)) == []
    pool.replay()


def test_a_budget_is_for_all_that_is_inside_the_project() -> None:
    pool = Quotas(project("club", budget=Budget(HOUR, "day")), project("choir", "club"), project("band", "club"))
    pool.join("a", slots(3))
    pool.busy("choir.ann")
    pool.later(HOUR)
    assert pool.wants("band.bob") == []
    assert granted(changed(pool, project("club"), project("choir", "club"), project("band", "club"))) == ["band.bob:1"]
    pool.replay()


def test_a_cell_that_ends_has_spent_of_every_budget_that_it_is_in() -> None:
    pool = Quotas(project("club", budget=Budget(HOUR, "day")), project("choir", "club"))
    pool.join("a", slots(1))
    pool.busy("choir.ann")
    pool.now_ms += HOUR
    assert evicted(pool.end("choir.ann:1")) == ["choir.ann:1"], "its next cell would be above the budget"
    pool.replay()


def test_a_cell_that_costs_nothing_needs_no_budget() -> None:
    pool = Quotas(project("club", budget=Budget(HOUR, "day")))
    pool.join("a", slots(2) + slots(1, "cpu"))
    pool.busy("club.ann")
    pool.later(HOUR)
    assert pool.wants("club.bob") == []
    assert pool.wants("club.cem", gpus=0) == ["club.cem:1"]
    pool.replay()


# Limits


def test_nobody_hot_goes_for_a_limit_that_running_cells_keep_full() -> None:
    school = (project("school", limit_milli=2000), project("maths", "school"), project("physics", "school"))
    for projects, hot in (((project("lab", user_limit_milli=2000),), "lab.ann"), (school, "physics.eve")):
        name = projects[-1].id if len(projects) == 1 else "maths"
        pool = Quotas(*projects)
        pool.join("a", slots(4))
        pool.busy(f"{name}.ann2", hot)
        pool.end(f"{hot}:1")
        assert pool.ask(f"{name}.ann3", project=name, user="ann", gpus=2) == []
        assert evicted(pool.end(f"{name}.ann2:1")) == [f"{hot}:1", f"{name}.ann2:1"]
        pool.replay()


def test_no_more_hot_sessions_go_for_a_limit_than_it_takes() -> None:
    pool = Quotas(project("lab", limit_milli=2000))
    pool.join("a", slots(3))
    pool.busy("lab.ann", "lab.bob")
    pool.end("lab.ann:1")
    pool.end("lab.bob:1")
    assert evicted(pool.ask("lab.cem", project="lab")) == ["lab.ann:1"]
    assert pool.later(1_000) == []
    pool.replay()


def test_who_may_have_no_more_stands_in_nobodys_way() -> None:
    pool = Quotas(project("course", guaranteed_milli=1000), project("lab", guaranteed_milli=1000))
    pool.join("a", slots(3))
    pool.busy("course.ann", qos="reserved")
    assert pool.wants("lab.ann", qos="reserved") == []
    pool.later(MINUTE)
    assert pool.wants("lab.bob", qos="reserved") == ["lab.bob:1"]
    pool.replay()


# Guarantees, shares and order


def test_a_qos_that_never_borrows_is_within_every_guarantee_that_it_is_in() -> None:
    pool = Quotas(project("school", guaranteed_milli=1000), project("maths", "school"))
    pool.join("a", slots(3))
    pool.busy("school.ann")
    assert pool.wants("maths.bob", qos="reserved") == []
    assert granted(pool.free("school.ann:1")) == ["maths.bob:1"]
    pool.replay()


def test_among_equals_the_project_that_used_less_before_comes_first() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    pool.busy("lab.ann")
    pool.later(20 * MINUTE)
    pool.free("lab.ann:1")
    pool.busy("guests.eve")
    assert pool.wants("lab.bob") == []
    pool.later(MINUTE)
    assert pool.wants("club.cem") == []
    assert pool.order(["guests.eve:1", "club.cem:1"]) == ["club.cem:1", "lab.bob:1"]
    pool.replay()


def test_what_a_part_used_is_in_the_past_of_the_project_that_it_is_in() -> None:
    pool = Quotas(project("school"), project("maths", "school"), project("physics", "school"))
    pool.join("a", slots(1))
    pool.busy("maths.ann")
    pool.later(20 * MINUTE)
    pool.free("maths.ann:1")
    pool.busy("guests.eve")
    assert pool.wants("physics.bob") == []
    pool.later(MINUTE)
    assert pool.wants("club.cem") == []
    assert pool.order(["guests.eve:1", "club.cem:1"]) == ["club.cem:1", "physics.bob:1"]
    pool.replay()


def test_the_users_of_a_project_stand_beside_its_parts_with_their_own_use_alone() -> None:
    pool = Quotas(project("school"), project("maths", "school"), project("physics", "school"))
    pool.join("a", slots(4))
    pool.busy("maths.ann", "maths.bob", "physics.cem", "guests.eve")
    assert pool.wants("physics.dan") == []
    pool.later(MINUTE)
    assert pool.wants("school.fay") == []
    assert pool.order(["guests.eve:1", "school.fay:1"]) == ["school.fay:1", "physics.dan:1"]
    pool.replay()


def test_the_usage_factor_of_a_qos_says_how_much_of_its_use_counts() -> None:
    free = msgspec.structs.replace(SETTINGS.qos[1], usage_percent=0, priority=2)
    pool = Quotas(qos=(SETTINGS.qos[0], free))
    pool.join("a", slots(1))
    for session, qos, minutes in (("lab.ann", "batch", 90), ("club.bob", "interactive", 20)):
        pool.busy(session, qos=qos)
        pool.later(minutes * MINUTE)
        pool.free(f"{session}:1")
    pool.busy("guests.eve")
    assert pool.wants("club.cem") == pool.wants("lab.dan") == []
    assert granted(pool.free("guests.eve:1")) == ["lab.dan:1"]
    pool.replay()


def test_what_a_user_used_is_known_after_a_change() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    pool.busy("course.ann")
    pool.later(10 * HOUR)
    pool.free("course.ann:1")
    changed(pool)
    pool.busy("course.cem")
    assert pool.wants("course.ann", n=2) == []
    pool.later(MINUTE)
    assert pool.wants("course.bob") == []
    assert granted(pool.free("course.cem:1")) == ["course.bob:1"]
    pool.replay()


def test_who_is_due_first_comes_before_who_asks_for_less_time() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    pool.busy("course.ann")
    assert pool.wants("course.bob") == []
    pool.later(5 * MINUTE)
    assert pool.wants("course.cem", walltime_ms=MINUTE) == []
    assert granted(pool.free("course.ann:1")) == ["course.bob:1"]
    pool.replay()


def test_a_small_cell_goes_where_it_leaves_room_for_a_large_one() -> None:
    pool = Quotas()
    pool.join("a", slots(2))
    pool.join("b", slots(1))
    assert pool.wants("course.ann") == ["course.ann:1"]
    assert pool.wants("course.bob", gpus=2) == ["course.bob:1"]
    pool.replay()


# Reclaim


def test_cells_are_reclaimed_on_the_node_that_loses_least() -> None:
    for first, second in (("eve", "tom"), ("tom", "eve")):
        pool = Quotas(project("lab", guaranteed_milli=1000))
        pool.join("a", slots(1))
        pool.join("b", slots(1))
        pool.busy(f"guests.{first}")
        pool.later(5 * MINUTE)
        pool.busy(f"guests.{second}")
        pool.later(5 * MINUTE)
        assert list(reclaimed(pool.ask("lab.ann", project="lab"))) == [f"guests.{second}:1"]
        pool.replay()


def test_an_owner_waits_for_the_first_cell_to_be_old_enough_and_not_for_the_last() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(2))
    pool.busy("guests.eve")
    pool.later(30_000)
    pool.busy("guests.tom")
    assert reclaimed(pool.ask("lab.ann", project="lab")) == {}
    assert pool.scheduler.deadline() == MINUTE
    assert list(reclaimed(pool.later(30_000))) == ["guests.eve:1"]
    pool.replay()


def test_a_cell_on_two_gpus_takes_nothing_below_a_guarantee_either() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000), project("school", guaranteed_milli=1000))
    pool.join("a", slots(2))
    pool.busy("school.eve", "school.tom")
    pool.later(5 * MINUTE)
    assert reclaimed(pool.ask("lab.ann", project="lab", gpus=2)) == {}
    pool.replay()


def test_a_part_keeps_its_guarantee_although_the_project_is_above_its_own() -> None:
    pool = Quotas(
        project("school", guaranteed_milli=1000),
        project("maths", "school", guaranteed_milli=1000),
        project("lab", guaranteed_milli=1000),
    )
    pool.join("a", slots(2))
    pool.busy("school.eve")
    pool.later(5 * MINUTE)
    pool.busy("maths.tom")
    pool.later(5 * MINUTE)
    assert list(reclaimed(pool.ask("lab.ann", project="lab"))) == ["school.eve:1"]
    pool.replay()


def test_a_cell_counts_until_it_has_left() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000), project("guests", limit_milli=2000))
    pool.join("a", slots(2))
    pool.busy("guests.eve", "guests.tom")
    pool.later(5 * MINUTE)
    assert len(reclaimed(pool.ask("lab.ann", project="lab"))) == 1
    assert pool.wants("guests.cem") == []
    assert pool.why("guests.cem/1").reason == "project 'guests' uses 2 of 2 GPUs that it may use"
    pool.replay()


def test_parts_without_a_guarantee_take_nothing_from_each_other() -> None:
    pool = Quotas(project("school", guaranteed_milli=2000), project("maths", "school"), project("physics", "school"))
    pool.join("a", slots(1))
    pool.busy("physics.eve")
    pool.later(5 * MINUTE)
    assert reclaimed(pool.ask("maths.bob", project="maths")) == {}
    pool.replay()


def test_a_hot_session_and_a_running_cell_make_room_together() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000))
    pool.join("a", slots(2))
    pool.busy("guests.eve", "guests.tom")
    pool.end("guests.eve:1")
    pool.later(5 * MINUTE)
    actions = pool.ask("lab.ann", project="lab", gpus=2)
    assert (evicted(actions), list(reclaimed(actions))) == (["guests.eve:1"], ["guests.tom:1"])
    pool.replay()


# Who was reclaimed from


def test_a_change_of_quotas_ends_no_back_off() -> None:
    pool = lent()
    pool.ask("lab.ann", project="lab")
    pool.free("guests.tom:1")
    pool.start("lab.ann:1")
    until_ms = pool.scheduler.state.accounts.of(ProjectId("guests")).back_off_until_ms
    changed(pool, project("lab", guaranteed_milli=1000))
    assert pool.scheduler.state.accounts.of(ProjectId("guests")).back_off_until_ms == until_ms > pool.now_ms
    pool.replay()


def test_a_back_off_keeps_nobody_from_what_is_guaranteed() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000), project("school", guaranteed_milli=1000))
    pool.join("a", slots(2))
    pool.busy("school.eve", "school.tom")
    pool.later(5 * MINUTE)
    [taken] = reclaimed(pool.ask("lab.ann", project="lab"))
    pool.free(taken)
    pool.start("lab.ann:1")
    [kept] = {"school.eve:1", "school.tom:1"} - {taken}
    pool.free(kept)
    assert pool.wants("school.cem") == ["school.cem:1"]
    pool.replay()
