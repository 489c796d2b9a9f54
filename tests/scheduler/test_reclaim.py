"""What is guaranteed comes back: who gives up running cells, to whom, when, and how it ends. Each told step by step."""

import msgspec

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler.policy.projects import Preemption
from tests.scheduler.bench import MINUTE, SETTINGS, evicted, granted, held, project, reclaimed, refused, slots
from tests.scheduler.quota_bench import Quotas, lent


def test_an_owner_gets_its_gpu_back_within_the_grace() -> None:
    pool = lent()
    assert reclaimed(pool.ask("lab.ann", project="lab")) == {"guests.tom:1": 20_000}
    assert pool.why("lab.ann/1").reason == "a GPU is being freed for you"
    assert pool.later(20_000) == []
    assert granted(pool.free("guests.tom:1")) == ["lab.ann:1"]
    pool.replay()


def test_a_cell_that_ends_within_the_grace_is_done_and_its_gpu_goes_to_the_owner() -> None:
    pool = lent()
    pool.ask("lab.ann", project="lab")
    assert pool.end("guests.tom:1") == []
    assert granted(pool.free("guests.tom:1")) == ["lab.ann:1"]
    pool.replay()


def test_an_agent_that_does_not_answer_is_asked_again_without_another_grace() -> None:
    pool = lent()
    pool.ask("lab.ann", project="lab")
    assert reclaimed(pool.later(29_999)) == {}
    assert reclaimed(pool.later(1)) == {"guests.tom:1": 0}
    assert reclaimed(pool.later(9_999)) == {}
    assert reclaimed(pool.later(1)) == {"guests.tom:1": 0}
    assert granted(pool.free("guests.tom:1")) == ["lab.ann:1"]
    pool.replay()


def test_what_is_above_the_guarantee_is_no_reason_to_take_anything() -> None:
    pool = lent()
    pool.ask("lab.ann", project="lab")
    assert reclaimed(pool.ask("lab.bob", project="lab")) == {}
    assert granted(pool.free("guests.tom:1")) == ["lab.ann:1"]
    pool.start("lab.ann:1")
    assert reclaimed(pool.later(20 * MINUTE)) == {}
    pool.replay()


def test_the_borrower_runs_again_when_there_is_room_and_takes_nothing_back() -> None:
    pool = lent()
    pool.ask("lab.ann", project="lab")
    pool.free("guests.tom:1")
    pool.start("lab.ann:1")
    assert pool.ask("guests.tom", n=2, project="guests") == []
    assert reclaimed(pool.later(2 * 60 * MINUTE)) == {}
    assert granted(pool.free("guests.eve:1")) == ["guests.tom:2"]
    pool.replay()


def test_who_was_reclaimed_from_borrows_at_once_what_nobody_else_wants() -> None:
    pool = lent()
    pool.ask("lab.ann", project="lab")
    pool.free("guests.tom:1")
    pool.start("lab.ann:1")
    pool.free("lab.ann:1")
    assert pool.wants("guests.tom", n=2) == ["guests.tom:2"]
    pool.replay()


def test_who_was_reclaimed_from_stands_behind_other_borrowers_and_longer_each_time() -> None:
    pool = lent()
    for number, wait_ms in ((1, MINUTE), (2, 2 * MINUTE)):
        assert list(reclaimed(pool.ask("lab.ann", n=number, project="lab"))) == [f"guests.tom:{number}"]
        pool.free(f"guests.tom:{number}")
        pool.start(f"lab.ann:{number}")
        assert pool.wants("guests.tom", n=number + 1) == []
        assert pool.wants("others.eve", n=number) == []
        left = "60 s" if number == 1 else "2 min"
        sentence = f"project 'guests' had to give back what it borrowed, and stands behind others for {left}"
        assert pool.why(f"guests.tom/{number + 1}").reason.startswith(sentence)
        assert granted(pool.free(f"lab.ann:{number}")) == [f"others.eve:{number}"]
        pool.start(f"others.eve:{number}")
        pool.later(wait_ms)
        assert granted(pool.free(f"others.eve:{number}")) == [f"guests.tom:{number + 1}"]
        pool.start(f"guests.tom:{number + 1}")
        pool.later(MINUTE)
    pool.replay()


def test_a_young_cell_is_let_run_for_a_while() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(1))
    pool.busy("guests.eve")
    assert reclaimed(pool.ask("lab.ann", project="lab")) == {}
    assert pool.scheduler.deadline() == MINUTE
    assert list(reclaimed(pool.later(MINUTE))) == ["guests.eve:1"]
    pool.replay()


def test_hot_sessions_go_before_running_cells() -> None:
    pool = lent()
    pool.end("guests.eve:1")
    actions = pool.ask("lab.ann", project="lab")
    assert (evicted(actions), reclaimed(actions)) == (["guests.eve:1"], {})
    pool.replay()


