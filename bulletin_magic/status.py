"""What `%gpu` prints: where the pool is, what this notebook holds, the slots, the queue."""

from collections import Counter

from bulletin.units import show_duration, show_size
from bulletin.wire.messages import SlotPicture, WaitingPicture
from bulletin_magic.display import count, ordinal
from bulletin_magic.facts import Pictured
from bulletin_magic.receipts import describe_place

_WAITING_SHOWN = 10


def describe_pool(pictured: Pictured, place: str) -> str:
    """A few lines of text."""
    picture = pictured.picture
    states = Counter(slot.state for slot in picture.slots)
    counts = ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "none yet"
    total = f"{len(picture.slots)} {picture.slot_word}{'' if len(picture.slots) == 1 else 's'}"
    held = describe_place(pictured.where) if pictured.where else f"no {picture.slot_word}"
    lines = [
        f"The pool {place}: {total} ({counts}), up {show_duration(picture.uptime_ms)}.",
        f"This notebook holds {held}.",
    ]
    lines += [f"  {_slot(slot)}" for slot in picture.slots]
    if picture.waiting:
        lines.append(f"Waiting: {len(picture.waiting)}.")
        lines += [f"  {_waiting(waiting, picture.slot_word)}" for waiting in picture.waiting[:_WAITING_SHOWN]]
    return "\n".join(lines)


def _slot(slot: SlotPicture) -> str:
    memory = f", {show_size(slot.memory_bytes)}" if slot.memory_bytes else ""
    user = f", {slot.user}" if slot.user else ""
    return f"{slot.node} {slot.name}{memory}: {slot.state}{user}"


def _waiting(waiting: WaitingPicture, slot_word: str) -> str:
    waited = f"waited {show_duration(waiting.waited_ms)}"
    slots = count(waiting.gpus, slot_word)
    about = f", at most {show_duration(waiting.wait_ms)} more" if waiting.wait_ms is not None else ""
    return f"{ordinal(waiting.position)}: {waiting.user}, {slots}, {waiting.qos}, {waited}{about}. {waiting.reason}"
