"""Who is next, where it fits, and who must make room: questions only, answered on counts.

One rule makes the order: **nobody is passed on a node that could hold them.** A request may run before one that stands
ahead of it only on a node that could not hold that one, or where the two use nothing of the same: there it takes
nothing away. So a request for many GPUs is not starved by small ones, and one that no connected node can hold blocks
nobody. The first that waits for running cells holds one node instead (`backfill`), and may be passed where that does it
no harm.
"""

from collections.abc import Generator, Iterator, Mapping

import msgspec

from bulletin.ids import AgentId, LeaseId
from gpu_worker.scheduler.account import UsageTotals
from gpu_worker.scheduler.backfill import Head
from gpu_worker.scheduler.leases import LEAVING, Lease, Request
from gpu_worker.scheduler.nodes import Node
from gpu_worker.scheduler.reclaim import VictimSelection, has_waited, is_covered, takeable
from gpu_worker.scheduler.resources import LANES, Amount, Lane
from gpu_worker.scheduler.shapes import Shape
from gpu_worker.scheduler.state import State

#: What requests ahead are to have on a node.
Claims = Mapping[AgentId, list[Shape]]


class Placement(msgspec.Struct, frozen=True):
    """Where a request fits once the victims, hot leases, have gone; none where those that leave already suffice.

    Without an agent the victims are not in its way on a node, but in the way of its project's limit.
    """

    agent: AgentId | None
    victims: tuple[Lease, ...] = ()
    reclaimed: tuple[Lease, ...] = ()  #: running cells that must be given back
    is_for_share: bool = False  #: they are taken for a share of the surplus, and not for a guarantee


class Closed:
    """Requests that wait, by shape: the nodes that could hold one are closed to whom it would be passed by."""

    def __init__(self) -> None:
        self._shapes: list[Shape] = []  #: none that another one of them stands for

    def add(self, shape: Shape) -> None:
        """One more waits."""
        if not any(_stands_for(one, shape) for one in self._shapes):
            self._shapes = [one for one in self._shapes if not _stands_for(shape, one)]
            self._shapes.append(shape)

    def to(self, node: Node, shape: Shape) -> bool:
        """Whether the node is closed to such a request."""
        return any(node.holds(one) and _is_rival(node, one, shape) for one in self._shapes)

    def everywhere(self, shape: Shape) -> bool:
        """Whether each node that could hold such a request is closed to it."""
        return any(one.takes_in(shape) for one in self._shapes)


def _stands_for(one: Shape, other: Shape) -> bool:
    """Whether all that one closes is closed by the other too."""
    mine, its = one.wants, other.wants
    return (
        one.takes_in(other) and bool(mine.cpus) >= bool(its.cpus) and bool(mine.memory_bytes) >= bool(its.memory_bytes)
    )


def _is_rival(node: Node, one: Shape, other: Shape) -> bool:
    """Whether the two could use the same slot, CPU or memory of the node."""
    mine, its = one.wants, other.wants
    if one.lane == other.lane:
        if mine.kind == its.kind:
            return True
        if not set(node.serving(one.lane, mine.kind)).isdisjoint(node.serving(other.lane, its.kind)):
            return True
    return bool((mine.cpus and its.cpus) or (mine.memory_bytes and its.memory_bytes))


class Ahead:
    """Who waits already, of all lanes walked so far. GPUs are walked before CPU slots: they have a node's CPUs first.

    For those in `placed` room is being made, for those in `blocked` none can be: neither are passed. The head of the
    line that is walked is in none of the two: where it could run, it alone counts of those for whom there is no room.
    """

    def __init__(self) -> None:
        self.placed, self.blocked = Closed(), Closed()
        self.head: Head | None = None

    def next_lane(self) -> None:
        """Hold the head of a lane: nobody of the next one passes it."""
        if self.head is not None:
            self.blocked.add(self.head.shape)
            self.head = None

    def _is_headed(self, node: Node, shape: Shape) -> bool:
        """Whether the head could have of this node what such a request would use."""
        return self.head is not None and node.holds(self.head.shape) and _is_rival(node, self.head.shape, shape)

    def lets_in(self, node: Node, shape: Shape) -> bool:
        """Whether such a request passes nobody there, or the head without harm."""
        if self.placed.to(node, shape):
            return False
        if self.head is not None and self._is_headed(node, shape):
            return self.head.is_left_free(node, shape)
        return not self.blocked.to(node, shape)

    def lets_fill(self, node: Node, shape: Shape) -> bool:
        """Whether such a request only uses, of the node that is held for the head, the time until that can start."""
        return self.head is not None and self.head.is_over_before(node, shape) and not self.placed.to(node, shape)

    def lets_make_room(self, node: Node, shape: Shape) -> bool:
        """Whether hot sessions may leave for such a request: on the node that is held for the head for nobody else."""
        if self.head is not None and self._is_headed(node, shape):
            return not self.head.holds(node)
        return not self.blocked.to(node, shape)

    def lets_reclaim(self, node: Node, shape: Shape) -> bool:
        """Whether running cells may be given back for such a request: where that passes nobody."""
        return not self.blocked.to(node, shape) and not self._is_headed(node, shape)


