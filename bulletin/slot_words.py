"""What state a slot is in, in the same words wherever people read of it."""

from bulletin.units import show_duration


def describe_state(state: str, drains_in_ms: int | None) -> str:
    """Add when its node is to be drained, where that is planned: "free, drained in 3 h"."""
    return state if drains_in_ms is None else f"{state}, drained in {show_duration(drains_in_ms)}"