def test_the_cell_that_loses_least_goes() -> None:
    pool = lent()
    assert list(reclaimed(pool.ask("lab.ann", project="lab"))) == ["guests.tom:1"]
    pool.replay()


def test_a_qos_that_is_never_preempted_keeps_its_gpu() -> None:
    qos = tuple(msgspec.structs.replace(one, preemption=Preemption.NEVER) for one in SETTINGS.qos)
    pool = Quotas(project("lab", guaranteed_milli=1000), qos=qos)
    pool.join("a", slots(1))
    pool.busy("guests.eve")
    pool.later(20 * MINUTE)
    assert reclaimed(pool.ask("lab.ann", project="lab")) == {}
    pool.replay()


def test_nothing_is_taken_below_the_victims_guarantee() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000), project("school", guaranteed_milli=1000))
    pool.join("a", slots(2))
    pool.busy("school.eve", "school.tom")
    pool.later(5 * MINUTE)
    assert len(reclaimed(pool.ask("lab.ann", project="lab"))) == 1
    assert reclaimed(pool.ask("lab.bob", project="lab")) == {}
    pool.replay()


def test_a_cell_on_two_gpus_takes_back_two() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000))
    pool.join("a", slots(2))
    pool.busy("guests.eve", "guests.tom")
    pool.later(5 * MINUTE)
    assert len(reclaimed(pool.ask("lab.ann", project="lab", gpus=2))) == 2
    assert pool.free("guests.eve:1") == []
    assert granted(pool.free("guests.tom:1")) == ["lab.ann:1"]
    pool.replay()


def test_inside_a_project_its_parts_take_back_from_each_other_only() -> None:
    pool = Quotas(
        project("school", guaranteed_milli=2000),
        project("maths", "school", guaranteed_milli=1000),
        project("physics", "school"),
        project("lab", guaranteed_milli=1000),
    )
    pool.join("a", slots(3))
    pool.busy("physics.eve", "physics.tom", "lab.ann")
    pool.later(5 * MINUTE)
    taken = reclaimed(pool.ask("maths.bob", project="maths"))
    assert list(taken) in (["physics.eve:1"], ["physics.tom:1"])
    pool.replay()


def test_a_projects_own_users_take_back_what_a_project_inside_it_borrowed_of_them() -> None:
    pool = Quotas(project("school", guaranteed_milli=2000), project("maths", "school", guaranteed_milli=1000))
    pool.join("a", slots(3))
    pool.busy("lab.ann", "maths.eve", "maths.tom")
    pool.later(5 * MINUTE)
    assert len(reclaimed(pool.ask("school.bob", project="school"))) == 1
    assert pool.why("school.bob/1").in_quota
    pool.replay()


def test_users_of_one_project_take_nothing_from_each_other() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000))
    pool.join("a", slots(1))
    pool.busy("lab.eve")
    pool.later(20 * MINUTE)
    assert reclaimed(pool.ask("lab.ann", project="lab")) == {}
    pool.replay()


def test_the_users_of_a_project_take_back_what_a_part_of_it_borrows_although_all_of_it_is_above_its_guarantee() -> None:
    pool = Quotas(project("school", guaranteed_milli=1000), project("physics", "school"))
    pool.join("a", slots(2))
    pool.busy("physics.eve", "physics.tom")
    pool.later(5 * MINUTE)
    assert len(reclaimed(pool.ask("school.ann", project="school"))) == 1
    pool.replay()


def taken() -> Quotas:
    """One GPU, guaranteed to the lab and used by it; tom of the guests had it before, and kim asked after him."""
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(1))
    pool.busy("guests.tom")
    pool.later(5 * MINUTE)
    assert pool.ask("guests.kim", project="guests", user="kim") == []
    assert list(reclaimed(pool.ask("lab.ann", project="lab"))) == ["guests.tom:1"]
    return pool


def test_who_was_reclaimed_stands_where_it_stood_when_it_asks_again() -> None:
    pool = taken()
    assert pool.wants("guests.tom", n=2) == []  # before its lease has ended, or after: the kernel does not know
    assert granted(pool.free("guests.tom:1")) == ["lab.ann:1"]
    pool.later(MINUTE)
    assert granted(pool.free("lab.ann:1")) == ["guests.tom:2"]
    pool.start("guests.tom:2")
    pool.later(5 * MINUTE)
    pool.ask("lab.ann", n=2, project="lab")
    pool.free("guests.tom:2")
    pool.later(50 * MINUTE)
    assert pool.wants("guests.tom", n=3) == []
    assert granted(pool.free("lab.ann:2")) == ["guests.tom:3"]
    pool.replay()