class Line:
    """A lane's requests in order, while those that are reached may be granted and leave the line.

    One that is not granted is taken for granted while others are looked at, so that who comes next is decided as it
    will be then; not so one that no connected node can hold. `narrow(ahead)` leaves out, from then on, all that could
    only pass a request that waits, on nodes that could hold it. Shapes are few: the walk ends soon after nothing fits.
    """

    def __init__(self, state: State, lane: Lane) -> None:
        self._state = state
        self._closed = {shape for shape in state.accounts.shapes if shape.lane != lane}

    def narrow(self, ahead: Ahead) -> None:
        """Skip, from now on, requests to which every node that could hold them is closed."""
        for shape in self._state.accounts.shapes:
            is_headed = ahead.head is not None and ahead.head.shape.takes_in(shape)  # where it fits, the head does
            if is_headed or (ahead.blocked.everywhere(shape) and not _fits_in(self._state, shape, ahead)):
                self._closed.add(shape)

    def __iter__(self) -> Generator[Request]:
        state, accounts = self._state, self._state.accounts
        aside: list[Request] = []
        served: list[Request] = []
        try:
            while (found := accounts.next(self._closed)) is not None:
                request = state.pending[found[1].id]
                yield request
                if request.id in state.pending and not self._closed.issuperset(accounts.shapes):
                    accounts.leave(request.project, request.entry)
                    if has_node(state, request.entry.shape):
                        accounts.use(request.project, request.user, request.qos, request.entry.shape.cost, +1)
                        served.append(request)
                    aside.append(request)
        finally:
            for request in reversed(served):
                accounts.use(request.project, request.user, request.qos, request.entry.shape.cost, -1)
            for request in reversed(aside):
                accounts.enter(request.project, request.entry)


def decisions(
    state: State, lane: Lane, before: Ahead | None = None
) -> Generator[tuple[Request, Node | Placement | None]]:
    """Each request of the lane that something can be said of, in order, with what is to become of it now.

    The caller exhausts or closes it: meanwhile the line is not as it was. `before` is of lanes that come before.

    Yields
    ------
    (Request, Node)
        It fits the free slots of this node. Who decides must grant it before the next one is asked for.
    (Request, Placement)
        It waits for slots that are leaving or, where there are victims, must be made to leave.
    (Request, None)
        It waits for running cells, or stands too far back for room to be made now.
    """
    line, waiting = Line(state, lane), before or Ahead()
    waiting.next_lane()
    claims: dict[AgentId, list[Shape]] = {}
    ahead = 0
    walk = iter(line)
    try:
        for request in walk:
            capped = _capped(state, request)
            if capped is not None:
                yield request, capped
                continue
            shape = request.entry.shape
            node = fit(state, shape, waiting)
            if node is not None:
                yield request, node
                continue
            found = place(state, request, waiting, claims) if ahead < state.settings.look_ahead else None
            if found is not None and found.agent is not None:
                ahead += 1
                waiting.placed.add(shape)
                claims.setdefault(found.agent, []).append(shape)
            elif waiting.head is None and has_node(state, shape):
                waiting.head = Head(state, request, claims)
                line.narrow(waiting)
                found = _late(state, waiting.head) if ahead < state.settings.look_ahead else None
            else:
                waiting.blocked.add(shape)
                line.narrow(waiting)
            yield request, found
    finally:
        walk.close()


