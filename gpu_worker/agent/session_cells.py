"""The cells of a session: the one that runs, and the one before it."""

from bulletin.codes import RefusalCode
from bulletin.ids import CellId
from bulletin.kept_time import PREFIX, is_kept
from bulletin.wire import messages as wire
from gpu_worker.agent.agent_cell import AgentCell

#: Of so many cells the names are kept. What is said twice comes soon, and each name may have a thousand letters.
_MOST_KNOWN = 1_000


class SessionCells:
    """At most one cell runs; the last is kept until its kernel has all of it, or runs another."""

    def __init__(self) -> None:
        self.running: AgentCell | None = None
        self.last: AgentCell | None = None
        #: Those that have run here, the latest last.
        self._known: dict[CellId, None] = {}

    @property
    def latest(self) -> AgentCell | None:
        """The cell that runs, or else ran last."""
        return self.running or self.last

    @property
    def memory_bytes(self) -> int:
        """About how much of the agent's memory is what they have said and handed back."""
        return sum(cell.memory_bytes for cell in (self.running, self.last) if cell is not None)

    @property
    def is_unused(self) -> bool:
        """Whether no cell has come yet."""
        return not self._known

    def is_known(self, name: CellId) -> bool:
        """Tell whether one of the latest cells had this name: each is counted once, so each must be new."""
        return name in self._known

    def find(self, name: CellId) -> AgentCell | None:
        """Find the cell of that name, if it runs or ran last."""
        return next((cell for cell in (self.running, self.last) if cell is not None and cell.id == name), None)

    def find_running(self, name: CellId) -> AgentCell | None:
        """Return the cell that runs, if it has this name."""
        return self.running if self.running is not None and self.running.id == name else None

    def refusal(self, name: CellId, *, is_ending: bool) -> wire.Gone | None:
        """Say why no cell of this name begins now; None where it may. By some names the broker knows that none runs."""
        if is_kept(name):
            sentence = f"Names of cells that begin with {PREFIX!r} are the pool's own. Nothing was run."
            return wire.Gone(code=RefusalCode.NOT_ALLOWED, sentence=sentence)
        if is_ending or self.running is not None or self.is_known(name):
            sentence = "The session is ending." if is_ending else "The session runs another cell."
            return wire.Gone(code=RefusalCode.NOT_FREE, sentence=sentence)
        return None

    def start(self, cell: AgentCell) -> None:
        """Let a cell run."""
        self._known[cell.id] = None
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self.running = cell

    def close(self, cell: AgentCell) -> None:
        """Let the cell that runs be the last: it is over in every respect."""
        self.running, self.last, cell.is_closed = None, cell, True
        cell.cancel_timers()

    def drop_last(self) -> AgentCell | None:
        """Forget the last cell and what it has left, and return it."""
        cell, self.last = self.last, None
        if cell is not None:
            cell.close()
        return cell
