"""Time zones by their names in the tz database, as the tables that the scheduler has them in."""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from gpu_worker.scheduler.policy.class_hours import Zone

#: So far back and ahead a table goes: before and after that it is as in these two Januaries.
_FIRST, _LAST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC)
#: What is in that database, too, and is no place: on another computer it is another time.
_NO_PLACES = frozenset({"Factory", "localtime", "posixrules"})
#: No clocks are set forward or back twice within so long.
_STEP = timedelta(days=7)
_SECOND = timedelta(seconds=1)


@cache
def find_zone(name: str) -> Zone | None:
    """Look a time zone up by its name; None if there is none.

    It is what the tz database of this computer says, and the same for as long as the process runs.
    """
    if not name or len(name) > 64 or name != name.strip() or name in _NO_PLACES:
        return None
    try:
        info = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # not a name, or that of something else in that folder
        return None
    ahead = _ahead(info, _FIRST)
    offsets = [(_ms(_FIRST), ahead)]
    at = _FIRST
    while at < _LAST:
        if _ahead(info, at + _STEP) != ahead:
            low, high = at, at + _STEP
            while high - low > _SECOND:
                middle = low + (high - low) // (2 * _SECOND) * _SECOND
                low, high = (low, middle) if _ahead(info, middle) != ahead else (middle, high)
            ahead = _ahead(info, high)
            offsets.append((_ms(high), ahead))
        at += _STEP
    return Zone(name, tuple(offsets))


@cache
def zone_names() -> tuple[str, ...]:
    """Return all names that there are, sorted: for who has mistyped one."""
    return tuple(sorted(available_timezones() - _NO_PLACES))


def _ahead(info: ZoneInfo, at: datetime) -> int:
    """Return how far clocks are ahead of UTC at a time, in milliseconds."""
    ahead = at.astimezone(info).utcoffset()
    assert ahead is not None, "its time zone is known"
    return int(ahead / timedelta(milliseconds=1))


def _ms(at: datetime) -> int:
    return int(at.timestamp()) * 1000
