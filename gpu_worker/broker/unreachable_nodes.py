"""Nodes that are given no cells for now: they are not heard, or notebooks do not reach them. Cells there go on."""

from collections.abc import Callable

import structlog

from bulletin.ids import AgentId
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler import events


class UnreachableNodes:
    """Leaves nodes out of what is granted, as if they were drained, and takes them in again.

    A drain that was planned for later is planned again then.
    """

    def __init__(self, shell: SchedulerShell, is_drained: Callable[[AgentId], bool]) -> None:
        """Take `is_drained`, which says whether an admin wants a node empty by now."""
        self._shell, self._state, self._is_drained = shell, shell.scheduler.state, is_drained
        self._log = structlog.get_logger("broker")
        #: And why.
        self.reasons: dict[AgentId, str] = {}
        #: When those are to be drained for which that was planned.
        self._planned_ms: dict[AgentId, int] = {}

    async def add(self, agent: AgentId, node: str, reason: str) -> None:
        """Give a node nothing more for now."""
        is_new = agent not in self.reasons
        self.reasons[agent] = reason
        if is_new:
            self._log.warning("node left out", node=node, reason=reason)
            at_ms = self._state.planned_drains.at_ms.get(agent)
            if at_ms is not None:
                self._planned_ms[agent] = at_ms  # a drain now calls that off
            await self._shell.step(events.NodeDrained(agent))

    def plan_drain(self, agent: AgentId, at_ms: int | None) -> bool:
        """Have a node that is left out drained then, once it is taken in again, or (None) not; False: it is not one."""
        if agent not in self.reasons:
            return False
        if at_ms is None:
            self._planned_ms.pop(agent, None)
        else:
            self._planned_ms[agent] = at_ms
        return True

    async def remove(self, agent: AgentId, node: str) -> None:
        """Give it cells again, unless an admin has drained it."""
        if agent in self.reasons:
            self._log.info("node taken in again", node=node)
            await self.forget(agent)

    async def forget(self, agent: AgentId) -> None:
        """Note that a node is lost. What it is next time is found out then."""
        if self.reasons.pop(agent, None) is None:
            return
        at_ms = self._planned_ms.pop(agent, None)
        if agent not in self._state.drained or self._is_drained(agent):
            return
        if at_ms is not None:
            await self._shell.step(events.DrainPlanned(agent, at_ms))
        else:
            await self._shell.step(events.NodeDrained(agent, is_drained=False))
