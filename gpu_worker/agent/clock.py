"""The clock of the agent. It tells durations, not times of day."""

import time


def now_ms() -> int:
    """Milliseconds by a clock that does not run backwards."""
    return time.monotonic_ns() // 1_000_000