def _capped(state: State, request: Request) -> Placement | None:
    """Whom a limit makes leave first: hot leases of its own project or user, least recently used first."""
    cost = request.entry.shape.cost
    victims: dict[LeaseId, None] = {}
    is_capped = False
    for holder, amount, limit in state.accounts.holders(request.project, request.user, request.qos, cost):
        if limit is not None and holder.held + amount > limit:
            is_capped = True
            victims.update(dict.fromkeys(_room_in(holder, holder.held - holder.leaving + amount - limit, victims)))
    return Placement(None, tuple(state.leases[lease] for lease in victims)) if is_capped else None


def _room_in(holder: UsageTotals, missing: int, chosen: Mapping[LeaseId, None]) -> Iterator[LeaseId]:
    missing -= sum(amount for lease, amount in holder.hot.items() if lease in chosen)
    for lease, amount in holder.hot.items():
        if missing <= 0:
            return
        if lease not in chosen:
            missing -= amount
            yield lease


def fit(state: State, shape: Shape, ahead: Ahead) -> Node | None:
    """Find the node that holds such a request now without harm to those who wait, with the least GPUs and least torn.

    Where all are closed, that which is held for the head of the line, if the request is over in time.
    """
    if ahead.head is None and (ahead.placed.everywhere(shape) or ahead.blocked.everywhere(shape)):
        return None
    nodes = [node for node in _roomy(state, shape.lane) if _is_free(node, shape)]
    return min(
        (node for node in nodes if ahead.lets_in(node, shape)),
        key=lambda node: (*node.least(shape), node.lanes[shape.lane].free, node.seq),
        default=None,
    ) or next((node for node in nodes if ahead.lets_fill(node, shape)), None)


def _fits_in(state: State, shape: Shape, ahead: Ahead) -> bool:
    """Whether such a request is over before the head of the line can start."""
    if ahead.head is None:
        return False
    return any(_is_free(node, shape) and ahead.lets_fill(node, shape) for node in _roomy(state, shape.lane))


def has_node(state: State, shape: Shape) -> bool:
    """Whether a connected node that is not drained could hold such a request."""
    return any(node.holds(shape) and not node.is_drained for node in state.nodes.values())


def _roomy(state: State, lane: Lane) -> Iterator[Node]:
    return map(state.nodes.__getitem__, state.roomy[lane])


def _is_free(node: Node, shape: Shape) -> bool:
    is_likely = node.lanes[shape.lane].free >= shape.need and node.holds(shape)
    return is_likely and _needed(shape).less(node.free(shape)).is_nothing


def _late(state: State, head: Head) -> Placement | None:
    """Hot leases on the node that is held for the head that it needs, and of which a cell could end too late for it.

    Of those that may begin another cell the state notes until when.
    """
    if not any(state.warm.values()):
        return None
    victims: list[Lease] = []
    if head.held is None:
        return None
    at_ms, node = head.held
    for lease in _victims(state, node, head.shape, head.needs_of_hot()) or ():
        until_ms = at_ms - lease.walltime_ms
        if until_ms <= state.accounts.now_ms:
            victims.append(lease)
        else:
            state.looks.note(until_ms)
    return Placement(node.agent, tuple(victims)) if victims else None


def _needed(shape: Shape) -> Amount:
    return Amount(shape.need, shape.wants.cpus, shape.wants.memory_bytes)


def missing(state: State, node: Node, shape: Shape, claims: Claims) -> Amount:
    """Compute what such a request lacks there once all that leaves has left, and those ahead have what they claim."""
    lacks = _needed(shape).less(node.free(shape))
    if node.is_all(shape):
        claimed = sum(one.need for one in claims.get(node.agent, ()) if one.lane == shape.lane)
        return Amount(lacks.slots - node.lanes[shape.lane].leaving + claimed)
    for lease in map(state.leases.__getitem__, node.leases):
        if lease.phase in LEAVING:
            lacks = lacks.less(node.part_of(lease, shape))
    serving = set(node.serving(shape.lane, shape.wants.kind))
    for one in claims.get(node.agent, ()):
        shared = len(serving.intersection(node.serving(one.lane, one.wants.kind)))
        lacks = lacks.less(Amount(-min(one.need, shared), -one.wants.cpus, -one.wants.memory_bytes))
    return lacks


