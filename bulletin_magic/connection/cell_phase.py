"""Where a cell is between being submitted and its results, and the moves between."""

from enum import Enum


class CellPhase(Enum):
    """Where a cell is."""

    QUEUED = 0  #: it waits for a lease
    ATTACHING = 1  #: there is a lease; its agent is being connected to
    SHIPPING = 2  #: the cell was sent, and its state is on the way
    RUNNING = 3
    RETURNING = 4  #: it has ended; its results are on the way


#: The whole life of a cell; it may end in each phase. Back to ATTACHING: the agent never got it. Back to QUEUED: it
#: needs another lease: the one before came to nothing, or was reclaimed. RETURNING to RUNNING: the link broke, and
#: the results come again from their start.
CELL_TRANSITIONS = {
    CellPhase.QUEUED: {CellPhase.ATTACHING},
    CellPhase.ATTACHING: {CellPhase.SHIPPING, CellPhase.RUNNING, CellPhase.QUEUED},
    CellPhase.SHIPPING: {CellPhase.RUNNING, CellPhase.RETURNING, CellPhase.ATTACHING, CellPhase.QUEUED},
    CellPhase.RUNNING: {CellPhase.RETURNING, CellPhase.ATTACHING, CellPhase.QUEUED},
    CellPhase.RETURNING: {CellPhase.RUNNING, CellPhase.QUEUED},
}
