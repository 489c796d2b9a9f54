"""Nodes that an admin wants drained from a time on: until then they are given only what is over by then."""

from collections.abc import Iterator, Mapping

from bulletin.ids import AgentId
from gpu_worker.scheduler.nodes.node import Node


class PlannedDrains:
    """When each agent's node is to be drained, whether it is connected or not."""

    def __init__(self, nodes: Mapping[AgentId, Node]) -> None:
        self._nodes = nodes
        self.at_ms: dict[AgentId, int] = {}

    def __bool__(self) -> bool:
        return bool(self.at_ms)

    @property
    def next_ms(self) -> int | None:
        """When the first of them is to be drained; None is never."""
        return min(self.at_ms.values(), default=None)

    @property
    def nodes(self) -> Iterator[tuple[Node, int]]:
        """Those that are connected, each with its time."""
        return ((self._nodes[agent], at_ms) for agent, at_ms in self.at_ms.items() if agent in self._nodes)

    def plan(self, agent: AgentId, at_ms: int | None) -> None:
        """Have a node drained then; None is: not any more."""
        if at_ms is not None:
            self.at_ms[agent] = at_ms
        elif self.at_ms.pop(agent, None) is not None and agent in self._nodes:
            self._nodes[agent].end_by(None)

    def pop_due(self, now_ms: int) -> list[AgentId]:
        """Take out those whose time has come."""
        due = [agent for agent, at_ms in self.at_ms.items() if at_ms <= now_ms]
        for agent in due:
            self.plan(agent, None)
        return due

    def limit(self, now_ms: int, start_ms: int) -> None:
        """Let each of the nodes hold, from now on, what has begun within `start_ms` and is over by its time."""
        for node, at_ms in self.nodes:
            node.end_by(at_ms - now_ms - start_ms)
