"""How a session's executor is ended, and why."""

import asyncio
import contextlib

from bulletin.codes import LeaseEnd
from gpu_worker.agent.end_reasons import CLOSED_LINK, NODE_LEFT, SPOILED_LINK, EndReason, describe_exit, over_memory
from gpu_worker.agent.executor_link import ExecutorLink
from gpu_worker.agent.session_cells import SessionCells
from gpu_worker.agent.session_outputs import SessionOutputs

#: Who ends a job, or a whole host, signals all of its processes at once: the agent hears of it within this time, too.
_SAME_MOMENT_S = 0.3


class ExecutorShutdown:
    """Ends the executor once; the first reason counts."""

    def __init__(self, executor: ExecutorLink, outputs: SessionOutputs, cells: SessionCells) -> None:
        self._executor, self._outputs, self._cells = executor, outputs, cells
        #: Why the agent ends the executor; None while it does not, and where it died by itself.
        self.reason: EndReason | None = None
        #: What its user is told, where it takes more than the reason, or than the exit status.
        self._sentence = ""
        self._task: asyncio.Task[None] | None = None
        self._node_leaves = asyncio.Event()

    def note_node_leaves(self) -> None:
        """Take note that the node is being shut down: an executor that a signal ends from now on ends for that."""
        self._node_leaves.set()

    @property
    def lease_end(self) -> LeaseEnd:
        """Why the lease ended, once it has: where the agent did not end the executor, that died."""
        return LeaseEnd.EXECUTOR_DIED if self.reason is None else self.reason

    def describe(self, walltime_ms: int) -> str:
        """Say what became of the executor, in a sentence for its user."""
        return self._sentence or describe_exit(self.reason, self._executor.status, walltime_ms)

    def blame(self, sentence: str) -> None:
        """Take note of what the executor did, where the agent has no other reason to end it: its user is told that."""
        if self.reason is None and not self._sentence:
            self._sentence = sentence

    def end_spoiled(self) -> None:
        """Kill the executor, which has said what is no message, and will not be understood any more."""
        self.blame(SPOILED_LINK)
        self._executor.kill()

    async def reap(self) -> None:
        """Wait until the executor, which has closed its pipe or is as good as gone, is gone indeed."""
        if await self._executor.reap():
            self.blame(CLOSED_LINK)
        elif self.reason is None and (self._executor.status or 0) < 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SAME_MOMENT_S):
                    await self._node_leaves.wait()
                self.reason, self._sentence = LeaseEnd.RECLAIMED, NODE_LEFT

    def begin(self, reason: EndReason, sentence: str = "") -> None:
        """Begin to end the executor, the whole of its process group; the session's `run` then comes to its end.

        `sentence` tells its user more than the reason does.
        """
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._end(reason, sentence))

    async def _end(self, reason: EndReason, sentence: str) -> None:
        if self.reason is None:
            self.reason, self._sentence = reason, sentence
        if self._executor.gone.is_set():
            return
        try:
            self._outputs.release(self._cells.running)
        finally:  # whatever is wrong with the session, its processes end
            await self._executor.end(at_once=reason not in (LeaseEnd.STOPPED, LeaseEnd.WALLTIME))

    def record_exit(self, status: int) -> None:
        """Take note that the executor's process is gone, with this status."""
        cgroup = self._executor.cgroup
        if self.reason is None and cgroup is not None and cgroup.oom_kills:
            limit_bytes = cgroup.memory_bytes
            self.reason = LeaseEnd.MEMORY_LIMIT
            self._sentence = over_memory(max(cgroup.peak_bytes, limit_bytes), limit_bytes)
        self._executor.record_exit(status)
        self._outputs.release(self._cells.running)
