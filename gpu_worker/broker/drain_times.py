"""When nodes are to be empty, and by whose word: what comes first is in force, and the scheduler knows of no other."""

from collections.abc import Callable
from enum import Enum

from bulletin.ids import AgentId
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler import events

#: From now on, however long that has been so.
AT_ONCE_MS = 0


class DrainWord(Enum):
    """Who wants a node to be empty. Each has one word; none takes another's back."""

    ADMIN = "admin"
    HOST = "host"  #: it is taken from the pool then
    ENGINE = "engine"  #: nobody needs the node
    REACH = "reach"  #: it is not heard, or not reached, for now


class DrainTimes:
    """The words about each node, and the scheduler's plan for it, which follows them."""

    def __init__(self, shell: SchedulerShell, now_ms: Callable[[], int]) -> None:
        self._shell, self._now_ms = shell, now_ms
        self._state = shell.scheduler.state
        self._said_ms: dict[AgentId, dict[DrainWord, int]] = {}

    def said_ms(self, agent: AgentId, word: DrainWord) -> int | None:
        """Return from when on it is to be empty by this word, in the broker's time; None is never."""
        return self._said_ms.get(agent, {}).get(word)

    def in_force_ms(self, agent: AgentId) -> int | None:
        """Return from when on it is to be empty, whoever says so; None is never."""
        return min(self._said_ms.get(agent, {}).values(), default=None)

    def is_in_force(self, agent: AgentId, word: DrainWord) -> bool:
        """Tell whether a node is drained, or is to be, by this word: none wants it sooner."""
        said_ms, first_ms, now_ms = self.said_ms(agent, word), self.in_force_ms(agent), self._now_ms()
        return said_ms is not None and first_ms is not None and max(said_ms, now_ms) == max(first_ms, now_ms)

    async def note(self, agent: AgentId, word: DrainWord, at_ms: int | None) -> None:
        """Take a word about a node, or (None) take it back, and have the scheduler follow."""
        said = self._said_ms.setdefault(agent, {})
        if at_ms is None:
            said.pop(word, None)
        else:
            said[word] = at_ms
        await self._follow(agent)

    async def forget(self, agent: AgentId) -> None:
        """Forget what was said of a node that is gone, but for an admin's word: that is of the next one, too."""
        admin_ms = self.said_ms(agent, DrainWord.ADMIN)
        self._said_ms[agent] = {} if admin_ms is None else {DrainWord.ADMIN: admin_ms}
        await self._follow(agent)

    async def _follow(self, agent: AgentId) -> None:
        at_ms = self.in_force_ms(agent)
        if at_ms is None:
            del self._said_ms[agent]
        is_drained, planned_ms = agent in self._state.drained, self._state.planned_drains.at_ms.get(agent)
        if at_ms is None and (is_drained or planned_ms is not None):
            await self._shell.step(events.NodeDrained(agent, is_drained=False))
        elif at_ms is not None and at_ms <= self._now_ms() and not is_drained:
            await self._shell.step(events.NodeDrained(agent))
        elif at_ms is not None and at_ms > self._now_ms() and (is_drained or planned_ms != at_ms):
            await self._shell.step(events.DrainPlanned(agent, at_ms))
