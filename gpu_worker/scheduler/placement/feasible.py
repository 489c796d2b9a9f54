"""Which requests could have a place now: on some node enough is free, leaving or hot, whoever is to have it."""

from gpu_worker.scheduler.leases.leases import LEAVING
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import LANES, Wants
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.state import State

_SOON = LEAVING | {Phase.HOT}


class FeasibleShapes:
    """Answers for one walk, until a running cell is reclaimed: nothing else makes more room."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.changes = 0  #: how often anything was forgotten
        self.kinds = tuple(dict.fromkeys(node.kind for node in state.nodes.values() if not node.is_drained))
        self._cache: dict[tuple[int, Wants, int], bool] = {}
        self._is_timed = bool(state.planned_drains)

    def has(self, shape: Shape) -> bool:
        """Whether a node that is not drained may have enough for such a request without ending anybody's cell."""
        key = shape.need, shape.wants, shape.walltime_ms if self._is_timed else 0
        if key not in self._cache:
            self._cache[key] = any(_may_hold(self._state, node, shape) for node in self._nodes(shape))
        return self._cache[key]

    def forget(self) -> None:
        """Look anew: a running cell was reclaimed."""
        self._cache.clear()
        self.changes += 1

    def _nodes(self, shape: Shape) -> list[Node]:
        state, lanes = self._state, LANES if shape.wants.is_more else (shape.lane,)
        agents = dict.fromkeys(agent for lane in lanes for agent in (*state.roomy[lane], *state.warm[lane]))
        return [state.nodes[agent] for agent in agents]


def _may_hold(state: State, node: Node, shape: Shape) -> bool:
    counts = node.lanes[shape.lane]
    if counts.free + counts.leaving + counts.hot < shape.need or not node.holds(shape):
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
