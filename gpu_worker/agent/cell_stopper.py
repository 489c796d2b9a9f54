"""How a running cell is made to end: the stop button, its walltime, and the reclaim of borrowed slots."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from structlog.typing import FilteringBoundLogger

from bulletin.codes import LeaseEnd
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.end_reasons import EndReason
from gpu_worker.agent.executor_link import ExecutorLink
from gpu_worker.config import PoolSettings

#: How soon an interrupt that nobody has noticed is sent again: at first, and at last.
_FIRST_REPEAT_S, _LAST_REPEAT_S = 0.5, 2.0


class EndExecutor(Protocol):
    """Begins to end the executor for a reason, and returns at once; `sentence` says more than the reason does."""

    def __call__(self, reason: EndReason, sentence: str = "") -> None: ...  # noqa: D102


class CellStopper:
    """Interrupts cells, and ends their executor where that does not help in time."""

    def __init__(
        self,
        executor: ExecutorLink,
        settings: PoolSettings,
        log: FilteringBoundLogger,
        end_executor: EndExecutor,
    ) -> None:
        self._executor, self._settings, self._log, self._end_executor = executor, settings, log, end_executor

    def stop(self, cell: AgentCell, *, hard: bool) -> None:
        """Interrupt the cell, as the stop button asks; a `hard` stop ends its executor at once.

        The first stop is repeated until code of the cell has noticed, and ends the executor if none has within
        `Pool.interrupt_grace`. Another one that is not hard is one more interrupt.
        """
        if hard:
            self._end_executor(LeaseEnd.STOPPED)
        elif not cell.is_stopped:
            cell.is_stopped = True
            self._interrupt(cell, LeaseEnd.STOPPED, self._settings.interrupt_grace_ms)
        else:
            self._executor.interrupt()

    def start_walltime(self, cell: AgentCell, walltime_ms: int, more_ms: int = 0) -> None:
        """Let the cell run so long, then interrupt it, and end its executor after the grace.

        `more_ms` is what its place was given before it, where that is kept.
        """
        cell.more_ms = more_ms
        cell.walltime_timer = self._call_later(cell, walltime_ms / 1000, self._end_walltime, cell, walltime_ms)

    def extend_walltime(self, cell: AgentCell, walltime_ms: int, more_ms: int) -> bool:
        """Let the cell run for so much `more_ms` than its walltime; whether that is news, and not too late."""
        timer, delay_ms = cell.walltime_timer, more_ms - cell.more_ms
        if timer is None or cell.is_overdue or delay_ms <= 0:
            return False
        left_s = timer.when() - asyncio.get_running_loop().time()
        timer.cancel()
        cell.more_ms = more_ms
        whole_ms = walltime_ms + more_ms
        cell.walltime_timer = self._call_later(cell, left_s + delay_ms / 1000, self._end_walltime, cell, whole_ms)
        self._log.info("more walltime", cell=cell.id, walltime_ms=whole_ms)
        return True

    def start_reclaim(self, cell: AgentCell, grace_ms: int, sentence: str = "") -> None:
        """End the executor after the grace; where the results are on their way by then, hurry them.

        `sentence` tells its user then what became of it, if that is not what usually does.
        """
        asyncio.get_running_loop().call_later(grace_ms / 1000, self._reclaim, cell, sentence)

    def _end_walltime(self, cell: AgentCell, walltime_ms: int) -> None:
        cell.is_overdue = True
        self._log.info("walltime", cell=cell.id, walltime_ms=walltime_ms)
        self._interrupt(cell, LeaseEnd.WALLTIME, self._settings.walltime_grace_ms)

    def _reclaim(self, cell: AgentCell, sentence: str) -> None:
        if cell.ended is not None:
            cell.is_hurried = True
        elif not cell.is_closed:
            self._end_executor(LeaseEnd.RECLAIMED, sentence)

    def _interrupt(self, cell: AgentCell, end: EndReason, grace_ms: int) -> None:
        """Interrupt; end the executor if no Python code has noticed within the grace."""
        self._executor.interrupt()
        self._call_later(cell, _FIRST_REPEAT_S, self._interrupt_again, cell, _FIRST_REPEAT_S)
        self._call_later(cell, grace_ms / 1000, self._escalate, cell, end)

    def _interrupt_again(self, cell: AgentCell, after_s: float) -> None:
        """Interrupt again and again, at growing intervals, until code of the cell has noticed.

        An executor that has not taken the cell in yet ignores an interrupt, so one alone may be lost.
        """
        if cell.is_closed or cell.has_noticed or self._executor.process is None:
            return
        self._executor.interrupt()
        after_s = min(2 * after_s, _LAST_REPEAT_S)
        self._call_later(cell, after_s, self._interrupt_again, cell, after_s)

    def _escalate(self, cell: AgentCell, end: EndReason) -> None:
        if not cell.is_closed and (end is LeaseEnd.WALLTIME or not cell.has_noticed):
            self._end_executor(end)

    @staticmethod
    def _call_later(
        cell: AgentCell, delay_s: float, callback: Callable[..., None], *arguments: object
    ) -> asyncio.TimerHandle:
        """Call back unless the cell's timers are cancelled before."""
        timer = asyncio.get_running_loop().call_later(delay_s, callback, *arguments)
        cell.timers.append(timer)
        return timer
