"""Class hours as the referee reads them: by the names of days and places, and the calendar of the standard library."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from gpu_worker.scheduler.policy.projects import Project

EPOCH = date(1970, 1, 1)


def own_guarantee(project: Project, now_ms: int) -> int:
    """What the project itself is guaranteed at this time."""
    on = [one.guaranteed_milli for one in project.class_hours if _is_on(one, now_ms)]
    on += [one.guaranteed_milli for one in project.reservations if _times(one)[0] <= now_ms < _times(one)[1]]
    return max([project.guaranteed_milli, *on])


def best_guarantee(project: Project, now_ms: int) -> int:
    """What it will be guaranteed at best, now or at any later time."""
    ahead = [one.guaranteed_milli for one in project.class_hours if _comes(one, now_ms)]
    ahead += [one.guaranteed_milli for one in project.reservations if now_ms < _times(one)[1]]
    return max([project.guaranteed_milli, *ahead])


def _times(reservation) -> tuple[int, int]:
    """When it begins and ends, where clocks show each time once."""
    begin, end = (
        datetime(1970, 1, 1, tzinfo=ZoneInfo(reservation.zone.name)) + timedelta(minutes=minute)
        for minute in (reservation.from_minute, reservation.until_minute)
    )
    return int(begin.timestamp() * 1000), int(end.timestamp() * 1000)


def _local(hours, now_ms: int) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=now_ms)).astimezone(ZoneInfo(hours.zone.name))


def _is_its_day(hours, day: date) -> bool:
    number = (day - EPOCH).days
    is_bound = (hours.first_day or 0) <= number and (hours.last_day is None or number <= hours.last_day)
    return is_bound and day.weekday() in hours.days


def _is_on(hours, now_ms: int) -> bool:
    now = _local(hours, now_ms)
    return _is_its_day(hours, now.date()) and hours.from_minute <= now.hour * 60 + now.minute < hours.until_minute


def _comes(hours, now_ms: int) -> bool:
    now = _local(hours, now_ms)
    if _is_its_day(hours, now.date()) and now.hour * 60 + now.minute < hours.until_minute:
        return True
    tomorrow = now.date() + timedelta(1)
    start = max(tomorrow, EPOCH + timedelta(hours.first_day or 0))
    return any(_is_its_day(hours, start + timedelta(n)) for n in range(7))
