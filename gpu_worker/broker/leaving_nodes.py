"""Nodes that leave the pool, or are gone for certain: what runs there runs again elsewhere, and nobody pays for it."""

from collections.abc import Callable

from bulletin.codes import LeaseEnd
from bulletin.ids import AgentId
from bulletin.wire import messages as wire
from gpu_worker.broker.drain_times import AT_ONCE_MS, DrainTimes, DrainWord
from gpu_worker.broker.scheduler_shell import SchedulerShell, TellAgent, TellSession
from gpu_worker.scheduler import events
from gpu_worker.scheduler.leases.life import Phase

#: Times that are no further apart are the same.
_ABOUT_MS = 2_000


class LeavingNodes:
    """Has cells of such nodes run again, and keeps from a node what it could not bring to its end."""

    def __init__(
        self,
        shell: SchedulerShell,
        tell: TellSession,
        tell_agent: TellAgent,
        times: DrainTimes,
        now_ms: Callable[[], int],
    ) -> None:
        self._shell, self._tell, self._tell_agent, self._now_ms = shell, tell, tell_agent, now_ms
        self._state, self._times = shell.scheduler.state, times
        #: When agents leave that cannot be told of another time, as those of an older Bulletin; None is never.
        self._fixed_ms: dict[AgentId, int | None] = {}

    async def plan(self, node: wire.Register) -> None:
        """Give a node that leaves at a time nothing that could not end before."""
        at_ms = None if node.leaves_in_ms is None else self._now_ms() + node.leaves_in_ms
        self._fixed_ms = {one: ms for one, ms in self._fixed_ms.items() if one in self._state.nodes}
        self._fixed_ms.pop(node.agent, None)
        if not node.follows_host_end:
            self._fixed_ms[node.agent] = at_ms
        await self._times.note(node.agent, DrainWord.HOST, at_ms)

    async def move(self, agent: AgentId, leaves_in_ms: int) -> None:
        """Let an agent leave then, by the word of who runs its host, and plan for that, if it was to at another time.

        It is said again and again, each time a little off: by the way of the message, and others count whole seconds.
        An agent that cannot be told leaves when it was to, at the latest: nothing is planned for after that.
        """
        at_ms = self._find_time(leaves_in_ms)
        fixed_ms = self._fixed_ms.get(agent)
        if fixed_ms is not None:
            at_ms = fixed_ms if at_ms is None else min(at_ms, fixed_ms)
        if self._is_other(agent, at_ms):
            if agent not in self._fixed_ms:
                await self._tell_agent(agent, wire.HostEnds(leaves_in_ms=leaves_in_ms))
            await self._times.note(agent, DrainWord.HOST, at_ms)

    async def follow(self, agent: AgentId, leaves_in_ms: int) -> None:
        """Plan for the time at which an agent says that it leaves now, which it says again with each sign of life."""
        at_ms = self._find_time(leaves_in_ms)
        if self._is_other(agent, at_ms):
            await self._times.note(agent, DrainWord.HOST, at_ms)

    def _find_time(self, leaves_in_ms: int) -> int | None:
        """Return when that is, in the broker's time; None is never."""
        return None if leaves_in_ms >= wire.NEVER_MS else self._now_ms() + leaves_in_ms

    def _is_other(self, agent: AgentId, at_ms: int | None) -> bool:
        """Tell whether a node's host is taken at another time than was planned for."""
        known_ms = self._times.said_ms(agent, DrainWord.HOST)
        if at_ms is None or known_ms is None:
            return at_ms != known_ms
        return abs(at_ms - known_ms) > _ABOUT_MS

    async def empty(self, agent: AgentId) -> None:
        """Give a node nothing more: its engine ends it."""
        await self._times.note(agent, DrainWord.ENGINE, AT_ONCE_MS)

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
        """End all leases of a node that is gone for certain, and tell their users why; and their agent, if it hears.

        Nobody else begins there meanwhile: it may not have said that it leaves.
        """
        await self._times.note(agent, DrainWord.HOST, AT_ONCE_MS)
        await self.requeue_cells(agent)
        for lease in [lease for lease in self._state.leases.values() if lease.agent == agent]:
            await self._shell.give_up_lease(lease.id, sentence, LeaseEnd.RECLAIMED)
            self._shell.active_leases.pop(lease.id, None)
            await self._shell.step(events.LeaseEnded(lease.id), LeaseEnd.RECLAIMED)
