"""What is left for a request beside those ahead: found once for all that use the same, then where a node changed."""

from collections.abc import Mapping

import msgspec

from bulletin.ids import AgentId
from gpu_worker.scheduler.leases.resources import Amount, Lane, Wants
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.room import Claims, Uses, left_there, needed, uses_of
from gpu_worker.scheduler.state import State


class _RoomFound(msgspec.Struct):
    """Where there is room for a need, and as of how many changes of nodes, and claims on them, that is so."""

    there: dict[AgentId, Amount]
    changes: int
    claims: int


class RoomLeft:
    """Answers for one walk. Whoever adds to what those ahead are to have on a node notes that here."""

    def __init__(self, state: State, claims: Claims, slow: Claims) -> None:
        """Take what those ahead are to have, and which of that waits for a grace."""
        self._state, self._claims, self._slow = state, claims, slow
        self._changed: list[AgentId] = []  #: nodes that changed, in that order
        self._claimed: list[AgentId] = []  #: those of which somebody is to have more: they have no more room for that
        self._seen = state.room_index.changes  #: how many changes of nodes are in it
        self._cache: dict[tuple[Lane, int, Wants, bool], _RoomFound] = {}
        #: By node, with the changes of the node, the claims on it and those of them that wait for a grace by then.
        self._left_cache: dict[tuple[AgentId, Uses, bool], tuple[tuple[int, int, int], Amount]] = {}

    def note_claim(self, agent: AgentId) -> None:
        """Look at a node again: somebody is to have a place there."""
        self._claimed.append(agent)

    def on(self, node: Node, shape: Shape, *, at_once: bool = False) -> Amount:
        """Compute what is left on a node for such a request, as `left_there` does."""
        slow = self._slow.get(node.agent, ()) if at_once else ()
        as_of = node.changes, len(self._claims.get(node.agent, ())), len(slow)
        key = node.agent, uses_of(shape), at_once
        known = self._left_cache.get(key)
        if known is None or known[0] != as_of:
            left = left_there(self._state, node, shape, self._claims, at_once=at_once, slow=slow)
            known = self._left_cache[key] = as_of, left
        return known[1]

    def find(self, shape: Shape, *, at_once: bool) -> Mapping[AgentId, Amount]:
        """Find the nodes where such a request lacks nothing, and how much there is beyond, as an amount below 0.

        That is once all that leaves has left; with `at_once` without cells that have a grace.
        """
        self._follow()
        key = shape.lane, shape.need, shape.wants, at_once
        known = self._cache.get(key)
        if known is None:
            known = self._cache[key] = _RoomFound({}, 0, 0)
            again = dict.fromkeys(self._state.roomy[shape.lane])
        else:
            again = dict.fromkeys(self._changed[known.changes :])
            again |= dict.fromkeys(agent for agent in self._claimed[known.claims :] if agent in known.there)
        known.changes, known.claims = len(self._changed), len(self._claimed)
        needs = needed(shape)
        for agent in again:
            node = self._state.nodes[agent]
            known.there.pop(agent, None)
            if not node.is_drained and self._is_likely(node, shape, at_once=at_once):
                lacks = needs.less(self.on(node, shape, at_once=at_once))
                if lacks.is_nothing:
                    known.there[agent] = lacks
        return known.there

    def _is_likely(self, node: Node, shape: Shape, *, at_once: bool) -> bool:
        """Whether enough slots are free or leave, by their numbers alone: by those most nodes are out of question."""
        counts, serving = node.lanes[shape.lane], len(node.serving(shape.lane, shape.wants.kind))
        left = counts.free + counts.leaving
        if at_once and left - counts.reclaiming < shape.need:
            return False
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
                self._changed += changed
