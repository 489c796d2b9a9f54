"""`keep_hot`: a session stays between two cells, if only who borrows wants its GPU, and its guarantee reaches."""

import msgspec
import pytest

from bulletin.ids import ProjectId
from gpu_worker.scheduler.policy.projects import Project, SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import keeps_all
from tests.scheduler.promises.play import play
from tests.scheduler.promises.random_histories import random_history
from tests.scheduler.promises.seen import MINUTE_S, Seen, at, nodes, notebook, see


def _with_class(guaranteed: int, keep_s: int, *more: Project) -> SchedulerSettings:
    course = Project(id=ProjectId("class"), guaranteed_milli=guaranteed * 1000, keep_hot_ms=keep_s * 1000 or None)
    return SchedulerSettings(projects=(course, *more))


def _student_and_lab(keep_s: int, think_s: int, guaranteed: int = 1) -> Seen:
    """Play a student who runs two cells with a pause, and a lab that wants the only GPU in it."""
    return see(
        _with_class(guaranteed, keep_s),
        nodes(1, 1),
        at(1, notebook("student", "class", 20, 20, think_s=think_s)),
        at(40, notebook("lab", "lab", 1700, qos="batch")),
        last=60 * MINUTE_S,
    )


def test_without_a_keep_time_a_borrower_has_the_gpu_between_two_cells() -> None:
    seen = _student_and_lab(0, 100)
    assert seen.wait("lab") < 10
    assert seen.asked_to_leave("student")[0] == 40
    assert len(seen.asked_to_leave("lab")) == 1, "the next cell of the student takes it back"
    keeps_all(seen)


def test_with_a_keep_time_the_student_goes_on_at_once_and_the_borrower_waits() -> None:
    seen = _student_and_lab(120, 100)
    assert seen.asked_to_leave("student") == [pytest.approx(1 + 20 + 100 + 20 + 120, abs=6)]
    assert seen.granted("lab") > 120
    assert seen.asked_to_leave("lab") == []
    keeps_all(seen)


def test_after_the_keep_time_the_borrower_has_it_by_the_timer_alone() -> None:
    seen = _student_and_lab(60, 600)
    assert seen.asked_to_leave("student")[0] == pytest.approx(21 + 60, abs=3)
    assert seen.wait("lab") == pytest.approx(41, abs=6)
    keeps_all(seen)


def test_without_a_guarantee_nothing_is_kept() -> None:
    seen = _student_and_lab(120, 100, guaranteed=0)
    assert seen.wait("lab") < 10
    keeps_all(seen)


def test_who_is_covered_does_not_wait_for_a_keep_time() -> None:
    seen = see(
        _with_class(1, 600, Project(id=ProjectId("lab"), guaranteed_milli=1000)),
        nodes(1, 2),
        at(1, notebook("student", "class", 20)),
        at(35, notebook("guest", "guests", 600)),  # too young to be taken back
        at(40, notebook("lab", "lab", 100)),
        last=20 * MINUTE_S,
    )
    assert seen.wait("lab") < 10
    keeps_all(seen)


def test_a_class_mate_has_the_gpu_of_a_session_that_is_kept() -> None:
    seen = see(
        _with_class(1, 600),
        nodes(1, 1),
        at(1, notebook("student", "class", 20)),
        at(40, notebook("mate", "class", 20)),
        last=20 * MINUTE_S,
    )
    assert seen.wait("mate") < 10
    keeps_all(seen)


@pytest.mark.parametrize("shape", [(1, 2), (2, 1)], ids=["on one node", "on another"])
def test_a_class_mate_has_a_borrowers_hot_session_first(shape: tuple[int, int]) -> None:
    seen = see(
        _with_class(2, 600),
        nodes(*shape),
        at(1, notebook("student", "class", 20)),
        at(30, notebook("lab", "lab", 20)),
        at(80, notebook("mate", "class", 20)),
        last=5 * MINUTE_S,
    )
    assert seen.asked_to_leave("student") == []
    assert len(seen.asked_to_leave("lab")) == 1
    keeps_all(seen)


def test_no_more_is_kept_than_is_guaranteed_and_who_was_there_last_keeps_it() -> None:
    seen = see(
        _with_class(1, 600),
        nodes(1, 2),
        at(1, notebook("first", "class", 20)),
        at(10, notebook("second", "class", 30)),
        at(60, notebook("lab", "lab", 100)),
        at(61, notebook("other", "lab", 100)),
        last=20 * MINUTE_S,
    )
    assert seen.wait("lab") < 10
    assert len(seen.asked_to_leave("first")) == 1
    assert seen.granted("other") > 100
    assert seen.asked_to_leave("second") == [], "the lab is done before its keep time is over"
    keeps_all(seen)


def test_inside_a_department_a_course_keeps_from_another_one_that_borrows_there() -> None:
    dept = Project(id=ProjectId("dept"), guaranteed_milli=1000, keep_hot_ms=120_000)
    courses = [
        Project(id=ProjectId(name), parent=dept.id, guaranteed_milli=milli) for name, milli in (("a", 1000), ("b", 0))
    ]
    seen = see(
        SchedulerSettings(projects=(dept, *courses)),
        nodes(1, 1),
        at(1, notebook("student", "a", 20)),
        at(40, notebook("other", "b", 20)),
        last=20 * MINUTE_S,
    )
    assert seen.granted("other") == pytest.approx(21 + 120, abs=8)
    keeps_all(seen)


_PARTS, _SIZE = 4, 25


@pytest.mark.parametrize("part", range(_PARTS))
def test_random_histories_with_keep_times_keep_every_promise(part: int) -> None:
    first = 20_000 + _SIZE * part
    for seed in range(first, first + _SIZE):
        judge, _ = play(_with_keep_times(random_history(seed)))
        assert not judge.violations, f"seed {seed}\n{judge.violations[0]}"


def _with_keep_times(history: hi.History) -> hi.History:
    def changed(settings: SchedulerSettings) -> SchedulerSettings:
        times = (None, 30_000, 300_000)
        keep = [times[history.draw(2, "keep", one.id)] for one in settings.projects]
        projects = [
            msgspec.structs.replace(one, keep_hot_ms=ms) for one, ms in zip(settings.projects, keep, strict=True)
        ]
        return msgspec.structs.replace(settings, projects=tuple(projects))

    happenings = tuple(
        msgspec.structs.replace(one, what=msgspec.structs.replace(one.what, settings=changed(one.what.settings)))
        if hasattr(one.what, "settings")
        else one
        for one in history.happenings
    )
    return msgspec.structs.replace(history, settings=changed(history.settings), happenings=happenings)


def test_the_users_of_a_department_do_not_take_what_a_course_in_it_keeps_of_its_own() -> None:
    dept = Project(id=ProjectId("dept"), guaranteed_milli=1000, keep_hot_ms=120_000)
    course = Project(id=ProjectId("course"), parent=dept.id, guaranteed_milli=1000)
    seen = see(
        SchedulerSettings(projects=(dept, course)),
        nodes(1, 1),
        at(1, notebook("student", "course", 20)),
        at(60, notebook("own", "dept", 20)),
        last=20 * MINUTE_S,
    )
    assert seen.granted("own") == 141
