"""The receipt: one dim line after a cell that took a while, saying what it cost."""

from bulletin.units import show_duration, show_size
from bulletin_magic.facts import Finished, Where

_LONG_MS, _LONG_WAIT_MS = 2_000, 1_000


def describe_place(where: Where) -> str:
    """The slots for people: "GPU-0 of node1", "2 GPUs of node1"."""
    slots = where.slots[0] if len(where.slots) == 1 else f"{len(where.slots)} {where.slot_word}s"
    return f"{slots} of {where.node}"


def receipt(finished: Finished) -> str | None:
    """The line, or None for a cell that was quick and did not wait: it should feel as if it ran here."""
    usage = finished.ended.usage
    ran_ms = usage.ran_ms if usage else finished.ended.ran_ms
    if ran_ms <= _LONG_MS and finished.waited_ms <= _LONG_WAIT_MS:
        return None
    facts = [
        f"ran {show_duration(ran_ms)} on {describe_place(finished.where)}",
        f"waited {show_duration(finished.waited_ms)}",
        f"sent {show_size(finished.sent_bytes)}",
        f"returned {show_size(finished.returned_bytes)}",
    ]
    if usage is not None and usage.peak_memory_bytes is not None:
        facts.append(f"peak {show_size(usage.peak_memory_bytes)}")
    return " · ".join(facts)
