"""Nodes that are given no cells for now: they are not heard, or notebooks do not reach them. Cells there go on."""

from collections.abc import Callable

import structlog

from bulletin.ids import AgentId
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler import events


class UnreachableNodes:
    """Leaves nodes out of what is granted, as if they were drained, and takes them in again."""

    def __init__(self, shell: SchedulerShell, is_drained: Callable[[AgentId], bool]) -> None:
        """Take `is_drained`, which says whether an admin wants a node empty."""
        self._shell, self._state, self._is_drained = shell, shell.scheduler.state, is_drained
        self._log = structlog.get_logger("broker")
        #: And why.
        self.reasons: dict[AgentId, str] = {}

    async def add(self, agent: AgentId, node: str, reason: str) -> None:
        """Give a node nothing more for now."""
        is_new = agent not in self.reasons
        self.reasons[agent] = reason
        if is_new:
            self._log.warning("node left out", node=node, reason=reason)
            if agent in self._state.planned_drains.at_ms:
                return  # a drain now would call that off
            await self._shell.step(events.NodeDrained(agent))

    async def remove(self, agent: AgentId, node: str) -> None:
        """Give it cells again, unless an admin has drained it."""
        if self.reasons.pop(agent, None) is None:
            return
        self._log.info("node taken in again", node=node)
        if agent in self._state.drained and not self._is_drained(agent):
            await self._shell.step(events.NodeDrained(agent, is_drained=False))

    def forget(self, agent: AgentId) -> None:
        """Note that a node is lost. What it is next time is found out then."""
        self.reasons.pop(agent, None)
