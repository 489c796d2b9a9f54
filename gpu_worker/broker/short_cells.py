"""Short cells, many in a while: one row in the ledger for several of one lease, so that nobody fills it. Pure.

Each session has some rows of its own a minute, so that what people do by hand is told cell by cell. Of what comes
beyond, cells below a second are held back for some seconds, and written as one: what they held, ran and sent is added
up, and the hot time between them stands before them. The agent keeps them until they are written, as it does all cells.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

import msgspec

from bulletin.codes import CellOutcome
from bulletin.ids import CellId, LeaseId, SessionId
from bulletin.units import MINUTE_MS
from gpu_worker.broker.records import CellRecord, HotRecord, LeaseHolder, Record, Span, holder_fields

#: Below this a cell is short. So a session has no more than sixty others a minute.
SHORT_MS = 1_000
#: So many cells of a session have a row of their own in each minute, however short they are.
OWN_ROWS = 20
#: So long, and up to so many, are they gathered.
GATHER_MS, MOST = 5_000, 1_000
#: How cells end that leave their session as it was: the notebook's next one follows at once.
_PLAIN = (CellOutcome.RETURNED, CellOutcome.RAISED, CellOutcome.INTERRUPTED)

#: What to do when something is written.
Then = Callable[[], Awaitable[None]]


class ToWrite(msgspec.Struct, frozen=True):
    """What is to be written together, and what to do then."""

    records: Sequence[Record]
    then: tuple[Then, ...] = ()


class _GatheredCells(msgspec.Struct):
    """Cells of one lease that follow one another."""

    first: CellRecord
    started_ms: int  #: of the hot time before the first, by the ledger's clock
    until_ms: int
    opened_ms: int
    cells: list[CellRecord]
    then: list[Then]

    @property
    def is_in_quota(self) -> bool | None:
        """Whether a guarantee covered them; None where none has held its slots for a millisecond yet."""
        return next((span.is_in_quota for cell in self.cells for span in cell.held), None)


class ShortCells:
    """Holds back what can be written as one row."""

    def __init__(self) -> None:
        self._open: dict[LeaseId, _GatheredCells] = {}
        self._own_rows: dict[SessionId, tuple[int, int]] = {}  #: the minute, and how many there were in it

    def take(self, records: Sequence[Record], then: Then | None, now_ms: int) -> Iterator[ToWrite]:
        """Yield what is to be written now, in this order: records of one lease stay in theirs.

        `then` is for when all of these are written; without records, when all before are.
        """
        done = () if then is None else (then,)
        if not records and done:
            yield from self.close_all()
        hot, cell = _short_cell(records)
        if cell is not None and self._take_own_row(cell.session, now_ms):
            cell = None
        if cell is None:
            yield from self._close(dict.fromkeys(one.lease for one in records if isinstance(one, LeaseHolder)))
            if records or done:
                yield ToWrite(records, done)
            return
        known = self._open.get(cell.lease)
        if known is not None and not _fits(known, hot, cell, now_ms):
            yield from self._close([cell.lease])
            known = None
        if known is None:
            if hot is not None and not _is_brief(hot):
                yield ToWrite([hot])
                hot = None
            started_ms = cell.started_at_ms if hot is None else hot.started_at_ms
            known = self._open[cell.lease] = _GatheredCells(cell, started_ms, started_ms, now_ms, [], [])
        known.cells.append(cell)
        known.then += done
        known.until_ms = cell.ended_at_ms

    def take_old(self, now_ms: int) -> Iterator[ToWrite]:
        """Yield what has been gathered for long enough."""
        yield from self._close([lease for lease, one in self._open.items() if now_ms - one.opened_ms >= GATHER_MS])
        minute = now_ms // MINUTE_MS
        self._own_rows = {session: own for session, own in self._own_rows.items() if own[0] == minute}

    def close_all(self) -> Iterator[ToWrite]:
        """Yield all that is held back."""
        yield from self._close(list(self._open))

    def _take_own_row(self, session: SessionId, now_ms: int) -> bool:
        minute, count = self._own_rows.get(session, (0, 0))
        count = count + 1 if minute == now_ms // MINUTE_MS else 1
        self._own_rows[session] = now_ms // MINUTE_MS, count
        return count <= OWN_ROWS

    def _close(self, leases: Iterable[LeaseId]) -> Iterator[ToWrite]:
        for lease in leases:
            gathered = self._open.pop(lease, None)
            if gathered is not None:
                yield ToWrite(list(_as_one(gathered)), tuple(gathered.then))


def mark(cell: CellId) -> str:
    """Return what a row remembers of each of its cells but the first: eight letters, with which an agent finds it."""
    return base64.b32encode(hashlib.blake2b(cell.encode(), digest_size=5).digest()).decode()


def split_marks(marks: str | None) -> list[str]:
    """Take the marks of a row apart."""
    return [] if marks is None else [marks[at : at + 8] for at in range(0, len(marks), 8)]


def _short_cell(records: Sequence[Record]) -> tuple[HotRecord | None, CellRecord | None]:
    """Return the short cell that the records are, and the hot time before it; nothing where they are more than that."""
    match records:
        case [CellRecord() as cell]:
            hot = None
        case [HotRecord() as hot, CellRecord() as cell] if hot.ended_at_ms == cell.started_at_ms:
            pass
        case _:
            return None, None
    is_plain = cell.outcome in _PLAIN and not cell.refunded_ms and len(cell.held) <= 1
    return (hot, cell) if is_plain and _is_brief(cell) else (None, None)


def _is_brief(one: HotRecord | CellRecord) -> bool:
    """Tell whether it is short and within a minute: what is added up is in the same hour, and the same day."""
    is_within = one.started_at_ms // MINUTE_MS == one.ended_at_ms // MINUTE_MS
    return is_within and one.ended_at_ms - one.started_at_ms < SHORT_MS


def _fits(known: _GatheredCells, hot: HotRecord | None, cell: CellRecord, now_ms: int) -> bool:
    started_ms = cell.started_at_ms if hot is None else hot.started_at_ms
    in_quota = {span.is_in_quota for span in cell.held} | ({known.is_in_quota} - {None})
    return (
        started_ms == known.until_ms
        and (hot is None or _is_brief(hot))
        and known.started_ms // MINUTE_MS == cell.ended_at_ms // MINUTE_MS
        and cell.charged_milli == known.first.charged_milli
        and len(in_quota) <= 1
        and len(known.cells) < MOST
        and now_ms - known.opened_ms < GATHER_MS
    )


def _as_one(gathered: _GatheredCells) -> Iterator[Record]:
    """Make the hot time of all of them, which stands before them, and the one row that they are."""
    cells, first = gathered.cells, gathered.first
    held_ms = sum(cell.held_ms for cell in cells)
    began_ms = gathered.until_ms - held_ms
    if began_ms > gathered.started_ms:
        yield HotRecord(**holder_fields(first), started_at_ms=gathered.started_ms, ended_at_ms=began_ms)
    is_in_quota = gathered.is_in_quota
    peaks = [cell.peak_memory_bytes for cell in cells if cell.peak_memory_bytes is not None]
    loads = [cell.mean_utilization for cell in cells if cell.mean_utilization is not None]
    outcomes = {cell.outcome for cell in cells}
    labels = {cell.label for cell in cells}
    yield msgspec.structs.replace(
        first,
        started_at_ms=began_ms,
        ended_at_ms=gathered.until_ms,
        held_ms=held_ms,
        ran_ms=sum(cell.ran_ms for cell in cells),
        spans=(Span(began_ms, gathered.until_ms, is_in_quota),) if is_in_quota is not None else (),
        outcome=first.outcome if len(outcomes) == 1 else CellOutcome.RAISED,
        peak_memory_bytes=max(peaks, default=None),
        mean_utilization=sum(loads) / len(loads) if loads else None,
        bytes_sent=sum(cell.bytes_sent for cell in cells),
        bytes_returned=sum(cell.bytes_returned for cell in cells),
        label=first.label if len(labels) == 1 else "",
        runs=len(cells),
        marks="".join(mark(cell.cell) for cell in cells[1:]) or None,
    )
