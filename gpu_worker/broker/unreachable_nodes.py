"""Nodes that are given no cells for now: they are not heard, or notebooks do not reach them. Cells there go on."""

import structlog

from bulletin.ids import AgentId
from gpu_worker.broker.drain_times import AT_ONCE_MS, DrainTimes, DrainWord


class UnreachableNodes:
    """Leaves nodes out of what is granted, as if they were drained, and takes them in again.

    What else was said of when a node is to be empty holds again then.
    """

    def __init__(self, times: DrainTimes) -> None:
        self._times = times
        self._log = structlog.get_logger("broker")
        #: And why.
        self.reasons: dict[AgentId, str] = {}

    async def add(self, agent: AgentId, node: str, reason: str) -> None:
        """Give a node nothing more for now."""
        is_new = agent not in self.reasons
        self.reasons[agent] = reason
        if is_new:
            self._log.warning("node left out", node=node, reason=reason)
            await self._times.note(agent, DrainWord.REACH, AT_ONCE_MS)

    async def remove(self, agent: AgentId, node: str) -> None:
        """Give it cells again, unless it is to be empty by another's word."""
        if self.reasons.pop(agent, None) is not None:
            self._log.info("node taken in again", node=node)
            await self._times.note(agent, DrainWord.REACH, None)

    async def forget(self, agent: AgentId) -> None:
        """Note that a node is gone. What it is next time, and when its host ends, is found out then."""
        self.reasons.pop(agent, None)
        await self._times.forget(agent)
