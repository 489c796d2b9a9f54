"""Which requests could have a place now: on some node enough is free, leaving or hot that nobody ahead is to have."""

from collections.abc import Iterable, Mapping

import msgspec

from bulletin.ids import AgentId
from gpu_worker.scheduler.leases.leases import LEAVING, Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import Wants
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.room import Claims, hot_leases, needed
from gpu_worker.scheduler.placement.room_left import RoomLeft
from gpu_worker.scheduler.state import State

_SOON = LEAVING | {Phase.HOT}


class _NodesLeft(msgspec.Struct):
    """Where room may be left for a need: of nodes that had some, those that were found to have none are not in it."""

    there: list[AgentId]
    given_back: int  #: how many of the nodes where cells were reclaimed are in it
    as_of: int = -1


class FeasibleShapes:
    """Answers for one walk. Only a running cell that is reclaimed makes more room; grants and claims make less."""

    def __init__(self, state: State, claims: Claims, left: RoomLeft) -> None:
        """Take what requests ahead are to have on nodes; whoever adds to that calls `note_claim`."""
        self._state, self._claims, self._left = state, claims, left
        self.changes = 0  #: how often anything was forgotten
        self.kinds = tuple(dict.fromkeys(node.kind for node in state.nodes.values() if not node.is_drained))
        self._claim_count = 0
        self._cache: dict[tuple[int, Wants, int], bool] = {}
        self._left_cache: dict[tuple[int, Wants, int], _NodesLeft] = {}
        self._given_back: list[AgentId] = []  #: nodes of running cells that were reclaimed, in that order
        self._is_timed = bool(state.planned_drains)

    @property
    def taken(self) -> int:
        """Count how often room may have been taken: while that is the same, as much is left."""
        return self._state.room_index.changes + self._claim_count

    def could_ever_have(self, shape: Shape) -> bool:
        """Whether a connected node that is not drained could hold it until it is over, if nothing ran there."""
        return any(kind.holds(shape) for kind in self.kinds)

    def has(self, shape: Shape) -> bool:
        """Whether a node may have had room for such a request, whoever was to have it, when it was first asked for.

        That is: a node that is not drained, without ending anybody's cell.
        """
        key = shape.need, shape.wants, shape.walltime_ms if self._is_timed else 0
        if key not in self._cache:
            self._cache[key] = bool(self._agents(shape))
        return self._cache[key]

    def has_left(self, shape: Shape) -> bool:
        """Whether it may have room now, beside those to whom it was granted, and who are to have it."""
        if not self.has(shape):
            return False
        key = shape.need, shape.wants, shape.walltime_ms if self._is_timed else 0
        left = self._left_cache.get(key)
        if left is None:
            left = self._left_cache[key] = _NodesLeft(list(self._agents(shape)), len(self._given_back))
        if left.as_of != self.taken:
            left.as_of = self.taken
            left.there += dict.fromkeys(self._given_back[left.given_back :])
            left.given_back = len(self._given_back)
            while left.there and not self.has_left_on(self._state.nodes[left.there[-1]], shape):
                left.there.pop()
        return bool(left.there)

    def note_claim(self, agent: AgentId) -> None:
        """Note that somebody is to have a place on a node: it is nobody else's."""
        self._claim_count += 1
        self._left.note_claim(agent)

    def forget(self, reclaimed: Iterable[Lease]) -> None:
        """Look anew: there is more room where these running cells are reclaimed, as they are before anybody asks."""
        self._cache.clear()
        self._given_back += (lease.agent for lease in reclaimed)
        self.changes += 1

    def has_left_on(self, node: Node, shape: Shape) -> bool:
        """Whether it may have room on a node now, beside those who are to have it there, if all that is hot leaves."""
        if not may_hold(self._state, node, shape):
            return False
        if node.agent not in self._claims:
            return True
        lacks = needed(shape).less(self._left.on(node, shape))
        for lease in () if lacks.is_nothing else hot_leases(self._state, node, shape):
            lacks = lacks.less(node.part_of(lease, shape))
        return lacks.is_nothing

    def _agents(self, shape: Shape) -> Mapping[AgentId, None]:
        state = self._state
        if self._is_timed:  # what a node holds depends on the time, too
            return {agent: None for agent, node in state.nodes.items() if may_hold(state, node, shape)}
        need = shape.lane, shape.need, shape.wants
        return state.room_index.find(need, state.nodes, lambda node: may_hold(state, node, shape))


def may_hold(state: State, node: Node, shape: Shape) -> bool:
    """Whether a node that is not drained may have room, whoever is to have it."""
    counts = node.lanes[shape.lane]
    if counts.free + counts.leaving + counts.hot < shape.need or node.is_drained or not node.holds(shape):
        return False
    return node.is_all(shape) or has_soon(state, node, shape)


def has_soon(state: State, node: Node, shape: Shape) -> bool:
    """Whether enough slots of the kind, CPUs and memory are free, or of leases that are leaving or hot."""
    wants, leases = shape.wants, state.leases
    if node.soon is None:
        leaving = [leases[name] for name in node.leases if leases[name].phase in _SOON]
        cpus = node.free_cpus + sum(lease.cpus for lease in leaving)
        memory_bytes = node.free_memory_bytes + sum(lease.memory_bytes for lease in leaving)
        node.soon = cpus, memory_bytes, {}
    cpus, memory_bytes, slots = node.soon
    if wants.cpus > cpus or wants.memory_bytes > memory_bytes:
        return False
    key = shape.lane, wants.kind
    if key not in slots:
        tenants = (node.tenants[slot] for slot in node.serving(*key))
        slots[key] = sum(tenant is None or leases[tenant].phase in _SOON for tenant in tenants)
    return slots[key] >= shape.need
