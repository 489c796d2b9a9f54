"""What one lease does, cut into cells and hot time without a gap: the lines that the ledger gets of it. Pure."""

import msgspec

from bulletin.ids import CellId
from gpu_worker.broker.records import CellRecord, Holder, HotRecord, LeaseRecord, Span


class Meter:
    """Owns the time of one lease. All times are of one clock, in milliseconds; one that runs backwards stands still.

    Every millisecond from grant to end is in exactly one cell or in hot time, so that what the lease held is what its
    records hold, summed. Who asks a lease back from a restart goes on from where the ledger stopped (`OpenLease`).
    """

    def __init__(self, lease: LeaseRecord, accounted_until_ms: int | None = None) -> None:
        self.lease = lease
        self._until_ms = lease.granted_at_ms if accounted_until_ms is None else accounted_until_ms
        self._cell: CellId | None = None
        self._is_in_quota = True
        self._spans: list[Span] = []

    def begin(self, cell: CellId, *, is_in_quota: bool, at_ms: int) -> list[HotRecord]:
        """A cell began: the hot time before it, if there was any. The cell that still runs has to end first."""
        assert self._cell is None, "a session runs one cell at a time"
        hot = self._hot(at_ms)
        self._cell, self._is_in_quota, self._spans = cell, is_in_quota, []
        return hot

    def turn(self, *, is_in_quota: bool, at_ms: int) -> None:
        """From now on the cell is in quota, or borrowed. Where no cell runs, or nothing changes, nothing happens."""
        if self._cell is not None and is_in_quota != self._is_in_quota:
            self._cut(at_ms)
            self._is_in_quota = is_in_quota

    def end(self, record: CellRecord, at_ms: int, *, is_refunded: bool = False) -> CellRecord:
        """The cell ended: its record with the times of this meter. Refunded is all that it held until now.

        A cell whose beginning was not heard of held nothing: that time was hot, and nobody pays for it.
        """
        started_at_ms = self._spans[0].started_at_ms if self._spans else self._until_ms
        if self._cell == record.cell:
            self._cut(at_ms)
        spans = tuple(self._spans)
        held_ms = sum(span.length_ms for span in spans)
        self._cell, self._spans = None, []
        return msgspec.structs.replace(
            record,
            started_at_ms=started_at_ms,
            ended_at_ms=self._until_ms,
            held_ms=held_ms,
            ran_ms=min(record.ran_ms, held_ms),
            spans=spans,
            refunded_ms=held_ms if is_refunded else 0,
        )

    def close(self, why: str, at_ms: int) -> list[HotRecord | LeaseRecord]:
        """The lease ended: its last hot time, and its end. A cell that still runs has to end first."""
        assert self._cell is None, "the cell ends before its lease"
        hot = self._hot(at_ms)
        return [*hot, msgspec.structs.replace(self.lease, ended_at_ms=self._until_ms, why=why)]

    def _hot(self, at_ms: int) -> list[HotRecord]:
        started_at_ms, self._until_ms = self._until_ms, max(self._until_ms, at_ms)
        if started_at_ms == self._until_ms:
            return []
        holder = {name: getattr(self.lease, name) for name in Holder.__struct_fields__}
        return [HotRecord(**holder, started_at_ms=started_at_ms, ended_at_ms=self._until_ms)]

    def _cut(self, at_ms: int) -> None:
        started_at_ms, self._until_ms = self._until_ms, max(self._until_ms, at_ms)
        if started_at_ms != self._until_ms:
            self._spans.append(Span(started_at_ms, self._until_ms, self._is_in_quota))
