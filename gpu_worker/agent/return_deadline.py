"""How long an executor may take to hand back the results of a cell that it says has ended.

That a cell has ended is its executor's word, and user code can reach the pipe: from then on no walltime ends it. So
whoever holds the slot must be seen to send. A kernel that does not take what is sent holds it up for a while only, then
results go into a file of the agent's, and it is the executor's turn alone.
"""

from collections.abc import Callable

from bulletin.codes import LeaseEnd
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.clock import now_ms
from gpu_worker.agent.end_reasons import EndReason
from gpu_worker.agent.result_transfer import ResultTransfer

#: What results must come with at least, in bytes a millisecond: a fraction of any disk or network.
_BYTES_PER_MS = 20_000
#: For so long more a kernel may take in what the executor sends, before it goes into a file.
_TO_KERNEL_MS = 30_000
#: For so long more an executor may owe a piece: it has all of them when it says that the cell has ended.
_OWED_MS = 10_000
#: The same where somebody with more right to the slot waits, whose grace is over.
_HURRIED_OWED_MS = 3_000
#: Another kernel needs all of the session's state, which takes its time to serialize.
_WHOLE_MS = 300_000


class ReturnDeadline:
    """Watches the results of one session's cells; `check` is called about once a second."""

    def __init__(self, results: ResultTransfer, end_executor: Callable[[EndReason], None]) -> None:
        """Take `end_executor`, which begins to end the executor for a reason, and returns at once."""
        self._results, self._end_executor = results, end_executor
        self._cell: AgentCell | None = None
        self._since_ms = self._looked_ms = 0
        #: For how long it has been the executor's turn, as far as was looked.
        self._owed_ms = 0
        self._was_hurried = False

    def check(self, cell: AgentCell | None) -> None:
        """Have results that take too long taken into a file, and end an executor that does not send them."""
        now = now_ms()
        if cell is None or cell.results is None or self._results.is_settled(cell):
            self._cell = None
            return
        if cell is not self._cell:
            self._cell, self._since_ms, self._looked_ms = cell, now, now
            self._owed_ms, self._was_hurried = 0, False
        passed_ms, self._looked_ms = now - self._looked_ms, now
        if cell.is_hurried and not self._was_hurried:
            self._was_hurried, self._owed_ms = True, 0
        if self._is_owed(cell):
            self._owed_ms += passed_ms
        if self._owed_ms > self._most_owed_ms(cell):
            self._end_executor(LeaseEnd.RECLAIMED if cell.is_hurried else LeaseEnd.RETURN_LATE)
        elif cell.is_hurried or now - self._since_ms > _TO_KERNEL_MS + cell.results.total_bytes / _BYTES_PER_MS:
            self._results.keep(cell, for_kernel=True)

    def _is_owed(self, cell: AgentCell) -> bool:
        """Whether the executor is to send something, and nobody else is to do something first."""
        assert cell.results is not None
        if cell.is_hurried or not cell.results.is_safe:
            return cell.is_hurried or cell.results.is_owed
        return cell.full_round is not None and (cell.full_results is None or cell.full_results.is_owed)

    def _most_owed_ms(self, cell: AgentCell) -> float:
        """Compute for how long in all it may have been the executor's turn by now."""
        came_bytes = sum(one.received_bytes for one in (cell.results, cell.full_results) if one is not None)
        if cell.is_hurried:
            return _HURRIED_OWED_MS + came_bytes / _BYTES_PER_MS
        is_whole_made = cell.full_round is not None and cell.full_results is None
        return (_WHOLE_MS if is_whole_made else _OWED_MS) + came_bytes / _BYTES_PER_MS
