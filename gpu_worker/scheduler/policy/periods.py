"""Days, weeks and months as whole milliseconds since 1970, UTC: when a budget begins anew."""

from typing import Literal

from bulletin.units import DAY_MS

Period = Literal["day", "week", "month"]


def period_at(period: Period, now_ms: int) -> tuple[int, int]:
    """When the period around a time began, and when the next one begins. Weeks begin on Monday."""
    day = now_ms // DAY_MS
    match period:
        case "day":
            first, following = day, day + 1
        case "week":
            first = day - (day + 3) % 7  # 1970 began on a Thursday
            following = first + 7
        case "month":
            year, month = _month_of(day)
            first, following = _first_day(year, month), _first_day(year + month // 12, month % 12 + 1)
    return first * DAY_MS, following * DAY_MS


def _first_day(year: int, month: int) -> int:
    """Days from 1970 to the first of a month.

    Years are counted from March, so that the leap day comes last; five months from there are 153 days. Source:
    Richards, Explanatory Supplement to the Astronomical Almanac (3rd ed.), section 15.11.
    """
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 - 719_468


def _month_of(day: int) -> tuple[int, int]:
    """Compute the year and the month, from 1, of a day since 1970."""
    year = 1970 + day // 366  # never too late; a few steps bring it there
    while _first_day(year + 1, 1) <= day:
        year += 1
    month = 1
    while month < 12 and _first_day(year, month + 1) <= day:
        month += 1
    return year, month
