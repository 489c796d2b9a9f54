"""Where a request fits now, or once others have left: questions only, answered on counts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from bulletin.ids import AgentId, LeaseId
from gpu_worker.scheduler.actions import Right
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.resources import LANES, Amount, Lane
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.ahead import Ahead
from gpu_worker.scheduler.placement.keep_time import kept_until_ms
from gpu_worker.scheduler.placement.reclaim import Victim, VictimSelection, may_reclaim
from gpu_worker.scheduler.placement.room import Claims, hot_leases, is_spare, missing, needed
from gpu_worker.scheduler.state import State


class Placement(msgspec.Struct, frozen=True):
    """Where a request fits once the victims, hot leases, have gone; none where those that leave already suffice.

    Without an agent the victims are not in its way on a node, but in the way of its project's limit.
    """

    agent: AgentId | None
    victims: tuple[Lease, ...] = ()
    reclaimed: tuple[tuple[Lease, Right], ...] = ()  #: running cells that must be given back
    waits_for_node: bool = False  #: no node could hold it yet if they left: so nobody leaves for it
    is_for_lenders: bool = False  #: what it lacks is to stay free for them: nobody else borrows that
    has_grace: bool = False  #: a limit is full of cells that are given back: it waits for their grace, wherever it is
    is_stuck: bool = False  #: what a limit lacks nobody gives back yet: so it takes nothing from others meanwhile


def nodes_of_pools(state: State, request: Request) -> frozenset[AgentId] | None:
    """Select the nodes where a request that only its node pools cover is covered; None where it is on all nodes."""
    account, shape = state.accounts.of(request.project), request.entry.shape
    if not state.pools or state.accounts.is_covered(account, shape):
        return None
    return state.pools.agents(state.pools.covering(account, shape))


def fit(state: State, request: Request, ahead: Ahead, claims: Claims) -> Node | None:
    """Find the node that holds a request now without harm to those who wait, with the least GPUs and least torn.

    One in a node pool that covers it comes first, one in a pool that does not comes last. Where all are closed, that
    which is held for the head of the line, if the request is over in time.
    """
    shape, account = request.entry.shape, state.accounts.of(request.project)
    if not ahead.heads and ahead.blocked.everywhere(shape):
        return None
    free = (node for node in _roomy(state, shape.lane) if is_free(node, shape))
    slow = ahead.slow
    nodes = [
        node for node in free if is_spare(state, node, shape, claims.get(node.agent, ()), slow.get(node.agent, ()))
    ]
    return min(
        (node for node in nodes if ahead.lets_in(node, shape)),
        key=lambda node: (
            state.pools.distance(account, node.agent, shape),
            *node.least(shape),
            node.lanes[shape.lane].free,
            node.seq,
        ),
        default=None,
    ) or next((node for node in nodes if ahead.lets_fill(node, shape)), None)


def _roomy(state: State, lane: Lane) -> Iterator[Node]:
    return map(state.nodes.__getitem__, state.roomy[lane])


def is_free(node: Node, shape: Shape) -> bool:
    """Whether a node has free what such a request needs."""
    is_likely = node.lanes[shape.lane].free >= shape.need and node.holds(shape)
    return is_likely and needed(shape).less(node.free(shape)).is_nothing


def place(state: State, request: Request, ahead: Ahead, claims: Claims, *, has_room: bool = True) -> Placement | None:
    """Where, on a node that is not closed, the request will fit without waiting for a running cell.

    What those ahead claim, free or leaving, is meant for them. A node where what leaves suffices comes first; then the
    one whose most recently used victim was used the longest ago; then one where a reclaimed cell has its grace. None
    where running cells are in the way everywhere; without `has_room` it is known that only those can make room.
    """
    if not has_room:
        return _reclaim(state, request, ahead, claims)
    shape, account = request.entry.shape, state.accounts.of(request.project)
    lanes = LANES if shape.wants.is_more else (shape.lane,)  # CPUs and memory are of both
    able = _able(state, shape, ahead)
    ready = _ready(state, request, able, claims, at_once=True)
    if ready is not None:
        return ready
    best: Placement | None = None
    for node in map(state.nodes.__getitem__, dict.fromkeys(agent for lane in lanes for agent in state.warm[lane])):
        if _has_slots(node, shape, hot=True) and node.holds(shape) and ahead.lets_make_room(node, shape):
            lacks = missing(state, node, shape, claims, at_once=True)
            victims = victims_of(node, shape, lacks, hot_leases(state, node, shape, account))
            found = Placement(node.agent, victims) if victims is not None else None
            if found is not None and (
                best is None or _last_used(state, found, request) < _last_used(state, best, request)
            ):
                best = found
    best = best or _ready(state, request, able, claims, at_once=False)
    return best or _reclaim(state, request, ahead, claims)


def _able(state: State, shape: Shape, ahead: Ahead) -> list[Node]:
    """List the nodes where enough may be free or leaving for such a request, and where it passes nobody."""
    lanes = LANES if shape.wants.is_more else (shape.lane,)  # CPUs and memory are of both
    roomy = dict.fromkeys(agent for lane in lanes for agent in state.roomy[lane])
    return [
        node
        for node in map(state.nodes.__getitem__, roomy)
        if _has_slots(node, shape, hot=False) and node.holds(shape) and ahead.lets_make_room(node, shape)
    ]


def _has_slots(node: Node, shape: Shape, *, hot: bool, beside: int = 0) -> bool:
    """Whether enough slots of the lane are free or leaving, or perhaps hot, of whatever kind, with so many beside."""
    counts = node.lanes[shape.lane]
    return counts.free + counts.leaving + (counts.hot if hot else 0) + beside >= shape.need


def _ready(state: State, request: Request, nodes: list[Node], claims: Claims, *, at_once: bool) -> Placement | None:
    """Find the node where what leaves suffices, with the most to spare; at home first."""
    ready = [
        (_distance(state, request, node), -lacks.slots, node.seq, node)
        for node in nodes
        if (lacks := missing(state, node, request.entry.shape, claims, at_once=at_once)).is_nothing
    ]
    return Placement(min(ready, key=lambda one: one[:3])[3].agent) if ready else None


class Full(NamedTuple):
    """A limit, or what lenders keep, for which running cells must be given back, wherever they are."""

    names: frozenset[LeaseId] | None  #: of cells that count for it; None is all
    lacks: int  #: thousandths of a GPU

    def counts(self, lease: Lease) -> bool:
        """Whether a cell counts for it."""
        return self.names is None or lease.id in self.names


def reclaim_place(
    state: State, request: Request, ahead: Ahead, claims: Claims, full: Sequence[Full], leaving: Sequence[Lease]
) -> Placement | None:
    """Where there is room for it once cells are given back, there and for what is full: the latter from the inside out.

    `leaving` are hot leases that leave in any case.
    """
    return _reclaim(state, request, ahead, claims, full, leaving)


def ready_place(state: State, request: Request, ahead: Ahead, claims: Claims) -> Placement | None:
    """Where what is free or leaving suffices for it, beside what those ahead claim: with the least of what is free."""
    shape = request.entry.shape
    best: tuple[tuple[int, ...], Node] | None = None
    for node in _able(state, shape, ahead):
        lacks = missing(state, node, shape, claims)
        rank = _distance(state, request, node), _idles(node, shape, lacks), lacks.slots, node.seq
        if lacks.is_nothing and (best is None or rank < best[0]):
            best = rank, node
    return Placement(best[1].agent) if best is not None else None


def hot_place(
    state: State, request: Request, ahead: Ahead, claims: Claims, leaving: Sequence[Lease]
) -> Placement | None:
    """Where there is room for it once hot leases have gone: those that are `leaving` in any case, and as few others."""
    shape, account = request.entry.shape, state.accounts.of(request.project)
    best: tuple[list[int], Placement] | None = None
    for node in state.nodes.values():
        if node.is_drained or not _has_slots(node, shape, hot=True) or not node.holds(shape):
            continue
        if not ahead.lets_make_room(node, shape):
            continue
        hot = hot_leases(state, node, shape, account)
        hot.sort(key=lambda lease: lease not in leaving)
        victims = victims_of(node, shape, missing(state, node, shape, claims, at_once=True), hot)
        if victims is not None:
            found = Placement(node.agent, tuple(lease for lease in victims if lease not in leaving))
            rank = [len(found.victims), *_last_used(state, found, request), node.seq]
            if best is None or rank < best[0]:
                best = rank, found
    return best[1] if best is not None else None


def _reclaim(
    state: State,
    request: Request,
    ahead: Ahead,
    claims: Claims,
    full: Sequence[Full] | None = None,
    leaving: Sequence[Lease] = (),
) -> Placement | None:
    """Where running cells can be reclaimed for it, after all that is hot there: on the node that loses least.

    With `full` also where none need be, and whoever is chosen there or elsewhere makes room in what is full too.
    """
    shape, now_ms, account = request.entry.shape, state.accounts.now_ms, state.accounts.of(request.project)
    best: tuple[tuple[int, ...], Placement] | None = None
    if not may_reclaim(state, request):
        return None
    plan = VictimSelection(state, state.accounts, request)
    candidates, everywhere = plan.candidates(shape.lane), plan.victims(shape.lane) if full else []
    for agent in candidates if full is None else state.nodes:
        node, leases = state.nodes[agent], candidates.get(agent, [])
        slots = sum(len(lease.slots) for lease in leases)
        if not _has_slots(node, shape, hot=True, beside=slots):
            continue
        if node.is_drained or not node.holds(shape) or ahead.is_closed(node):
            continue
        if not _is_in_time(state, node, shape):
            continue
        hot = hot_leases(state, node, shape, account)
        hot.sort(key=lambda lease: lease not in leaving)
        plan.begin()
        able = [one for lease in leases if (one := plan.victim(lease, now_ms)) is not None]
        lacks, chosen = missing(state, node, shape, claims), None
        if ahead.lets_reclaim(node, shape):
            chosen = _choose_victims(plan, node, shape, lacks, hot, able, full)
            grace_ms = max((state.grace_ms(one.lease) for one in chosen or ()), default=0)
            heads = ahead.first_there(node, shape, grace_ms) if chosen is not None else []
            if heads:  # it would be over too late for them: so it takes what is beside theirs
                lacks = missing(state, node, shape, {agent: [*claims.get(agent, ()), *heads]})
                chosen = _choose_victims(plan, node, shape, lacks, hot, able, full)
        if chosen is None:  # who takes the very place of a cell that would be there for longer is in nobody's way
            hot, lacks = [], needed(shape)
            chosen = _choose_victims(plan, node, shape, lacks, hot, _those_that_stay(state, request, able), full)
        if chosen is None:
            continue
        for victim in chosen:
            lacks = lacks.less(node.part_of(victim.lease, shape))
        more = choose_for_full(plan, full or (), everywhere, chosen)
        if more is None:
            continue
        gone = [*chosen, *more]
        loss = (
            sum(victim.is_spared for victim in gone),
            sum(not _is_borrowed(state, victim.lease) for victim in gone),
            _distance(state, request, node),
            0 if full is None else _idles(node, shape, lacks),
            sum(victim.overshoot for victim in gone),
            max((victim.priority for victim in gone), default=0),
            sum(victim.lost_ms for victim in gone),
            node.seq,
        )
        if best is None or loss < best[0]:
            first = victims_of(node, shape, lacks, hot) or ()
            best = loss, Placement(node.agent, first, tuple((one.lease, one.right) for one in gone))
    return best[1] if best is not None else None


def choose_for_full(
    plan: VictimSelection, full: Sequence[Full], able: Sequence[Victim], chosen: Sequence[Victim] = ()
) -> list[Victim] | None:
    """Choose who gives back for what is full, beside those that are chosen; None where all together would not do."""
    if not full:
        return []
    plan.begin()
    for victim in chosen:
        plan.take(victim.lease)
    more: list[Victim] = []
    for one in full:
        lacks = one.lacks - sum(victim.lease.cost for victim in (*chosen, *more) if one.counts(victim.lease))
        for victim in able:
            if lacks <= 0 or victim in chosen or victim in more or not one.counts(victim.lease):
                continue
            if plan.right_to(victim.lease) is not None:  # what was chosen counts against others
                plan.take(victim.lease)
                more.append(victim)
                lacks -= victim.lease.cost
        if lacks > 0:
            return None
    return more


def _choose_victims(
    plan: VictimSelection,
    node: Node,
    shape: Shape,
    lacks: Amount,
    hot: list[Lease],
    able: list[Victim],
    full: Sequence[Full] | None = None,
) -> list[Victim] | None:
    """Choose of these running cells those that have what is lacking beside what is hot; None where they do not.

    Those that count for what is full come first, and none are needed where that is all.
    """
    rest = lacks
    for lease in hot:
        rest = rest.less(node.part_of(lease, shape))
    plan.begin()
    chosen: list[Victim] = []
    for victim in sorted(able, key=lambda one: (not all(limit.counts(one.lease) for limit in full or ()), one)):
        part = node.part_of(victim.lease, shape)
        if rest.gains(part) and plan.right_to(victim.lease) is not None:  # what was chosen counts against others
            plan.take(victim.lease)
            chosen.append(victim)
            rest = rest.less(part)
    if not rest.is_nothing or not (chosen or full is not None):
        return None
    for victim in reversed(chosen[:]):
        without = rest.less(Amount(0).less(node.part_of(victim.lease, shape)))
        if without.is_nothing:
            chosen.remove(victim)
            rest = without
    return chosen


def _those_that_stay(state: State, request: Request, able: list[Victim]) -> list[Victim]:
    """Select the cells of a lower class of its own project that would be there for longer than the request."""
    most_ms = state.accounts.now_ms + state.settings.start_ms + request.entry.shape.walltime_ms
    return [
        one
        for one in able
        if one.right is Right.CLASS and most_ms + state.grace_ms(one.lease) <= state.end_ms(one.lease)
    ]


def _is_in_time(state: State, node: Node, shape: Shape) -> bool:
    """Whether it could still be over before the node is to be drained once those who give back have had their grace."""
    if node.kind.longest_ms is None:
        return True
    grace_ms = max(qos.grace_ms for qos in state.qos.values()) + state.settings.ask_again_ms
    return shape.walltime_ms + grace_ms <= node.kind.longest_ms


def _idles(node: Node, shape: Shape, lacks: Amount) -> int:
    """Count the free slots that would idle there for as long as a request waits for what leaves elsewhere."""
    return max(0, lacks.slots + node.free(shape).slots)


def _last_used(state: State, place: Placement, request: Request) -> list[int]:
    """How many victims are kept from others, how far from home they are, and how recently all were used.

    Of the latter the most recent one first.
    """
    kept = sum(kept_until_ms(state, lease) is not None for lease in place.victims)
    far = 0 if place.agent is None else _distance(state, request, state.nodes[place.agent])
    return [kept, far, *(lease.used for lease in reversed(place.victims))]


def _is_borrowed(state: State, lease: Lease) -> bool:
    """Whether no guarantee covers a cell, or one of its own project would go in any case: nobody must move for it."""
    return not state.coverage.is_in_quota(state.accounts, lease)


def _distance(state: State, request: Request, node: Node) -> int:
    return state.pools.distance(state.accounts.of(request.project), node.agent, request.entry.shape)


def victims_of(node: Node, shape: Shape, lacks: Amount, hot: list[Lease]) -> tuple[Lease, ...] | None:
    """Choose of these hot leases of the node, the first ones first, those that have what is lacking, and no more.

    None where all of them together have not enough.
    """
    chosen: list[Lease] = []
    for lease in hot:
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
