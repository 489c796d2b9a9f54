"""Nodes that are given no cells for now: they are not heard, or notebooks do not reach them. Cells there go on."""

from collections.abc import Iterator, Mapping

import structlog

from bulletin.ids import AgentId
from bulletin.wire import messages as wire
from gpu_worker.broker.connected_agent import ConnectedAgent
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

    def listed(self, known: Mapping[AgentId, ConnectedAgent], now_ms: int) -> Iterator[wire.AbsentNode]:
        """List those of the pool's own, of all that are known, with since when nothing was heard of each."""
        for agent_id, agent in known.items():
            if agent_id in self.reasons and not agent.owner:
                yield wire.AbsentNode(
                    node=agent.message.node, absent_ms=now_ms - agent.heard_ms, problem=self.reasons[agent_id]
                )
