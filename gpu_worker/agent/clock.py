"""The clock of the agent. It tells durations, not times of day."""

import time


def now_ms() -> int:
    """Read a clock that does not run backwards, in milliseconds; only differences mean something."""
    return time.monotonic_ns() // 1_000_000
