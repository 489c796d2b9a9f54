"""What a session may use of its node's memory and processes, and the watch that ends one that uses more."""

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import msgspec

from bulletin.codes import LeaseEnd
from bulletin.ids import LeaseId
from bulletin.wire.messages import Prepare
from gpu_worker.agent.end_reasons import over_memory, over_processes
from gpu_worker.agent.look_turns import LookTurns
from gpu_worker.agent.process_tree import UseGauge
from gpu_worker.agent.session import Session
from gpu_worker.agent.session_registry import SessionRegistry
from gpu_worker.faults import Faults

_LOOK_S = 1.0


class LeaseLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a session; 0 is none."""

    memory_bytes: int = 0
    #: Processes and their threads.
    processes: int = 0


class NodeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What sessions of this node may use where they asked for nothing; 0 is no limit."""

    memory_per_slot_bytes: int = 0
    processes: int = 0
    #: What a slot's part of the node's memory is, limited or not.
    share_bytes: int = 0

    def of_lease(self, prepare: Prepare) -> LeaseLimits:
        """Choose the limits of a lease: for memory what was asked for, else what its slots have."""
        memory_bytes = prepare.memory_bytes or self.memory_per_slot_bytes * len(prepare.slots)
        return LeaseLimits(memory_bytes=memory_bytes, processes=self.processes)

    def scratch_bytes(self, prepare: Prepare) -> int:
        """Choose how large a session's own file systems in memory may be."""
        return self.of_lease(prepare).memory_bytes or self.share_bytes * len(prepare.slots)


class LimitWatch:
    """Looks at all sessions once a second, and ends each that uses more than it may: it, and no other."""

    def __init__(
        self,
        limits: NodeLimits,
        sessions: SessionRegistry,
        faults: Faults,
        *,
        scratch: Iterable[str],
        kernel_limits_memory: bool,
    ) -> None:
        """Take the paths of an executor's own file systems in memory (`scratch`); none where it has none.

        Where `kernel_limits_memory`, nobody else needs to look at that.
        """
        self._limits, self._sessions, self._faults, self._scratch = limits, sessions, faults, tuple(scratch)
        self._kernel_limits_memory = kernel_limits_memory
        #: Those that are looked at right now: what a tenant's processes do can make that slow.
        self._looked_at: set[LeaseId] = set()
        self._gauges: dict[LeaseId, UseGauge] = {}

    async def run(self) -> None:
        """Watch until cancelled. A session whose processes are slow to look at holds up no other."""
        turns = LookTurns()
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    for session in self._sessions.running.values():
                        lease = session.prepare.lease
                        if lease not in self._looked_at:
                            self._looked_at.add(lease)
                            tasks.create_task(self._look_at(session, turns))
                    for lease in self._gauges.keys() - self._sessions.running.keys():
                        del self._gauges[lease]
                    await asyncio.sleep(_LOOK_S)
        finally:
            turns.close()

    async def _look_at(self, session: Session, turns: LookTurns) -> None:
        try:
            with self._faults.contain(session.fail, **session.about):
                await self._end_if_over(session, turns)
        finally:
            self._looked_at.discard(session.prepare.lease)

    async def _end_if_over(self, session: Session, turns: LookTurns) -> None:
        limits, process = self._limits.of_lease(session.prepare), session.executor.process
        if process is None or limits == LeaseLimits() or session.shutdown.reason is not None:
            return
        folders = [Path(f"/proc/{process.pid}/root{path}") for path in self._scratch]
        limit_bytes = 0 if self._kernel_limits_memory else limits.memory_bytes
        gauge = self._gauges.setdefault(session.prepare.lease, UseGauge(limit_bytes))
        use = await turns.run(partial(gauge.read, process.roots, folders))
        if limit_bytes and use.memory_bytes > limits.memory_bytes:
            session.shutdown.begin(LeaseEnd.MEMORY_LIMIT, over_memory(use.memory_bytes, limits.memory_bytes))
        elif limits.processes and use.processes >= limits.processes:
            session.shutdown.begin(LeaseEnd.PROCESS_LIMIT, over_processes(use.processes, limits.processes))
