"""What somebody who waits will usually wait, from how long others waited."""

import pytest

from bulletin.units import DAY_MS, HOUR_MS
from gpu_worker.scheduler.estimates.explain import WaitExplanation
from gpu_worker.scheduler.estimates.wait_history import WaitHistory, WaitKind, wait_kind

SECOND = 1000


def kind(place: int = 1, hour: int = 10, qos: str = "interactive", *, in_quota: bool = True) -> WaitKind:
    return wait_kind(qos, 3 * DAY_MS + hour * HOUR_MS, WaitExplanation(place, "", None, in_quota))


def of_waits(*waits_s: int, of: WaitKind | None = None) -> WaitHistory:
    history = WaitHistory()
    for wait_s in waits_s:
        history.note(of or kind(), wait_s * SECOND)
    return history


@pytest.mark.parametrize("wait_s", [2, 30, 100, 3600])
def test_what_all_waited_is_told_within_an_eighth_or_so(wait_s: int) -> None:
    told_ms = of_waits(*[wait_s] * 9).usual_ms(kind())
    assert told_ms is not None
    assert 0.85 * wait_s * SECOND < told_ms < 1.15 * wait_s * SECOND


def test_half_of_those_before_waited_no_longer() -> None:
    told_ms = of_waits(*range(1, 60)).usual_ms(kind())
    assert told_ms is not None
    assert 25 * SECOND < told_ms < 36 * SECOND


def test_of_few_waits_nothing_is_said() -> None:
    assert of_waits(30, 30, 30, 30).usual_ms(kind()) is None
    assert of_waits(*[30] * 9).usual_ms(kind(qos="batch")) is None
    assert of_waits(*[30] * 9).usual_ms(kind(place=30)) is None


def test_where_the_hour_is_new_another_one_counts_and_its_own_as_soon_as_it_is_known() -> None:
    history = of_waits(*[100] * 9)
    at_night = kind(hour=3)
    assert history.usual_ms(at_night) == history.usual_ms(kind())
    for _ in range(9):
        history.note(at_night, 10 * SECOND)
    told_ms = history.usual_ms(at_night)
    assert told_ms is not None
    assert told_ms < 15 * SECOND


def test_who_has_waited_longer_than_most_is_told_what_those_waited_who_did_too() -> None:
    history = of_waits(*[10] * 20, *[300] * 10)
    told_ms = history.usual_ms(kind(), waited_ms=60 * SECOND)
    assert told_ms is not None
    assert 200 * SECOND < told_ms < 280 * SECOND


def test_what_is_new_soon_counts_for_more_than_what_is_old() -> None:
    history = of_waits(*[10] * 500, *[300] * 64)
    told_ms = history.usual_ms(kind())
    assert told_ms is not None
    assert told_ms > 250 * SECOND


def test_one_for_whom_room_is_made_is_not_like_one_who_waits_for_others() -> None:
    made = wait_kind("interactive", 0, WaitExplanation(1, "", None, in_quota=True, is_room_made=True))
    assert made != wait_kind("interactive", 0, WaitExplanation(1, "", None, in_quota=True))
    history = of_waits(*[60] * 9)
    assert history.usual_ms(made) is None


def test_a_history_does_not_grow_with_names_that_people_make_up() -> None:
    history = WaitHistory()
    for number in range(1_000):
        for _ in range(5):
            history.note(kind(qos=f"qos-{number}"), 30 * SECOND)
    told = [number for number in range(1_000) if history.usual_ms(kind(qos=f"qos-{number}")) is not None]
    assert told == list(range(64))