def place(state: State, request: Request, ahead: Ahead, claims: Claims) -> Placement | None:
    """Where, on a node that is not closed, the request will fit without waiting for a running cell.

    What those ahead claim, free or leaving, is meant for them. A node where what leaves suffices comes first; then the
    one whose most recently used victim was used the longest ago. None where running cells are in the way everywhere.
    """
    shape = request.entry.shape
    lanes = LANES if shape.wants.is_more else (shape.lane,)  # CPUs and memory are of both
    able = [
        node
        for node in map(state.nodes.__getitem__, dict.fromkeys(agent for lane in lanes for agent in state.roomy[lane]))
        if node.holds(shape) and ahead.lets_make_room(node, shape)
    ]
    ready = [
        (-lacks.slots, node.seq, node) for node in able if (lacks := missing(state, node, shape, claims)).is_nothing
    ]
    if ready:
        return Placement(min(ready, key=lambda one: one[:2])[2].agent)
    best: Placement | None = None
    for node in map(state.nodes.__getitem__, dict.fromkeys(agent for lane in lanes for agent in state.warm[lane])):
        if node.holds(shape) and ahead.lets_make_room(node, shape):
            victims = _victims(state, node, shape, missing(state, node, shape, claims))
            found = Placement(node.agent, victims) if victims is not None else None
            if found is not None and (best is None or _last_used(found) < _last_used(best)):
                best = found
    return best or _reclaim(state, request, ahead, claims)


def _reclaim(state: State, request: Request, ahead: Ahead, claims: Claims) -> Placement | None:
    """Where running cells can be reclaimed for it, after all that is hot there: on the node that loses least."""
    shape, now_ms = request.entry.shape, state.accounts.now_ms
    best: tuple[int, int, Placement] | None = None
    is_for_share = not is_covered(state.accounts.of(request.project), shape.cost)
    if is_for_share and not (shape.cost and has_waited(state, request)):
        return None
    plan = VictimSelection(state, state.accounts, request, is_for_share=is_for_share)
    for node in state.nodes.values():
        if node.is_drained or not node.holds(shape) or not ahead.lets_reclaim(node, shape):
            continue
        lacks = missing(state, node, shape, claims)
        rest = lacks
        for hot in _hot(state, node, shape):
            rest = rest.less(node.part_of(hot, shape))
        plan.begin()
        chosen: list[Lease] = []
        for lease in takeable(state, node, shape.lane):
            part = node.part_of(lease, shape)
            if rest.gains(part) and plan.takes(lease):
                chosen.append(lease)
                rest, lacks = rest.less(part), lacks.less(part)
        if rest.is_nothing and chosen:
            lost = sum((now_ms - lease.since_ms) * len(lease.slots) for lease in chosen)
            if best is None or (lost, node.seq) < best[:2]:
                first = _victims(state, node, shape, lacks) or ()
                best = lost, node.seq, Placement(node.agent, first, tuple(chosen), is_for_share)
    return best[2] if best is not None else None


def _last_used(place: Placement) -> list[int]:
    """How recently the victims were used, the most recent one first."""
    return [lease.used for lease in reversed(place.victims)]


def _hot(state: State, node: Node, shape: Shape) -> list[Lease]:
    """Hot leases of the node that such a request may have the place of, least recently used first."""
    leases = [state.leases[hot] for lane in LANES for hot in node.lanes[lane].hot_leases]
    if not shape.wants.is_more:
        return [lease for lease in leases if lease.lane == shape.lane]
    return sorted(leases, key=lambda lease: lease.used)


def _victims(state: State, node: Node, shape: Shape, lacks: Amount) -> tuple[Lease, ...] | None:
    """Hot leases of the node, least recently used first, that have what is lacking, and none that is not needed.

    None where all of them together have not enough.
    """
    chosen: list[Lease] = []
    for lease in _hot(state, node, shape):
        part = node.part_of(lease, shape)
        if lacks.gains(part):
            chosen.append(lease)
            lacks = lacks.less(part)
    if not lacks.is_nothing:
        return None
    for lease in reversed(chosen[:]):
        without = lacks.less(Amount(0).less(node.part_of(lease, shape)))
        if without.is_nothing:
            chosen.remove(lease)
            lacks = without
    return tuple(chosen)
