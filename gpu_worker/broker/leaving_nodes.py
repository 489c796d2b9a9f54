"""Nodes that leave the pool, or are gone for certain: what runs there runs again elsewhere, and nobody pays for it."""

from collections.abc import Callable

from bulletin.codes import LeaseEnd
from bulletin.ids import AgentId
from bulletin.wire import messages as wire
from gpu_worker.broker.scheduler_shell import SchedulerShell, TellAgent, TellSession
from gpu_worker.scheduler import events
from gpu_worker.scheduler.leases.life import Phase

#: Times that are no further apart are the same.
_ABOUT_MS = 2_000


class LeavingNodes:
    """Has cells of such nodes run again, and keeps from a node what it could not bring to its end."""

    def __init__(
        self, shell: SchedulerShell, tell: TellSession, tell_agent: TellAgent, now_ms: Callable[[], int]
    ) -> None:
        self._shell, self._tell, self._tell_agent, self._now_ms = shell, tell, tell_agent, now_ms
        self._state = shell.scheduler.state
        #: When agents leave by themselves: as they have said, or were told.
        self._leaves_at_ms: dict[AgentId, int] = {}

    async def plan(self, node: wire.Register) -> None:
        """Give a node that leaves at a time nothing that could not end before, unless it is drained sooner."""
        if node.leaves_in_ms is not None:
            await self._plan(node.agent, self._now_ms() + node.leaves_in_ms)

    async def move(self, agent: AgentId, leaves_in_ms: int) -> None:
        """Let an agent leave then, by the word of who runs its host, and plan for that, if it was to at another time.

        It is said again and again, each time a little off: by the way of the message, and others count whole seconds.
        """
        at_ms = self._now_ms() + leaves_in_ms
        known_ms = self._leaves_at_ms.get(agent)
        if known_ms is None or abs(at_ms - known_ms) > _ABOUT_MS:
            await self._tell_agent(agent, wire.HostEnds(leaves_in_ms=leaves_in_ms))
            await self._plan(agent, at_ms)

    async def _plan(self, agent: AgentId, at_ms: int) -> None:
        planned_ms = self._state.planned_drains.at_ms.get(agent)
        is_others = planned_ms is not None and planned_ms != self._leaves_at_ms.get(agent)
        self._leaves_at_ms = {one: ms for one, ms in self._leaves_at_ms.items() if one in self._state.nodes}
        self._leaves_at_ms[agent] = at_ms
        if agent not in self._state.drained and not (is_others and planned_ms is not None and planned_ms <= at_ms):
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
