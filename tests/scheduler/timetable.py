"""Class hours in few words, and times of UTC as the scheduler counts them."""

from datetime import UTC, date, datetime

from gpu_worker.quotas.zones import find_zone
from gpu_worker.scheduler.policy.class_hours import (
    ClassHours,
    Zone,
)

EPOCH = date(1970, 1, 1)


def place(name: str) -> Zone:
    found = find_zone(name)
    assert found is not None
    return found


def hours(
    days: str = "Mon Tue Wed Thu Fri Sat Sun",
    begin: str = "10:00",
    end: str = "12:00",
    gpus: int = 2,
    where: str = "Europe/Berlin",
    first: date | None = None,
    last: date | None = None,
    name: str = "lecture",
) -> ClassHours:
    week = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

    def minute(clock: str) -> int:
        return int(clock[:2]) * 60 + int(clock[3:])

    return ClassHours(
        name=name,
        days=tuple(week.index(day) for day in days.split()),
        from_minute=minute(begin),
        until_minute=minute(end),
        guaranteed_milli=1000 * gpus,
        zone=place(where),
        first_day=None if first is None else (first - EPOCH).days,
        last_day=None if last is None else (last - EPOCH).days,
    )


def utc(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp()) * 1000  # type: ignore[misc, arg-type]
