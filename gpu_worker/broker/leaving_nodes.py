"""Nodes that leave the pool, or are gone for certain: what runs there runs again elsewhere, and nobody pays for it."""

from collections.abc import Callable

from bulletin.codes import LeaseEnd
from bulletin.ids import AgentId
from bulletin.wire import messages as wire
from gpu_worker.broker.scheduler_shell import SchedulerShell, TellSession
from gpu_worker.scheduler import events
from gpu_worker.scheduler.leases.life import Phase

#: Times that are no further apart are the same.
_ABOUT_MS = 2_000


class LeavingNodes:
    """Has cells of such nodes run again, and keeps from a node what it could not bring to its end."""

    def __init__(self, shell: SchedulerShell, tell: TellSession, now_ms: Callable[[], int]) -> None:
        self._shell, self._tell, self._now_ms = shell, tell, now_ms
        self._state = shell.scheduler.state

    async def plan(self, agent: AgentId, leaves_in_ms: int | None) -> None:
        """Give a node that leaves at a time nothing that could not end before, unless it is drained about then.

        What is said again and again is a little off each time: by the way of the message, and whole seconds of others.
        """
        if leaves_in_ms is None or agent in self._state.drained:
            return
        at_ms, planned_ms = self._now_ms() + leaves_in_ms, self._state.planned_drains.at_ms.get(agent)
        if planned_ms is None or at_ms < planned_ms - _ABOUT_MS:
            await self._shell.step(events.DrainPlanned(agent, at_ms))

    async def begin(self, agent: AgentId) -> None:
        """Give a node that leaves nothing more, whatever was planned for it; its agent gives cells their grace."""
        await self._shell.step(events.NodeDrained(agent))
        await self.requeue_cells(agent)

    async def requeue_cells(self, agent: AgentId) -> None:
        """Have the cells of a node that leaves run again: their next requests stand where these stood."""
        for lease in list(self._state.leases.values()):
            if lease.agent == agent and lease.phase is Phase.BUSY:
                await self._shell.step(events.CellRequeued(lease.id))

    async def tell_reclaimed(self, message: wire.LeaseOver) -> None:
        """Tell a kernel that its cell is to run again, where its agent may be gone before it could."""
        active = self._shell.active_leases.get(message.lease)
        if active is not None and message.code is LeaseEnd.RECLAIMED:
            revoked = wire.Revoked(lease=message.lease, code=message.code, sentence=message.sentence)
            await self._tell(active.session, revoked)

    async def end_leases(self, agent: AgentId, sentence: str) -> None:
        """End all leases of a node that is gone for certain, and tell their users why; and their agent, if it hears."""
        await self.requeue_cells(agent)
        for lease in [lease for lease in self._state.leases.values() if lease.agent == agent]:
            await self._shell.give_up_lease(lease.id, sentence, LeaseEnd.RECLAIMED)
            self._shell.active_leases.pop(lease.id, None)
            await self._shell.step(events.LeaseEnded(lease.id), LeaseEnd.RECLAIMED)
