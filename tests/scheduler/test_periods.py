"""When days, weeks and months begin, beside the standard library's calendar."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from bulletin.units import DAY_MS
from gpu_worker.scheduler.policy.periods import period_at


def beside(period: str, now: datetime) -> tuple[datetime, datetime]:
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "day":
        return day, day + timedelta(1)
    if period == "week":
        monday = day - timedelta(day.weekday())
        return monday, monday + timedelta(7)
    first = day.replace(day=1)
    return first, (first + timedelta(31)).replace(day=1)


@pytest.mark.parametrize("period", ["day", "week", "month"])
@given(st.datetimes(datetime(1970, 1, 5), datetime(2400, 1, 1)))  # noqa: DTZ001  Hypothesis wants it so
def test_periods_begin_when_the_calendar_says(period: str, now: datetime) -> None:
    now = now.replace(tzinfo=UTC, microsecond=0)
    found = period_at(period, round(now.timestamp() * 1000))  # type: ignore[arg-type]
    assert found == tuple(round(one.timestamp() * 1000) for one in beside(period, now))


@pytest.mark.parametrize("period", ["day", "week", "month"])
def test_a_period_ends_where_the_next_one_begins(period: str) -> None:
    at = 0
    for _ in range(500):
        begins, ends = period_at(period, at)  # type: ignore[arg-type]
        assert begins <= at < ends
        assert period_at(period, ends - 1) == (begins, ends)  # type: ignore[arg-type]
        assert (ends - begins) % DAY_MS == 0
        at = ends
