"""What one lease does, cut into cells and hot time without a gap: the lines that the ledger gets of it. Pure."""

from typing import NamedTuple

import msgspec

from bulletin.codes import LeaseEnd
from bulletin.ids import CellId
from gpu_worker.broker.records import CellRecord, HotRecord, LeaseHolder, LeaseRecord, Span, holder_fields


class CellUnderWay(NamedTuple):
    """What a cell that runs has held so far; the ledger has nothing of it yet."""

    holder: LeaseHolder
    cell: CellId
    spans: tuple[Span, ...]  #: the first begins when the cell did


class Meter:
    """Owns the time of one lease. All times are of one clock, in milliseconds; one that runs backwards stands still.

    Every millisecond from grant to end is in exactly one cell or in hot time, so that what the lease held is what its
    records hold, summed. Hot time is told with what ends it: a cell that nobody heard of may yet be found in it. Who
    asks a lease back from a restart goes on from where the ledger stopped (`OpenLease`).
    """

    def __init__(self, lease: LeaseRecord, accounted_until_ms: int | None = None) -> None:
        self.lease = lease
        self.cell: CellId | None = None  #: the one that runs
        self._until_ms = lease.granted_at_ms if accounted_until_ms is None else accounted_until_ms  #: all is told
        self._now_ms = self._until_ms
        self.began_ms = 0  #: when that one did
        self.charged_milli: int | None = None  #: what was agreed for that one; None is what it holds
        self._is_in_quota = True
        self._spans: list[Span] = []

    def begin(self, cell: CellId, *, is_in_quota: bool, at_ms: int, charged_milli: int | None = None) -> None:
        """Begin to count a cell, which is charged so many thousandths of a slot; None is what it holds.

        One that still ran has ended, nobody knows when: `add_earlier` finds its time, or it was hot.
        """
        self.cell, self._is_in_quota, self._spans, self.charged_milli = cell, is_in_quota, [], charged_milli
        self.began_ms = self._now_ms = max(self._until_ms, at_ms)

    def under_way(self, now_ms: int) -> CellUnderWay | None:
        """Tell what the cell that runs has held until now, cut as its record will be; None where none runs."""
        if self.cell is None:
            return None
        last = Span(self._now_ms, max(self._now_ms, now_ms), self._is_in_quota)
        return CellUnderWay(self.lease, self.cell, (*self._spans, last))

    def turn(self, *, is_in_quota: bool, at_ms: int) -> None:
        """Count the cell as in quota, or as borrowed, from now on. Where no cell runs, nothing happens."""
        if self.cell is not None and is_in_quota != self._is_in_quota:
            self._cut(at_ms)
            self._is_in_quota = is_in_quota

    def end(
        self, record: CellRecord, at_ms: int, *, began_ms: int | None = None, is_refunded: bool = False
    ) -> list[HotRecord | CellRecord]:
        """End the cell that runs: return the hot time before it, and its record with the times of this meter.

        `began_ms` is when it began by its agent's clock, where that is known: it may be otherwise than was heard, and
        the meter may have turned after `at_ms`. Refunded is all that it held.
        """
        assert self.cell == record.cell, "it is the one that runs"
        self._cut(at_ms)
        if began_ms is not None:
            self._move(max(self._until_ms, began_ms), at_ms)
        hot = self._take_hot_time(self.began_ms)
        record = msgspec.structs.replace(record, charged_milli=self.charged_milli)
        cell = self._fill(record, self.began_ms, tuple(self._spans), is_refunded=is_refunded)
        self._until_ms, self.cell, self._spans = self._now_ms, None, []
        return [*hot, cell]

    def _move(self, began_ms: int, ended_ms: int) -> None:
        """Let the cell that runs have run between these times: its first and last stretches grow or shrink."""
        ended_ms = max(began_ms, ended_ms)
        first = self._spans[0] if self._spans else Span(began_ms, ended_ms, self._is_in_quota)
        spans = [Span(began_ms, first.ended_at_ms, first.is_in_quota), *self._spans[1:]]
        cut = [Span(max(began_ms, one.started_at_ms), min(ended_ms, one.ended_at_ms), one.is_in_quota) for one in spans]
        self._spans = [one for one in cut if one.length_ms > 0]
        self.began_ms, self._now_ms = began_ms, ended_ms

    def add_earlier(
        self, record: CellRecord, started_at_ms: int, ended_at_ms: int, *, is_in_quota: bool, is_refunded: bool = False
    ) -> list[HotRecord | CellRecord]:
        """Give a cell that ended, and whose beginning nobody heard of, its part of the time not yet told.

        That is before the cell that runs. Cells of this kind must come in the order in which they ran.
        """
        first_ms = max(self._until_ms, started_at_ms)
        last_ms = max(first_ms, ended_at_ms)
        if self.cell is not None:
            first_ms, last_ms = min(first_ms, self.began_ms), min(last_ms, self.began_ms)
        hot = self._take_hot_time(first_ms)
        spans = (Span(first_ms, last_ms, is_in_quota),) if first_ms < last_ms else ()
        self._until_ms, self._now_ms = last_ms, max(self._now_ms, last_ms)
        return [*hot, self._fill(record, first_ms, spans, is_refunded=is_refunded)]

    def without_charge(self, record: CellRecord) -> CellRecord:
        """Return the record of a cell that nobody is charged for: its time is hot."""
        return self._fill(record, self._until_ms, (), is_refunded=False)

    def close(self, why: LeaseEnd, at_ms: int | None = None) -> list[HotRecord | LeaseRecord]:
        """End the lease: return its last hot time, and its end. A cell that still runs has to end first.

        Without a time, nobody knows when: what is told is all that there was.
        """
        assert self.cell is None, "the cell ends before its lease"
        hot = self._take_hot_time(self._until_ms if at_ms is None else at_ms)
        return [*hot, msgspec.structs.replace(self.lease, ended_at_ms=self._until_ms, why=why)]

    def _take_hot_time(self, at_ms: int) -> list[HotRecord]:
        started_at_ms, self._until_ms = self._until_ms, max(self._until_ms, at_ms)
        if started_at_ms == self._until_ms:
            return []
        return [HotRecord(**holder_fields(self.lease), started_at_ms=started_at_ms, ended_at_ms=self._until_ms)]

    def _cut(self, at_ms: int) -> None:
        started_at_ms, self._now_ms = self._now_ms, max(self._now_ms, at_ms)
        if started_at_ms != self._now_ms:
            self._spans.append(Span(started_at_ms, self._now_ms, self._is_in_quota))

    def _fill(
        self, record: CellRecord, started_at_ms: int, spans: tuple[Span, ...], *, is_refunded: bool
    ) -> CellRecord:
        held_ms = sum(span.length_ms for span in spans)
        return msgspec.structs.replace(
            record,
            **holder_fields(self.lease),
            started_at_ms=started_at_ms,
            ended_at_ms=spans[-1].ended_at_ms if spans else started_at_ms,
            held_ms=held_ms,
            ran_ms=min(record.ran_ms, held_ms),
            spans=spans,
            refunded_ms=held_ms if is_refunded else 0,
        )
