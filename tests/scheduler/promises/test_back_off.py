"""Who had to give back stands behind other borrowers for a while, and no longer."""

import pytest

from bulletin.ids import ProjectId, SessionId
from gpu_worker.scheduler.policy.projects import Project, SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import crowd
from tests.scheduler.promises.seen import HOUR_S, at, notebook, see
from tests.scheduler.promises.stories import join

LONG = 11 * HOUR_S


def _settings(longest_s: int = 600) -> SchedulerSettings:
    lab = Project(id=ProjectId("lab"), guaranteed_milli=3000)
    first = Project(id=ProjectId("a"), priority=5)
    return SchedulerSettings(projects=(lab, first, Project(id=ProjectId("b"))), longest_back_off_ms=longest_s * 1000)


def _is_passed(seconds: tuple[int, ...], ends: int, settings: SchedulerSettings, *more: hi.At) -> bool:
    """Play: `a`, which has more priority, loses a cell at these seconds; whether `b` has the GPU that is free then."""
    seen = see(
        settings,
        join(3, 1),
        [at(1, one) for one in crowd(3, "a", LONG, gpu_type="H100", qos="batch")],
        at(2, notebook("c", "c", ends - 2, gpu_type="L4")),
        [at(3, notebook(f"{name}-more", name, LONG, gpu_type="L4", qos="batch")) for name in ("a", "b")],
        [at(second, notebook(f"lab{number}", "lab", LONG, gpu_type="H100")) for number, second in enumerate(seconds)],
        more,
        last=ends + 5,
    )
    assert sum(len(seen.asked_to_leave(session)) for session in ("a0", "a1", "a2")) == len(seconds)
    return seen.granted("b-more") <= ends + 1


@pytest.mark.parametrize(
    ("seconds", "ends", "is_passed"),
    [
        ((100,), 109, True),
        ((100,), 110, False),
        ((100, 200), 219, True),  # twice as long the second time
        ((100, 200), 220, False),
        ((100, 100), 111, False),  # once in each grace, however many cells it lost in it
        ((100, 715), 726, False),  # not within the longest one
    ],
)
def test_who_gave_back_is_passed_by_other_borrowers_for_ten_seconds_and_then_twice_as_long(
    seconds: tuple[int, ...], ends: int, is_passed: bool
) -> None:
    assert _is_passed(seconds, ends, _settings()) == is_passed


@pytest.mark.parametrize(("ends", "is_passed"), [(194, True), (195, False)])
def test_nobody_is_passed_for_longer_than_the_longest_back_off(ends: int, is_passed: bool) -> None:
    assert _is_passed((100, 131, 165), ends, _settings(30)) == is_passed


def test_new_settings_end_no_back_off() -> None:
    assert _is_passed((100,), 109, _settings(), at(103, hi.Changes(_settings(700))))


@pytest.mark.parametrize("is_wanted", [False, True])
def test_who_gave_back_has_at_once_what_nobody_else_wants(is_wanted: bool) -> None:
    seen = see(
        _settings(),
        join(2, 1),
        [at(1, one) for one in crowd(2, "a", LONG, gpu_type="H100", qos="batch")],
        at(2, notebook("c", "c", 105 - 2, gpu_type="L4")),
        at(3, notebook("a-more", "a", 10, gpu_type="L4", qos="batch", closes_ms=0)),
        at(100, notebook("lab", "lab", LONG, gpu_type="H100")),
        [at(101, notebook("b", "b", 10, gpu_type="L4", qos="batch", closes_ms=0))] if is_wanted else [],
        last=200,
    )
    assert seen.granted("a-more") == (115 if is_wanted else 105)


def test_who_gave_way_to_its_own_project_is_passed_by_nobody_for_it() -> None:
    seen = see(
        _settings(),
        join(1, 1),
        at(1, notebook("a-batch", "a", LONG, gpu_type="H100", qos="batch")),
        at(2, notebook("c", "c", 105 - 2, gpu_type="L4")),
        at(3, notebook("b", "b", 10, gpu_type="L4", qos="batch")),
        at(4, notebook("a-more", "a", 10, gpu_type="L4", qos="batch")),
        at(100, notebook("a-typing", "a", 60, gpu_type="H100")),
        last=200,
    )
    assert seen.asked_to_leave("a-batch") == [100]
    assert seen.granted("a-more") == 105


def test_whose_cell_an_admin_has_run_again_is_passed_by_nobody_for_it() -> None:
    seen = see(
        _settings(),
        join(1, 1),
        at(1, notebook("a-batch", "a", LONG, gpu_type="H100", qos="batch")),
        at(2, notebook("c", "c", 105 - 2, gpu_type="L4")),
        at(3, notebook("b", "b", 10, gpu_type="L4", qos="batch")),
        at(4, notebook("a-more", "a", 10, gpu_type="L4", qos="batch")),
        at(100, hi.ByHand(SessionId("a-batch"), "requeue")),
        last=200,
    )
    assert seen.asked_to_leave("a-batch") == [100]
    assert seen.granted("a-more") == 105
