"""What the ledger is to have, on its way there: in order, together where it comes together, waiting where it must."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec
import structlog
from sqlalchemy.exc import DataError, IntegrityError

from bulletin.errors import LedgerAway
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.metering import stray
from gpu_worker.broker.records import CellRecord, Record
from gpu_worker.broker.short_cells import ShortCells, Then, ToWrite

#: What comes within this time is written together.
_GATHER_S = 0.1
_BATCH = 500
#: How long to wait before a ledger that did not answer is asked again.
_AWAY_S = 1.0


class _QueuedWrite(msgspec.Struct, frozen=True):
    records: Sequence[Record]
    stray: CellRecord | None
    then: tuple[Then, ...]


class Writer:
    """The only one who writes while the broker runs. Nobody waits for it but those who asked to hear."""

    def __init__(
        self, ledger: Ledger, now_ms: Callable[[], int], note: Callable[[Sequence[Record]], None] = lambda _: None
    ) -> None:
        """Take who is told of all records, as they come; not of those that the ledger may have already."""
        self._ledger, self._now_ms, self._note = ledger, now_ms, note
        self._short_cells = ShortCells()
        self._queue: asyncio.Queue[_QueuedWrite] = asyncio.Queue()
        self._batch: list[_QueuedWrite] = []  #: what is being written
        #: Why what waits cannot be written now, as a sentence; empty where nothing is in the way.
        self.problem = ""
        self._log = structlog.get_logger("broker")

    def keep(self, records: Sequence[Record], then: Then | None = None) -> None:
        """Write these as soon as the ledger answers, after all that came before of their leases; then do that.

        Many short cells are held back for some seconds (`short_cells`).
        """
        self._note(records)
        self._enqueue(self._short_cells.take(records, then, self._now_ms()))

    def tidy(self) -> None:
        """Write what was held back for long enough. To be called once a second."""
        self._enqueue(self._short_cells.take_old(self._now_ms()))

    def _enqueue(self, found: Iterable[ToWrite]) -> None:
        for one in found:
            self._queue.put_nowait(_QueuedWrite(one.records, None, one.then))

    def keep_stray(self, record: CellRecord, then: Then) -> None:
        """Write a cell of a lease that is no more, unless the ledger has it; then do that."""
        self._queue.put_nowait(_QueuedWrite((), record, (then,)))

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            self._batch = [await self._queue.get()]
            await asyncio.sleep(_GATHER_S)
            self._batch += self._waiting(_BATCH)
            await self._write_in_time(self._batch)
            written, self._batch = self._batch, []
            for entry in written:
                for then in entry.then:
                    await then()

    @property
    def unwritten(self) -> int:
        """How many entries wait for the ledger."""
        return self._queue.qsize() + len(self._batch)

    def close(self) -> None:
        """Write what is left, where the ledger answers. `run` has ended; what it was writing may be there already."""
        self._enqueue(self._short_cells.close_all())
        left = self._batch + self._waiting()
        try:
            self._write(left)
        except LedgerAway as error:
            self._log.warning("the broker ends before the ledger answers", entries=len(left), problem=str(error))

    def _waiting(self, limit: int | None = None) -> list[_QueuedWrite]:
        found: list[_QueuedWrite] = []
        while not self._queue.empty() and (limit is None or len(found) < limit):
            found.append(self._queue.get_nowait())
        return found

    async def _write_in_time(self, batch: Sequence[_QueuedWrite]) -> None:
        """Write as soon as the ledger answers. Should this broker end before, the agents still have their cells."""
        while True:
            try:
                written = await asyncio.to_thread(self._write, batch)
            except LedgerAway as error:
                cells = sum(isinstance(record, CellRecord) for entry in batch for record in entry.records)
                self.problem = str(error)
                self._log.warning("cells wait for the ledger", cells=cells, problem=self.problem)
                await asyncio.sleep(_AWAY_S)
            else:
                self.problem = ""
                for record in written:
                    if isinstance(record, CellRecord):
                        log = self._log.info if record.runs == 1 else self._log.debug
                        log(
                            "cell",
                            cell=record.cell,
                            lease=record.lease,
                            user=record.user,
                            outcome=record.outcome,
                            runs=record.runs,
                        )
                return

    def _write(self, batch: Sequence[_QueuedWrite]) -> list[Record]:
        records: list[Record] = []
        for entry in batch:
            records += entry.records
            if entry.stray is not None and not self._ledger.has_run(entry.stray.cell, entry.stray.lease):
                records += stray(entry.stray, self._ledger.ended_ms(entry.stray.lease))
        return self._record(records)

    def _record(self, records: Sequence[Record]) -> list[Record]:
        """Write; a record that the database will not have is logged in full, and harms no other."""
        try:
            return self._ledger.record(records, self._now_ms())
        except (DataError, IntegrityError, OverflowError, ValueError) as error:
            if len(records) > 1:
                return [kept for one in records for kept in self._record([one])]
            self._log.error("the ledger refuses a record", row=msgspec.to_builtins(records[0]), problem=str(error))
            return []
