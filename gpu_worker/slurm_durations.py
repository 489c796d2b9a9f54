"""Durations as Slurm prints them. Pure."""

import re
from collections.abc import Iterable

from bulletin.units import DAY_MS, HOUR_MS, MINUTE_MS
from bulletin.wire.messages import NEVER_MS

_LEFT = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)", re.ASCII)


def read_left_ms(left: str) -> int | None:
    """Read days-hours:minutes:seconds, or UNLIMITED as NEVER_MS.

    None is another word, by which nobody knows: NOT_SET, or INVALID once its time is over.
    """
    if left.strip() == "UNLIMITED":
        return NEVER_MS
    found = _LEFT.fullmatch(left.strip())
    if found is None:
        return None
    return sum(
        int(number or 0) * unit_ms
        for number, unit_ms in zip(found.groups(), (DAY_MS, HOUR_MS, MINUTE_MS, 1000), strict=True)
    )


def read_first_end_ms(parts: Iterable[str]) -> int | None:
    """Read what the parts of a job have left: how long it is until the first of them ends; None is not known.

    That of one may not be known, and the others have limits: that counts.
    """
    left_ms = [read_left_ms(left) for left in parts]
    known_ms = [one for one in left_ms if one is not None]
    first_ms = min(known_ms, default=None)
    if first_ms is not None and first_ms >= NEVER_MS and len(known_ms) < len(left_ms):
        return None
    return first_ms
