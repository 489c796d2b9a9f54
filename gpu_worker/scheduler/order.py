"""Who is next, where it fits, and who must make room: questions only, answered on counts.

One rule makes the order: **nobody is passed on a node that could hold them.** A request may run before one that stands
ahead of it only on a node too small for that one, where it takes nothing away. So within a QoS it is first come, first
served, a request for many GPUs is not starved by small ones, and one that no connected node can hold blocks nobody.
"""

from collections.abc import Iterator, Mapping

import msgspec

from bulletin.ids import AgentId
from gpu_worker.scheduler.state import Key, Lane, Lease, Node, Request, State

#: Above every need and every node.
ANY_SIZE = 1 << 60


class Place(msgspec.Struct, frozen=True):
    """Where a request fits once the victims, hot leases, have gone; none where those that leave already suffice."""

    agent: AgentId
    victims: tuple[Lease, ...] = ()


class Line:
    """A lane's requests in order, while those that are reached may be granted and leave the line.

    `narrow(need)` leaves out, from then on, all that need so many slots or more: they could only pass a request that
    waits, on nodes that could hold it. Needs are few, so the walk ends soon after nothing fits.
    """

    def __init__(self, state: State, lane: Lane) -> None:
        self._state, self._parts = state, state.lines[lane]
        self._at = dict.fromkeys(self._parts, 0)
        self._below = ANY_SIZE

    def narrow(self, need: int) -> None:
        """Skip, from now on, requests for so many slots or more."""
        self._below = min(self._below, need)

    def __iter__(self) -> Iterator[Request]:
        while True:
            first: tuple[Key, int] | None = None
            for need, at in self._at.items():
                part = self._parts.get(need, ())
                if need < self._below and at < len(part) and (first is None or part[at][0] < first[0]):
                    first = part[at][0], need
            if first is None:
                return
            need = first[1]
            request = self._state.pending[self._parts[need][self._at[need]][1]]
            yield request
            if request.id in self._state.pending:  # else it was granted, and the next one has its place
                self._at[need] += 1


def decisions(state: State, lane: Lane) -> Iterator[tuple[Request, Node | Place | None]]:
    """Each request of the lane that something can be said of, in order, with what is to become of it now.

    Yields
    ------
    (Request, Node)
        It fits the free slots of this node. Who decides must grant it before the next one is asked for.
    (Request, Place)
        It waits for slots that are leaving or, where there are victims, must be made to leave.
    (Request, None)
        It waits for running cells, or stands too far back for room to be made now.
    """
    line = Line(state, lane)
    passed = blocked = ANY_SIZE  # the least need of those that wait; and of those for which no room can be made
    claimed: dict[AgentId, int] = {}
    ahead = 0
    for request in line:
        node = fit(state, request, passed)
        if node is not None:
            yield request, node
            continue
        passed = min(passed, request.need)
        found = place(state, request, blocked, claimed) if ahead < state.settings.look_ahead else None
        if found is None:
            blocked = min(blocked, request.need)
            line.narrow(blocked)
        else:
            ahead += 1
            claimed[found.agent] = claimed.get(found.agent, 0) + request.need
        yield request, found


def fit(state: State, request: Request, below: int) -> Node | None:
    """The node, of fewer slots than `below`, whose free slots hold the request and are least torn by it."""
    if below <= request.need:
        return None
    lane, need = request.lane, request.need
    nodes = (state.nodes[agent] for agent in state.roomy[lane])
    fitting = (node for node in nodes if node.lanes[lane].free >= need and node.lanes[lane].capacity < below)
    return min(fitting, key=lambda node: (node.lanes[lane].free, node.seq), default=None)


def place(state: State, request: Request, below: int, claimed: Mapping[AgentId, int]) -> Place | None:
    """Where, on a node of fewer slots than `below`, the request will fit without waiting for a running cell.

    `claimed` slots, free or leaving, are meant for requests ahead of it. A node whose leaving slots suffice comes
    first; then the one whose most recently used victim was used the longest ago. None where running cells are in the
    way everywhere.
    """
    lane, need = request.lane, request.need

    def missing(node: Node) -> int:
        counts = node.lanes[lane]
        return need - (counts.free + counts.leaving - claimed.get(node.agent, 0))

    roomy = (state.nodes[agent] for agent in state.roomy[lane])
    ready = (node for node in roomy if missing(node) <= 0 and node.lanes[lane].capacity < below)
    first = min(ready, key=lambda node: (-missing(node), node.seq), default=None)
    if first is not None:
        return Place(first.agent)
    best: Place | None = None
    for agent in state.warm[lane]:
        node = state.nodes[agent]
        if missing(node) <= node.lanes[lane].hot and node.lanes[lane].capacity < below:
            found = Place(agent, _victims(state, node, lane, missing(node)))
            if best is None or _last_used(found) < _last_used(best):
                best = found
    return best


def _last_used(place: Place) -> list[int]:
    """How recently the victims were used, the most recent one first."""
    return [lease.used for lease in reversed(place.victims)]


def _victims(state: State, node: Node, lane: Lane, missing: int) -> tuple[Lease, ...]:
    """Hot leases of the node, least recently used first, as many as free so many slots and none that is not needed."""
    chosen: list[Lease] = []
    for hot in node.lanes[lane].hot_leases:
        if missing <= 0:
            break
        chosen.append(state.leases[hot])
        missing -= len(chosen[-1].slots)
    surplus = -missing
    for lease in reversed(chosen[:]):
        if len(lease.slots) <= surplus:
            chosen.remove(lease)
            surplus -= len(lease.slots)
    return tuple(chosen)
