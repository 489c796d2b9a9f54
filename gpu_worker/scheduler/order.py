"""Who is next, where it fits, and who must make room: questions only, answered on counts.

One rule makes the order: **nobody is passed on a node that could hold them.** A request may run before one that stands
ahead of it only on a node too small for that one, where it takes nothing away. So a request for many GPUs is not
starved by small ones, and one that no connected node can hold blocks nobody.
"""

from collections.abc import Callable, Generator, Iterator, Mapping

import msgspec

from bulletin.ids import AgentId, LeaseId
from gpu_worker.scheduler.accounts import Holder
from gpu_worker.scheduler.reclaim import Plan, is_covered, takeable
from gpu_worker.scheduler.state import Lane, Lease, Node, Request, State

#: Above every need and every node.
ANY_SIZE = 1 << 60


class Place(msgspec.Struct, frozen=True):
    """Where a request fits once the victims, hot leases, have gone; none where those that leave already suffice.

    Without an agent the victims are not in its way on a node, but in the way of its project's limit.
    """

    agent: AgentId | None
    victims: tuple[Lease, ...] = ()
    reclaimed: tuple[Lease, ...] = ()  #: running cells that must be given back


class Line:
    """A lane's requests in order, while those that are reached may be granted and leave the line.

    One that is not granted is taken for granted while others are looked at, so that who comes next is decided as it
    will be then. `narrow(need)` leaves out, from then on, all that need so many slots or more: they could only pass a
    request that waits, on nodes that could hold it. Needs are few, so the walk ends soon after nothing fits.
    """

    def __init__(self, state: State, lane: Lane) -> None:
        self._state, self._lane = state, lane
        self._below = ANY_SIZE

    def narrow(self, need: int) -> None:
        """Skip, from now on, requests for so many slots or more."""
        self._below = min(self._below, need)

    def __iter__(self) -> Generator[Request]:
        state, accounts = self._state, self._state.accounts
        aside: list[Request] = []
        try:
            while (found := accounts.next(self._lane, self._below)) is not None:
                request = state.pending[found[1].id]
                yield request
                if request.id in state.pending and self._below > 1:
                    accounts.leave(request.project, request.entry)
                    accounts.use(request.project, request.user, request.qos, request.entry.shape.cost, +1)
                    aside.append(request)
        finally:
            for request in reversed(aside):
                accounts.use(request.project, request.user, request.qos, request.entry.shape.cost, -1)
                accounts.enter(request.project, request.entry)


def decisions(state: State, lane: Lane) -> Generator[tuple[Request, Node | Place | None]]:
    """Each request of the lane that something can be said of, in order, with what is to become of it now.

    The caller exhausts or closes it: meanwhile the line is not as it was.

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
    walk = iter(line)
    try:
        for request in walk:
            capped = _capped(state, request)
            if capped is not None:
                yield request, capped
                continue
            node = fit(state, request, passed)
            if node is not None:
                yield request, node
                continue
            passed = min(passed, request.need)
            found = place(state, request, blocked, claimed) if ahead < state.settings.look_ahead else None
            if found is None:
                blocked = min(blocked, request.need)
                line.narrow(blocked)
            elif found.agent is not None:
                ahead += 1
                claimed[found.agent] = claimed.get(found.agent, 0) + request.need
            yield request, found
    finally:
        walk.close()


def _capped(state: State, request: Request) -> Place | None:
    """Whom a limit makes leave first: hot leases of its own project or user, least recently used first."""
    cost = request.entry.shape.cost
    victims: dict[LeaseId, None] = {}
    is_capped = False
    for holder, amount, limit in state.accounts.holders(request.project, request.user, request.qos, cost):
        if limit is not None and holder.held + amount > limit:
            is_capped = True
            victims.update(dict.fromkeys(_room_in(holder, holder.held - holder.leaving + amount - limit, victims)))
    return Place(None, tuple(state.leases[lease] for lease in victims)) if is_capped else None


def _room_in(holder: Holder, missing: int, chosen: Mapping[LeaseId, None]) -> Iterator[LeaseId]:
    missing -= sum(amount for lease, amount in holder.hot.items() if lease in chosen)
    for lease, amount in holder.hot.items():
        if missing <= 0:
            return
        if lease not in chosen:
            missing -= amount
            yield lease


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
    return best or _reclaim(state, request, below, missing)


def _reclaim(state: State, request: Request, below: int, missing: Callable[[Node], int]) -> Place | None:
    """Where running cells can be reclaimed for it, after all that is hot there: on the node that loses least."""
    lane, now_ms = request.lane, state.accounts.now_ms
    best: tuple[int, int, Place] | None = None
    if not is_covered(state.accounts.of(request.project), request.entry.shape.cost):
        return None
    for node in state.nodes.values():
        if node.is_drained or not request.need <= node.lanes[lane].capacity < below:
            continue
        rest = missing(node) - node.lanes[lane].hot
        plan = Plan(state, request)
        chosen: list[Lease] = []
        for lease in takeable(state, node, lane):
            if rest > 0 and plan.takes(lease):
                chosen.append(lease)
                rest -= len(lease.slots)
        if rest <= 0 and chosen:
            lost = sum((now_ms - lease.since_ms) * len(lease.slots) for lease in chosen)
            hot = _victims(state, node, lane, missing(node) - sum(len(lease.slots) for lease in chosen))
            if best is None or (lost, node.seq) < best[:2]:
                best = lost, node.seq, Place(node.agent, hot, tuple(chosen))
    return best[2] if best is not None else None


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
