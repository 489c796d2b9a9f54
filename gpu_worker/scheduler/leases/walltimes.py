"""Walltimes as the order of the line knows them: in few steps, so that requests for nearly the same time are alike."""

from bisect import bisect_left

from bulletin.units import DAY_MS, HOUR_MS, MINUTE_MS

#: What people ask for; each one is at most twice the one before it.
STEPS_MS = (
    *(minutes * MINUTE_MS for minutes in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(hours * HOUR_MS for hours in (1, 2, 3, 4, 6, 8, 12)),
    *(days * DAY_MS for days in (1, 2, 4, 7, 14, 28)),
)


def stepped(walltime_ms: int, most_ms: int) -> int:
    """Round the walltime up to the next step, where that is not above `most_ms`, what the QoS gives.

    One that is above that, as an allowance may be, stays what it is.
    """
    at = bisect_left(STEPS_MS, walltime_ms)
    return max(walltime_ms, min(STEPS_MS[at], most_ms)) if at < len(STEPS_MS) else max(walltime_ms, most_ms)
