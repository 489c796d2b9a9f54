"""How a session's executor is ended, and why."""

import asyncio

from bulletin.codes import LeaseEnd
from gpu_worker.agent.end_reasons import EndReason, describe_exit
from gpu_worker.agent.executor_link import ExecutorLink
from gpu_worker.agent.session_cells import SessionCells
from gpu_worker.agent.session_outputs import SessionOutputs


class ExecutorShutdown:
    """Ends the executor once; the first reason counts."""

    def __init__(self, executor: ExecutorLink, outputs: SessionOutputs, cells: SessionCells) -> None:
        self._executor, self._outputs, self._cells = executor, outputs, cells
        #: Why the agent ends the executor; None while it does not, and where it died by itself.
        self.reason: EndReason | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def lease_end(self) -> LeaseEnd:
        """Why the lease ended, once it has: where the agent did not end the executor, that died."""
        return LeaseEnd.EXECUTOR_DIED if self.reason is None else self.reason

    def describe(self, walltime_ms: int) -> str:
        """Say what became of the executor, in a sentence for its user."""
        return describe_exit(self.reason, self._executor.status, walltime_ms)

    def begin(self, reason: EndReason) -> None:
        """Begin to end the executor, the whole of its process group; the session's `run` then comes to its end."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._end(reason))

    async def _end(self, reason: EndReason) -> None:
        self.reason = self.reason or reason
        if self._executor.gone.is_set():
            return
        self._outputs.release(self._cells.running)
        await self._executor.end(at_once=reason not in (LeaseEnd.STOPPED, LeaseEnd.WALLTIME))

    def record_exit(self, status: int) -> None:
        """Take note that the executor's process is gone, with this status."""
        self._executor.record_exit(status)
        self._outputs.release(self._cells.running)
