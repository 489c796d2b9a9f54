"""What a node says of itself and of what it has measured, held to this world: no more than any machine has. Pure.

A node that says more of itself is refused with the field's name, before anything is counted by it; others go on. Of its
leases those that cannot be are left out, and not the node: names in them are users' own. What was measured is cut, so
that a cell is recorded in any case.
"""

import math
from collections.abc import Iterator
from typing import TypeVar

from msgspec import structs

from bulletin.ids import AgentId, CellId
from bulletin.wire import messages as wire
from gpu_worker.broker.ledger_notes import printable

#: No machine has more slots, leases, CPUs or memory, and no job's time is longer.
_MOST_SLOTS, _MOST_CPUS, _MOST_BYTES, _LONGEST_MS = 4096, 2**20, 2**50, wire.NEVER_MS
#: So many leases there are beside one on each slot: of slots that are no more, and of what ends.
_MORE_LEASES = 128
#: Words are short, and paths are as long as the system's.
_WORD, _PATH, _SENTENCE = 256, 4096, 1000
_MOST_WORDS, _MOST_UID, _MOST_COUNT = 64, 2**32, 2**53
_Measured = TypeVar("_Measured", int, int | None)


def find_excess(message: wire.Register) -> str:
    """Say which field of a registration cannot be, and why; empty where all can."""
    return next(_excesses(message), "")


def is_possible(held: wire.HeldLease) -> bool:
    """Tell whether a node can have such a lease."""
    names = (held.lease, held.session, held.kernel, held.user, held.project, held.qos)
    return (
        all(0 < len(name) <= _WORD for name in names)
        and len(held.cell or "") <= _WORD
        and len(held.slots) <= _MOST_SLOTS
        and 0 <= held.cpus <= _MOST_CPUS
        and 0 <= held.memory_bytes <= _MOST_BYTES
    )


def limit_measures(message: wire.FromAgent) -> wire.FromAgent:
    """Cut what a node says that it measured, and what it says of that, to what can be and can be read."""
    match message:
        case wire.CellDone(usage=usage):
            busy = usage.mean_utilization
            usage = structs.replace(
                usage,
                peak_memory_bytes=_limit(usage.peak_memory_bytes, _MOST_BYTES),
                mean_utilization=min(max(0.0, busy), 1.0) if busy is not None and math.isfinite(busy) else None,
                bytes_sent=_limit(usage.bytes_sent, _MOST_COUNT),
                bytes_returned=_limit(usage.bytes_returned, _MOST_COUNT),
                walltime_ms=_limit(usage.walltime_ms, _LONGEST_MS),
            )
            return structs.replace(message, usage=usage, label=message.label[:_WORD])
        case wire.Ping():
            named = [(name, n) for name, n in message.counters.items() if name.isprintable() and len(name) <= _WORD]
            counters = {name: _limit(count, _MOST_COUNT) for name, count in named[:_MOST_WORDS]}
            leaves_in_ms, day_ms = _limit(message.leaves_in_ms, _LONGEST_MS), _limit(message.day_ms, _MOST_COUNT)
            return structs.replace(message, counters=counters, leaves_in_ms=leaves_in_ms, day_ms=day_ms)
        case wire.HandedOver():
            sentence, walltime_ms = _limit_words(message.sentence), _limit(message.walltime_ms, _LONGEST_MS)
            return structs.replace(message, sentence=sentence, walltime_ms=walltime_ms)
        case wire.LeaseOver():
            return structs.replace(message, sentence=_limit_words(message.sentence))
        case _:
            return message


def limit_note(note: wire.CellNote, agent: AgentId, node: str) -> wire.CellNote:
    """Hold what a node says of a cell to what can be read, and the cell to that node."""
    return structs.replace(
        note,
        cell=CellId(note.cell[:_WORD]),
        agent=agent,
        node=node,
        line=_limit_words(note.line),
        label=_limit_words(note.label),
        since_ms=_limit(note.since_ms, _LONGEST_MS),
    )


def _limit_words(words: str) -> str:
    """Make one line of what a node says to notebooks, pages and logs, with nothing in it that a terminal obeys."""
    return printable(words[:_SENTENCE])


def _limit(measured: _Measured, most: int) -> _Measured:
    return measured if measured is None else min(max(0, measured), most)


def _excesses(message: wire.Register) -> Iterator[str]:
    address = message.address
    yield from _in_words("agent", message.agent, least=1)
    yield from _in_words("node", message.node, least=1)
    for field, word in (
        ("address", address.address),
        ("address.public_key", address.public_key),
        ("version", message.version),
        ("process", message.process),
        ("address.boot", address.boot),
        ("shared_account", message.shared_account),
    ):
        yield from _in_words(field, word)
    yield from _in_words("address.door", address.door, most=_PATH)
    yield from _in_numbers("address.door_uid", address.door_uid, _MOST_UID)
    yield from _in_numbers("cpus", message.cpus, _MOST_CPUS)
    yield from _in_numbers("memory_bytes", message.memory_bytes, _MOST_BYTES)
    yield from _in_numbers("leaves_in_ms", message.leaves_in_ms, _LONGEST_MS)
    yield from _in_numbers("number of missing_protections", len(message.missing_protections), _MOST_WORDS)
    for word in message.missing_protections:
        yield from _in_words("missing_protections", word, least=1)
    yield from _in_slots(message.slots)
    yield from _in_numbers("number of held leases", len(message.held), len(message.slots) + _MORE_LEASES)


def _in_slots(slots: tuple[wire.SlotOffer, ...]) -> Iterator[str]:
    yield from _in_numbers("number of slots", len(slots), _MOST_SLOTS)
    for slot in slots:
        yield from _in_words("slots.slot", slot.slot, least=1)
        yield from _in_words("slots.name", slot.name)
        yield from _in_numbers("slots.memory_bytes", slot.memory_bytes, _MOST_BYTES)
    if len({slot.slot for slot in slots}) < len(slots):
        yield "its slots has the same one twice"


def _in_words(field: str, word: str, *, least: int = 0, most: int = _WORD) -> Iterator[str]:
    if not least <= len(word) <= most:
        yield f"its {field} has {len(word)} characters, and may have {least} to {most}"
    elif not word.isprintable():
        yield f"its {field} has characters that cannot be printed"


def _in_numbers(field: str, number: int | None, most: int) -> Iterator[str]:
    if number is not None and not 0 <= number <= most:
        yield f"its {field} is {number}, and may be 0 to {most}"
