"""The receipt: one dim line after a cell that took a while, saying what it cost."""

from bulletin.units import show_duration, show_size
from bulletin_magic.display import count
from bulletin_magic.facts import Finished, Where

_LONG_MS, _LONG_WAIT_MS, _LARGE_BYTES = 2_000, 1_000, 1_000_000


def describe_place(where: Where) -> str:
    """The slots for people: "GPU-0 of node1", "a CPU slot of node1", "2 GPUs of node1"."""
    is_named = len(where.slots) == 1 and where.slots[0] != where.slot_word
    slots = where.slots[0] if is_named else count(len(where.slots), where.slot_word)
    return f"{slots} of {where.node}"


def receipt(finished: Finished) -> str | None:
    """The line, or None for a cell that was quick and did not wait: it should feel as if it ran here."""
    usage = finished.ended.usage
    ran_ms = usage.ran_ms if usage else finished.ended.ran_ms
    if ran_ms <= _LONG_MS and finished.waited_ms <= _LONG_WAIT_MS:
        return None
    facts = [f"ran {show_duration(ran_ms)} on {describe_place(finished.where)}"]
    if finished.waited_ms > _LONG_WAIT_MS:
        facts.append(f"waited {show_duration(finished.waited_ms)}")
    if finished.sent_bytes >= _LARGE_BYTES:
        facts.append(f"sent {show_size(finished.sent_bytes)}")
    if finished.returned_bytes >= _LARGE_BYTES:
        facts.append(f"returned {show_size(finished.returned_bytes)}")
    if usage is not None and usage.peak_memory_bytes is not None:
        facts.append(f"peak {show_size(usage.peak_memory_bytes)}")
    return " · ".join(facts)
