"""The receipt: one dim line after a cell that took a while, saying what it cost, and advice where there is some."""

from collections import deque
from collections.abc import Iterator

import msgspec

from bulletin.codes import CellOutcome
from bulletin.pool_words import describe_outcome
from bulletin.units import show_duration, show_size
from bulletin.wait_words import count
from bulletin_magic.connection.deliveries import CellFinished
from bulletin_magic.connection.resource_spec import LeaseInfo
from bulletin_magic.output import text_table

#: What is shorter, or smaller, is not worth its words.
_LONG_MS = 2_000
_LONG_WAIT_MS = 1_000
_LARGE_BYTES = 1_000_000
#: A shorter cell says little about the next.
_TELLING_MS = 10_000
#: A GPU that is busy for less of the time does not pay.
_IDLE = 0.05
#: A slice must have a quarter more memory than the cell used: libraries keep some of their own.
_ROOM = 1.25
#: So many receipts are kept.
_KEPT_RECEIPTS = 100
#: One that is busy for less has computed nothing worth the name.
_NEVER = 0.005
_NEVER_BUSY = (
    "The cell computed next to nothing on its GPU. If it was to: a cell without %%gpu sees no GPU, so whatever asks "
    "`torch.cuda.is_available()` belongs in one with it. Else it would run as well without a GPU, and not wait."
)
_HEAD = ("cell", "ended", "ran", "waited", "sent", "returned", "peak", "GPU busy", "where")
_FIGURES = {2, 3, 4, 5, 6, 7}


def describe_slots(lease: LeaseInfo) -> str:
    """Name the slots of a lease for people: "GPU-0 of node1", "2 GPUs of node1", "all of node1 (2 GPUs)"."""
    is_named = len(lease.slots) == 1 and lease.slots[0] != lease.slot_word
    slots = lease.slots[0] if is_named else count(len(lease.slots), lease.slot_word)
    return f"all of {lease.node} ({slots})" if lease.is_exclusive else f"{slots} of {lease.node}"


#: How a cell ended of which the pool could not say more.
LOST = "lost"


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell cost. Durations in milliseconds, sizes in bytes; None is not known."""

    number: int  #: of the cell, as its prompt shows it
    outcome: str
    lease: LeaseInfo
    ran_ms: int
    waited_ms: int
    sent_bytes: int
    returned_bytes: int
    peak_memory_bytes: int | None = None
    mean_utilization: float | None = None  #: between 0 and 1
    parts: int = 1  #: how often the cell went to the pool
    part_word: str = "block"  #: what each of the parts is: a `with gpu:` block, or an element of --each

    @property
    def ended(self) -> str:
        """How it ended, in the words of the hub's page; "lost" where the pool could not say."""
        return self.outcome if self.outcome == LOST else describe_outcome(CellOutcome(self.outcome))

    @property
    def is_long(self) -> bool:
        """Whether the cell took a while, or waited: a quick one should feel as if it ran here."""
        return self.ran_ms > _LONG_MS or self.waited_ms > _LONG_WAIT_MS


class ReceiptList:
    """The receipts of a notebook's last cells on the pool, and which advice was given already."""

    def __init__(self) -> None:
        self._receipts: deque[Receipt] = deque(maxlen=_KEPT_RECEIPTS)
        self._advised: set[str] = set()

    def keep(self, receipt: Receipt) -> None:
        """Keep a receipt of which nothing is shown below its cell.

        The blocks or elements of one cell follow one another and are kept as one receipt.
        """
        is_next_part = bool(self._receipts) and self._receipts[-1].number == receipt.number
        self._receipts.append(_merge_parts(self._receipts.pop(), receipt) if is_next_part else receipt)

    def add(self, receipt: Receipt) -> list[str]:
        """Keep a receipt and return the lines to show below its cell. Each advice comes once in a notebook."""
        self.keep(receipt)
        if not receipt.is_long:
            return []
        advice = {about: text for about, text in advise(receipt) if about not in self._advised}
        self._advised |= advice.keys()
        return [describe_receipt(receipt), *advice.values()]

    def last(self, number: int) -> list[Receipt]:
        """Return the newest `number` receipts, the oldest of them first."""
        return list(self._receipts)[-number:] if number else []


def receipt_of(finished: CellFinished, number: int, part_word: str = "block") -> Receipt:
    """Make the receipt of a cell that has ended; by the agent's figures where it gives them."""
    usage = finished.ended.usage
    return Receipt(
        number=number,
        outcome=finished.ended.outcome,
        lease=finished.lease,
        ran_ms=usage.ran_ms if usage else finished.ended.ran_ms,
        waited_ms=finished.waited_ms,
        sent_bytes=finished.sent_bytes,
        returned_bytes=finished.returned_bytes,
        peak_memory_bytes=usage.peak_memory_bytes if usage else None,
        mean_utilization=usage.mean_utilization if usage else None,
        part_word=part_word,
    )


