"""On which nodes there may be room for what, from step to step: only nodes that have changed are looked at again.

Most steps change one node or none, and those who wait need few different things of a node, however many they are.
"""

from collections.abc import Callable, Mapping

from bulletin.ids import AgentId
from gpu_worker.scheduler.leases.resources import Lane, Wants
from gpu_worker.scheduler.nodes.node import Node

#: What a request needs of a node: a lane, a number of slots, and what else.
Need = tuple[Lane, int, Wants]

#: Changes are remembered up to so many, and answers for so many needs; then all is found anew.
_MOST_CHANGES, _MOST_NEEDS = 4096, 2048


class RoomIndex:
    """Answers by need, each as of when it was last asked for; whoever changes a node notes that here."""

    def __init__(self) -> None:
        self.changes = 0  #: how often any node changed
        self._changed: list[AgentId] = []  #: the last of those that did
        self._nodes_cache: dict[Need, dict[AgentId, None]] = {}
        self._until_cache: dict[Need, int] = {}  #: how many of the changes are in the answer

    def note(self, agent: AgentId) -> None:
        """Look at a node again: what is free there, leaves or is hot, has changed, or it came, or went."""
        self.changes += 1
        self._changed.append(agent)
        if len(self._changed) > _MOST_CHANGES:
            self.forget()

    def forget(self) -> None:
        """Find all anew."""
        self._changed.clear()
        self._nodes_cache.clear()
        self._until_cache.clear()

    def changed_since(self, changes: int) -> list[AgentId] | None:
        """List the nodes that have changed since `changes` were so many; None where that is forgotten."""
        number = self.changes - changes
        return None if number > len(self._changed) else self._changed[len(self._changed) - number :]

    @property
    def known(self) -> Mapping[Need, Mapping[AgentId, None]]:
        """The answers of which nothing has changed since they were given."""
        return {
            need: there for need, there in self._nodes_cache.items() if self._until_cache[need] == len(self._changed)
        }

    def find(
        self, need: Need, nodes: Mapping[AgentId, Node], may_hold: Callable[[Node], bool]
    ) -> Mapping[AgentId, None]:
        """Find the nodes of which `may_hold` says so, which depends on the need and on what is noted here alone."""
        there = self._nodes_cache.get(need)
        if there is None:
            if len(self._nodes_cache) >= _MOST_NEEDS:
                self.forget()
            there = self._nodes_cache[need] = {agent: None for agent, node in nodes.items() if may_hold(node)}
        else:
            for agent in dict.fromkeys(self._changed[self._until_cache[need] :]):
                if agent in nodes and may_hold(nodes[agent]):
                    there[agent] = None
                else:
                    there.pop(agent, None)
        self._until_cache[need] = len(self._changed)
        return there