def test_a_cell_that_ended_within_the_grace_leaves_no_place_to_the_next_one() -> None:
    pool = taken()
    pool.end("guests.tom:1")
    pool.wants("guests.tom", n=2)
    pool.free("guests.tom:1")
    pool.later(MINUTE)
    assert granted(pool.free("lab.ann:1")) == ["guests.kim:1"]
    pool.replay()


def test_who_asks_for_more_than_was_reclaimed_asks_anew() -> None:
    pool = taken()
    pool.wants("guests.tom", n=2, qos="batch")
    pool.wants("guests.tom", n=3)
    pool.free("guests.tom:1")
    pool.later(MINUTE)
    assert granted(pool.free("lab.ann:1")) == ["guests.kim:1"]
    pool.replay()


def test_the_place_of_a_reclaimed_cell_is_kept_for_an_hour() -> None:
    pool = taken()
    pool.free("guests.tom:1")
    pool.later(60 * MINUTE)
    pool.wants("guests.tom", n=2)
    assert granted(pool.free("lab.ann:1")) == ["guests.kim:1"]
    pool.replay()


def test_a_hot_sessions_cell_that_was_reclaimed_stands_where_it_began() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(1))
    pool.run("guests.tom", project="guests", user="tom")
    pool.later(5 * MINUTE)
    pool.start("guests.tom:1", "c2")
    pool.later(20_000)
    pool.wants("guests.kim")
    pool.later(5 * MINUTE)
    assert list(reclaimed(pool.ask("lab.ann", project="lab"))) == ["guests.tom:1"]
    pool.wants("guests.tom", n=2)
    pool.free("guests.tom:1")
    pool.later(MINUTE)
    assert granted(pool.free("lab.ann:1")) == ["guests.tom:2"]
    pool.replay()


def test_a_hot_sessions_later_cell_has_not_the_age_of_its_first() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(1))
    pool.join("b", slots(2))
    pool.lose("b")
    pool.run("guests.tom", project="guests", user="tom")
    pool.later(5 * MINUTE)
    pool.wants("guests.sue", gpus=2)
    pool.later(MINUTE)
    pool.start("guests.tom:1", "c2")
    pool.later(5 * MINUTE)
    assert list(reclaimed(pool.ask("lab.ann", project="lab"))) == ["guests.tom:1"]
    pool.free("guests.tom:1")
    pool.wants("guests.tom", n=2)
    pool.later(MINUTE)
    assert granted(pool.join("b", slots(2))) == ["guests.sue:1"]
    pool.replay()


def test_an_agent_that_comes_back_changes_nobodys_place() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(1))
    pool.busy("guests.tom")
    pool.later(5 * MINUTE)
    pool.wants("guests.kim")
    told = held("guests.tom", cell="c1", running_ms=5 * MINUTE)
    pool.join("a", slots(1), msgspec.structs.replace(told, user=UserName("tom"), project=ProjectId("guests")))
    assert list(reclaimed(pool.ask("lab.ann", project="lab"))) == ["guests.tom:1"]
    pool.wants("guests.tom", n=2)
    pool.free("guests.tom:1")
    pool.later(MINUTE)
    assert granted(pool.free("lab.ann:1")) == ["guests.tom:2"]
    pool.replay()


def test_a_cell_on_two_gpus_takes_both_from_the_users_of_a_project_that_has_others_inside() -> None:
    pool = Quotas(
        project("lab", guaranteed_milli=2000), project("school", guaranteed_milli=1000), project("maths", "school")
    )
    pool.join("a", slots(3))
    pool.busy("school.a", "school.b", "school.c")
    pool.later(5 * MINUTE)
    assert sorted(reclaimed(pool.ask("lab.ann", project="lab", gpus=2))) == ["school.b:1", "school.c:1"], (
        "who came first is covered"
    )
    pool.replay()


def test_cells_that_are_reclaimed_together_all_wait_again_however_few_may_wait_at_once() -> None:
    pool = Quotas(project("course", guaranteed_milli=4000))
    pool.join("a", slots(4))
    sessions = [f"lab.{n}" for n in range(4)]
    for one in sessions:
        assert granted(pool.ask(one, project="lab", user="eve", qos="batch")) == [f"{one}:1"]
        pool.start(f"{one}:1")
    pool.later(2 * MINUTE)
    for n in range(4):
        pool.ask(f"course.{n}", project="course")
    for one in sessions:
        pool.free(f"{one}:1")
    assert pool.settings.qos[1].queued_per_user == 2
    assert [refused(pool.ask(one, n=2, project="lab", user="eve", qos="batch")) for one in sessions] == [{}] * 4
    assert "2 of your requests wait" in str(refused(pool.ask("lab.more", project="lab", user="eve", qos="batch")))