def _merge_parts(before: Receipt, part: Receipt) -> Receipt:
    """Add one more part of a cell to its receipt: sums, the largest peak, and the rest as it was last."""
    peaks = [one.peak_memory_bytes for one in (before, part) if one.peak_memory_bytes is not None]
    busy = [(one.mean_utilization, one.ran_ms) for one in (before, part) if one.mean_utilization is not None]
    busy_ms = sum(ran_ms for _, ran_ms in busy)
    return msgspec.structs.replace(
        part,
        ran_ms=before.ran_ms + part.ran_ms,
        waited_ms=before.waited_ms + part.waited_ms,
        sent_bytes=before.sent_bytes + part.sent_bytes,
        returned_bytes=before.returned_bytes + part.returned_bytes,
        peak_memory_bytes=max(peaks, default=None),
        mean_utilization=sum(share * ran_ms for share, ran_ms in busy) / busy_ms if busy_ms else None,
        parts=before.parts + part.parts,
    )


def describe_receipt(receipt: Receipt) -> str:
    """Say in a line what a cell cost: the figures that are worth their words."""
    parts = [count(receipt.parts, receipt.part_word)] if receipt.parts > 1 else []
    facts = [*parts, f"ran {show_duration(receipt.ran_ms)} on {describe_slots(receipt.lease)}"]
    if receipt.waited_ms > _LONG_WAIT_MS:
        facts.append(f"waited {show_duration(receipt.waited_ms)}")
    if receipt.sent_bytes >= _LARGE_BYTES:
        facts.append(f"sent {show_size(receipt.sent_bytes)}")
    if receipt.returned_bytes >= _LARGE_BYTES:
        facts.append(f"returned {show_size(receipt.returned_bytes)}")
    if receipt.peak_memory_bytes is not None:
        facts.append(f"peak {show_size(receipt.peak_memory_bytes)}")
    if receipt.mean_utilization is not None:
        facts.append(f"GPU {_percent(receipt.mean_utilization)} busy")
    if receipt.lease.price_percent is not None or receipt.lease.is_exclusive:
        facts.append(f"charged as {_charged(receipt.lease)}")
    if receipt.lease.is_in_quota is not None:
        facts.append("in quota" if receipt.lease.is_in_quota else "borrowed")
    return " · ".join(facts)


def _charged(lease: LeaseInfo) -> str:
    """Count what the slots of a lease are charged as at their price, if any: "4 GPUs", "0.5 GPUs"."""
    number = len(lease.slots) * (100 if lease.price_percent is None else lease.price_percent) / 100
    return f"{number:g} {lease.slot_word}{'' if number == 1 else 's'}"


def advise(receipt: Receipt) -> Iterator[tuple[str, str]]:
    """Yield what would serve the person better next time: what it is about, and a sentence."""
    lease, peak, busy = receipt.lease, receipt.peak_memory_bytes, receipt.mean_utilization
    if receipt.ran_ms < _TELLING_MS or receipt.outcome != "returned":
        return
    if busy is not None and busy < _NEVER:
        yield "never", _NEVER_BUSY
    elif busy is not None and busy < _IDLE:
        idle = _percent(1 - busy)
        yield "idle", f"The GPU was idle {idle} of the time: the cell would run as well without one, and not wait."
    elif peak is not None and len(lease.slots) == 1:
        fitting = [size for size in lease.sizes if _ROOM * peak <= size < lease.memory_bytes]
        if fitting:
            used = f"The cell used {show_size(peak)} of the GPU's {show_size(lease.memory_bytes)}"
            yield "memory", f"{used}: a GPU or slice of {show_size(min(fitting))} would do, and may be free sooner."


def describe_receipts(receipts: list[Receipt]) -> dict[str, str]:
    """Return the table of `%gpu receipts` as a bundle of MIME types."""
    if not receipts:
        return text_table.as_bundle(_HEAD, [], ["No cell of this notebook has run on the pool yet."], _FIGURES)
    return text_table.as_bundle(_HEAD, [_row(one) for one in receipts], [_describe_total(receipts)], _FIGURES)


def _row(receipt: Receipt) -> tuple[str, ...]:
    busy, peak = receipt.mean_utilization, receipt.peak_memory_bytes
    return (
        f"[{receipt.number}]" + (f" {count(receipt.parts, receipt.part_word)}" if receipt.parts > 1 else ""),
        receipt.ended,
        show_duration(receipt.ran_ms),
        show_duration(receipt.waited_ms),
        show_size(receipt.sent_bytes),
        show_size(receipt.returned_bytes),
        "" if peak is None else show_size(peak),
        "" if busy is None else _percent(busy),
        describe_slots(receipt.lease),
    )


def _describe_total(receipts: list[Receipt]) -> str:
    cells = "1 cell" if len(receipts) == 1 else f"{len(receipts)} cells"
    ran, waited = (sum(getattr(one, name) for one in receipts) for name in ("ran_ms", "waited_ms"))
    return f"{cells}: ran {show_duration(ran)} and waited {show_duration(waited)} in all."


def _percent(share: float) -> str:
    return f"{share:.0%}"
