"""A lease that is metered, with the last of its cells, and what of them the scheduler has seen."""

import msgspec

from bulletin.codes import LeaseEnd
from bulletin.ids import CellId
from gpu_worker.broker.meter import Meter
from gpu_worker.broker.short_cells import MOST

#: So many of the last cells of a lease may be reported again.
_CELLS = 2 * MOST


class ReplacedCell(msgspec.Struct, frozen=True):
    """A cell whose end is yet to be told, in a lease in which the next has begun: so it is where slots are kept."""

    seen_from_ms: int  #: from then on the scheduler saw what it used
    seen_until_ms: int
    charged_milli: int | None  #: what was agreed for it


class MeteredLease(msgspec.Struct):
    """A lease that is metered."""

    meter: Meter
    cells: dict[CellId, None]  #: those that ended in it last
    marks: frozenset[str] = frozenset()  #: of others, that ended before this broker was started
    over_ms: int | None = None  #: when its slots were free again; None while it holds, or where nobody knows
    lost_ms: int | None = None  #: it was lost with its agent: when that was heard last
    why: LeaseEnd = LeaseEnd.UNRECOGNIZED  #: why it is over, once it is
    closes_ms: int | None = None  #: it is over, and closed then; None while it holds
    #: It was over while its cell ran: until then the scheduler saw what the cell used. None where it sees it.
    seen_until_ms: int | None = None
    seen_from_ms: int = 0  #: from then on the scheduler saw what its cell used, or has been told of it
    is_granted: bool = True  #: no cell has begun yet, and it counts as use all the same
    replaced: dict[CellId, ReplacedCell] = msgspec.field(default_factory=dict)  #: the last of them

    def replace(self, now_ms: int) -> bool:
        """Remember of the cell that runs, if one does, what the scheduler saw of it: the next one begins now.

        Return whether the scheduler saw it run until now: then it sees the next one from its beginning.
        """
        if self.meter.cell is None:
            return False
        until_ms = now_ms if self.seen_until_ms is None else self.seen_until_ms
        self.replaced[self.meter.cell] = ReplacedCell(self.seen_from_ms, until_ms, self.meter.charged_milli)
        if len(self.replaced) > _CELLS:
            del self.replaced[next(iter(self.replaced))]
        return self.seen_until_ms is None

    def note_end(self, cell: CellId) -> None:
        """Remember that a cell ended. One so long ago that it is forgotten finds no time that is not yet told."""
        self.cells[cell] = None
        if len(self.cells) > _CELLS:
            del self.cells[next(iter(self.cells))]
