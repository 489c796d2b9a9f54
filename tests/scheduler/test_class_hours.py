"""Class hours beside the standard library's calendar and time zones, and as a class meets them."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from bulletin.ids import ProjectId
from gpu_worker.quotas.zones import find_zone
from gpu_worker.scheduler.policy.class_hours import (
    ClassHours,
    guaranteed_at,
    moments,
    most_from,
    next_beginning,
    next_edge_ms,
)
from gpu_worker.scheduler.policy.projects import Project, check_projects
from tests.scheduler.timetable import EPOCH, hours, place, utc

MINUTE = 60_000
HOUR = 60 * MINUTE
#: Clocks of a half hour, of both hemispheres, set by half an hour, by rules of the moon, and never.
PLACES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca", "UTC")


def is_on(one: ClassHours, now_ms: int) -> bool:
    """The same by the standard library."""
    local = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(ZoneInfo(one.zone.name))
    day, minute = (local.date() - EPOCH).days, local.hour * 60 + local.minute
    is_bound = (one.first_day or 0) <= day <= (10**9 if one.last_day is None else one.last_day)
    return is_bound and local.weekday() in one.days and one.from_minute <= minute < one.until_minute


times = st.integers(utc(2025, 1, 1) // MINUTE, utc(2030, 1, 1) // MINUTE).map(lambda minute: minute * MINUTE)
days = st.none() | st.integers((date(2025, 6, 1) - EPOCH).days, (date(2027, 1, 1) - EPOCH).days)
windows = st.builds(
    ClassHours,
    name=st.just("lecture"),
    days=st.sets(st.integers(0, 6), min_size=1).map(lambda found: tuple(sorted(found))),
    from_minute=st.sampled_from((0, 60, 90, 120, 150, 600)),
    until_minute=st.sampled_from((179, 180, 200, 720, 1440)).filter(bool),
    guaranteed_milli=st.sampled_from((1000, 2000)),
    zone=st.sampled_from(PLACES).map(place),
    first_day=days,
    last_day=days,
).filter(lambda one: one.from_minute < one.until_minute)


@settings(max_examples=200, deadline=None)
@given(windows, times)
def test_they_are_on_when_the_clock_on_the_wall_says(one: ClassHours, now_ms: int) -> None:
    assert one.is_on(now_ms) == is_on(one, now_ms)


@settings(max_examples=150, deadline=None)
@given(windows, times)
def test_nothing_changes_before_the_next_edge(one: ClassHours, now_ms: int) -> None:
    edge_ms = one.next_edge_ms(now_ms)
    until_ms = edge_ms if edge_ms is not None else now_ms + 400 * 24 * HOUR
    assert until_ms > now_ms
    step_ms = max(MINUTE, (until_ms - now_ms) // 200 // MINUTE * MINUTE)
    for at_ms in [*range(now_ms, until_ms, step_ms), until_ms - MINUTE, until_ms - 1]:
        if now_ms <= at_ms < until_ms:
            assert is_on(one, at_ms) == one.is_on(now_ms)
    assert one.is_over(now_ms) == (not one.is_on(now_ms) and edge_ms is None)


@settings(max_examples=60, deadline=None)
@given(st.lists(windows, min_size=1, max_size=4), times)
def test_the_moments_include_the_highest_of_all_times(several: list[ClassHours], now_ms: int) -> None:
    def together(at_ms: int) -> int:
        return sum(one.guaranteed_milli for one in several if one.is_on(at_ms))

    most = max(map(together, moments(several)), default=0)
    at_ms = now_ms
    for _ in range(20):
        assert together(at_ms) <= most
        edge_ms = next_edge_ms(several, at_ms)
        if edge_ms is None:
            break
        at_ms = edge_ms


def test_places_may_have_the_same_clocks_only_in_some_weeks() -> None:
    """Morocco's clocks are with Berlin's in winter, but for Ramadan: from a February on, not before October."""
    several = [
        hours("Mon", "00:00", "02:59", 1, "Europe/Berlin", first=date(2026, 2, 10)),
        hours("Mon", "02:00", "02:59", 1, "Africa/Casablanca"),
    ]
    assert [one.is_on(utc(2026, 2, 16, 1)) for one in several] == [True, False]
    assert [one.is_on(utc(2026, 6, 15, 1)) for one in several] == [False, True]
    assert [one.is_on(utc(2026, 10, 26, 1)) for one in several] == [True, True]
    assert max(sum(one.guaranteed_milli for one in several if one.is_on(at_ms)) for at_ms in moments(several)) == 2000


@settings(max_examples=60, deadline=None)
@given(st.lists(windows, min_size=1, max_size=4), st.integers(0, 7))
def test_more_than_there_is_at_any_time_is_a_warning(several: list[ClassHours], gpus: int) -> None:
    projects = [Project(id=ProjectId(f"p{n}"), class_hours=(one,)) for n, one in enumerate(several)]
    most = max((sum(guaranteed_at([one], at_ms) for one in several) for at_ms in moments(several)), default=0)
    assert [one.is_warning for one in check_projects(projects, 1000 * gpus)] == [True] * (most > 1000 * gpus)


def test_hours_that_never_end_are_guaranteed_at_once() -> None:
    always = hours(begin="00:00", end="24:00", gpus=3)
    [problem] = check_projects([Project(id=ProjectId("class"), class_hours=(always,))], 2000)
    assert (problem.field, problem.sentence[:24]) == ("class_hours.lecture", "3 GPUs are guaranteed on")


def test_ten_in_the_morning_is_ten_in_the_morning_in_summer_too() -> None:
    one = hours("Mon")
    assert one.next_edge_ms(utc(2026, 3, 23, 12)) == utc(2026, 3, 30, 8)  # summer time since the day before
    assert one.next_edge_ms(utc(2026, 3, 22)) == utc(2026, 3, 23, 9)
    assert one.next_edge_ms(utc(2026, 10, 19, 10)) == utc(2026, 10, 26, 9)


def test_an_hour_that_clocks_skip_is_not_there_and_one_that_they_repeat_is_there_twice() -> None:
    one = hours("Sun", "02:00", "03:00")
    assert one.next_edge_ms(utc(2026, 3, 28, 12)) == utc(2026, 4, 5)  # not on 29 March
    begins = utc(2026, 10, 25)
    assert one.next_edge_ms(utc(2026, 10, 24, 12)) == begins
    assert all(one.is_on(begins + n * MINUTE) for n in range(120))
    assert not one.is_on(begins + 2 * HOUR)


def test_they_begin_with_the_first_day_and_end_with_the_last() -> None:
    one = hours("Mon", first=date(2026, 10, 13), last=date(2026, 10, 26))
    assert one.next_edge_ms(utc(2026, 1, 1)) == utc(2026, 10, 19, 8)
    assert not one.is_over(utc(2026, 10, 26, 9))
    assert one.next_edge_ms(utc(2026, 10, 26, 9)) == utc(2026, 10, 26, 11)
    assert one.is_over(utc(2026, 10, 26, 11))
    assert most_from([one], utc(2026, 10, 26, 11) - 1) == 2000
    assert most_from([one], utc(2026, 10, 26, 11)) == 0


def test_where_two_overlap_the_larger_one_counts() -> None:
    two = [hours("Mon", "10:00", "12:00", 2), hours("Mon", "11:00", "13:00", 3)]
    at_ten = utc(2026, 1, 5, 9)
    assert [guaranteed_at(two, at_ten + n * HOUR) for n in range(-1, 4)] == [0, 2000, 3000, 3000, 0]
    assert moments(two)[-1] - moments(two)[-2] == HOUR


def test_the_next_one_to_begin_is_one_that_is_not_on() -> None:
    early, late = hours("Mon", "10:00", "12:00", name="early"), hours("Mon", "11:00", "13:00", name="late")
    assert next_beginning([late, early], utc(2026, 1, 5)) == (utc(2026, 1, 5, 9), early)
    assert next_beginning([late, early], utc(2026, 1, 5, 9)) == (utc(2026, 1, 5, 10), late)
    assert next_beginning([late], utc(2026, 1, 5, 9)) == (utc(2026, 1, 5, 10), late)
    assert next_beginning([hours("Mon", last=date(2026, 1, 4))], utc(2026, 1, 5)) is None


def test_the_end_of_the_day_is_no_end_where_the_next_day_goes_on() -> None:
    one = hours("Mon Tue", "00:00", "24:00", where="UTC")
    assert [one.is_on(utc(2026, 1, 5) + n * HOUR) for n in (-1, 0, 23, 24, 47, 48)] == [0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("name", PLACES)
def test_the_table_of_a_place_is_what_the_tz_database_has(name: str) -> None:
    found, info = place(name), ZoneInfo(name)
    at = datetime(2025, 1, 1, tzinfo=UTC)
    while at < datetime(2049, 12, 31, tzinfo=UTC):
        _, _, ahead_ms = next(found.spans(int(at.timestamp()) * 1000))
        assert timedelta(milliseconds=ahead_ms) == at.astimezone(info).utcoffset()
        at += timedelta(hours=61)


@pytest.mark.parametrize(
    "name", ["", "Mars", "../etc/passwd", "Europe", "Europe/Berlin ", "tzdata.zi", "/UTC", "x" * 99]
)
def test_what_is_no_place_is_no_zone(name: str) -> None:
    assert find_zone(name) is None
