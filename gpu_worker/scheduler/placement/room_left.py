"""Where what leaves suffices for a request, beside those ahead: found once for a need, then where a node changed."""

from collections.abc import Mapping

from bulletin.ids import AgentId
from gpu_worker.scheduler.leases.resources import Amount, Lane, Wants
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.room import Claims, missing
from gpu_worker.scheduler.state import State


class RoomLeft:
    """Answers for one walk. Whoever adds to what those ahead are to have on a node notes that here."""

    def __init__(self, state: State, claims: Claims, slow: Claims) -> None:
        """Take what those ahead are to have, and which of that waits for a grace."""
        self._state, self._claims, self._slow = state, claims, slow
        self._log: list[AgentId] = []  #: nodes that changed, of which somebody is to have more, in that order
        self._seen = state.room_index.changes  #: how many changes of nodes are in it
        self._cache: dict[tuple[Lane, int, Wants, bool], dict[AgentId, Amount]] = {}
        self._until_cache: dict[tuple[Lane, int, Wants, bool], int] = {}  #: how much of the log is in the answer

    def note_claim(self, agent: AgentId) -> None:
        """Look at a node again: somebody is to have a place there."""
        self._log.append(agent)

    def find(self, shape: Shape, *, at_once: bool) -> Mapping[AgentId, Amount]:
        """Find the nodes where such a request lacks nothing, and how much there is beyond, as an amount below 0.

        That is once all that leaves has left; with `at_once` without cells that have a grace.
        """
        self._follow()
        key = shape.lane, shape.need, shape.wants, at_once
        found = self._cache.get(key)
        if found is None:
            found, again = self._cache.setdefault(key, {}), list(self._state.nodes)
        else:
            again = list(dict.fromkeys(self._log[self._until_cache[key] :]))
        self._until_cache[key] = len(self._log)
        for agent in again:
            node = self._state.nodes[agent]
            found.pop(agent, None)
            if not node.is_drained and self._is_likely(node, shape):
                slow = self._slow.get(agent, ())
                lacks = missing(self._state, node, shape, self._claims, at_once=at_once, slow=slow)
                if lacks.is_nothing:
                    found[agent] = lacks
        return found

    def _is_likely(self, node: Node, shape: Shape) -> bool:
        """Whether enough slots are free or leave, by their numbers alone: by those most nodes are out of question."""
        counts, serving = node.lanes[shape.lane], len(node.serving(shape.lane, shape.wants.kind))
        left = counts.free + counts.leaving
        if serving < counts.capacity:  # others may claim slots that do not serve it
            return min(left, serving) >= shape.need
        return left - sum(one.need for one in self._claims.get(node.agent, ()) if one.lane == shape.lane) >= shape.need

    def _follow(self) -> None:
        """Note the nodes that have changed meanwhile."""
        index = self._state.room_index
        if index.changes != self._seen:
            changed = index.changed_since(self._seen)
            self._seen = index.changes
            if changed is None:
                self._cache.clear()
            else:
                self._log += changed
