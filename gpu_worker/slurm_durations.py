"""Durations as Slurm prints them. Pure."""

import re

from bulletin.units import DAY_MS, HOUR_MS, MINUTE_MS

_LEFT = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)", re.ASCII)


def read_left_ms(left: str) -> int | None:
    """Read days-hours:minutes:seconds; None for a word: UNLIMITED, NOT_SET, or INVALID once its time is over."""
    found = _LEFT.fullmatch(left.strip())
    if found is None:
        return None
    return sum(
        int(number or 0) * unit_ms
        for number, unit_ms in zip(found.groups(), (DAY_MS, HOUR_MS, MINUTE_MS, 1000), strict=True)
    )
