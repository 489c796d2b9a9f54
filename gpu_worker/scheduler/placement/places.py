"""Where a request fits now, or once others have left: questions only, answered on counts."""

from collections.abc import Iterator

import msgspec

from bulletin.ids import AgentId
from gpu_worker.scheduler.actions import Right
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.resources import LANES, Amount, Lane
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.ahead import Ahead
from gpu_worker.scheduler.placement.keep_time import kept_until_ms
from gpu_worker.scheduler.placement.reclaim import Victim, VictimSelection, may_reclaim
from gpu_worker.scheduler.placement.room import Claims, hot_leases, missing, needed
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
    is_stuck: bool = False  #: what a limit lacks nobody gives back yet: so it takes nothing from others meanwhile


def fit(state: State, request: Request, ahead: Ahead) -> Node | None:
    """Find the node that holds a request now without harm to those who wait, with the least GPUs and least torn.

    One in a node pool that covers it comes first, one in a pool that does not comes last. Where all are closed, that
    which is held for the head of the line, if the request is over in time.
    """
    shape, account = request.entry.shape, state.accounts.of(request.project)
    if not ahead.heads and ahead.blocked.everywhere(shape):
        return None
    nodes = [node for node in _roomy(state, shape.lane) if is_free(node, shape)]
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
    able = [
        node
        for node in map(state.nodes.__getitem__, dict.fromkeys(agent for lane in lanes for agent in state.roomy[lane]))
        if _has_slots(node, shape, hot=False) and node.holds(shape) and ahead.lets_make_room(node, shape)
    ]
    ready = _ready(state, able, shape, claims, at_once=True)
    if ready is not None:
        return ready
    best: Placement | None = None
    for node in map(state.nodes.__getitem__, dict.fromkeys(agent for lane in lanes for agent in state.warm[lane])):
        if _has_slots(node, shape, hot=True) and node.holds(shape) and ahead.lets_make_room(node, shape):
            lacks = missing(state, node, shape, claims, at_once=True)
            victims = victims_of(node, shape, lacks, hot_leases(state, node, shape, account))
            found = Placement(node.agent, victims) if victims is not None else None
            if found is not None and (best is None or _last_used(state, found) < _last_used(state, best)):
                best = found
    best = best or _ready(state, able, shape, claims, at_once=False)
    return best or _reclaim(state, request, ahead, claims)


def _has_slots(node: Node, shape: Shape, *, hot: bool, beside: int = 0) -> bool:
    """Whether enough slots of the lane are free or leaving, or perhaps hot, of whatever kind, with so many beside."""
    counts = node.lanes[shape.lane]
    return counts.free + counts.leaving + (counts.hot if hot else 0) + beside >= shape.need


def _ready(state: State, nodes: list[Node], shape: Shape, claims: Claims, *, at_once: bool) -> Placement | None:
    """Find the node where what leaves suffices, with the most to spare."""
    ready = [
        (-lacks.slots, node.seq, node)
        for node in nodes
        if (lacks := missing(state, node, shape, claims, at_once=at_once)).is_nothing
    ]
    return Placement(min(ready, key=lambda one: one[:2])[2].agent) if ready else None


def _reclaim(state: State, request: Request, ahead: Ahead, claims: Claims) -> Placement | None:
    """Where running cells can be reclaimed for it, after all that is hot there: on the node that loses least."""
    shape, now_ms, account = request.entry.shape, state.accounts.now_ms, state.accounts.of(request.project)
    best: tuple[tuple[int, ...], Placement] | None = None
    if not may_reclaim(state, request):
        return None
    plan = VictimSelection(state, state.accounts, request)
    for agent, leases in plan.candidates(shape.lane).items():
        node = state.nodes[agent]
        slots = sum(len(lease.slots) for lease in leases)
        if not _has_slots(node, shape, hot=True, beside=slots):
            continue
        if node.is_drained or not node.holds(shape) or ahead.is_closed(node):
            continue
        if not _is_in_time(state, node, shape):
            continue
        hot = hot_leases(state, node, shape, account)
        able = [one for lease in leases if (one := plan.victim(lease, now_ms)) is not None]
        heads = ahead.first_there(node, shape, max(state.grace_ms(lease) for lease in leases))
        claimed = {agent: [*claims.get(agent, ()), *heads]} if heads else claims
        lacks = missing(state, node, shape, claimed)
        chosen = _choose_victims(plan, node, shape, lacks, hot, able) if ahead.lets_reclaim(node, shape) else None
        if chosen is None:  # who takes the very place of a cell that would be there for longer is in nobody's way
            hot, lacks = [], needed(shape)
            chosen = _choose_victims(plan, node, shape, lacks, hot, _those_that_stay(state, request, able))
        if chosen is None:
            continue
        for victim in chosen:
            lacks = lacks.less(node.part_of(victim.lease, shape))
        loss = (
            sum(victim.is_own for victim in chosen),
            sum(victim.overshoot for victim in chosen),
            max((victim.priority for victim in chosen), default=0),
            sum(victim.lost_ms for victim in chosen),
            node.seq,
        )
        if best is None or loss < best[0]:
            first = victims_of(node, shape, lacks, hot) or ()
            best = loss, Placement(node.agent, first, tuple((one.lease, one.right) for one in chosen))
    return best[1] if best is not None else None


def _choose_victims(
    plan: VictimSelection, node: Node, shape: Shape, lacks: Amount, hot: list[Lease], able: list[Victim]
) -> list[Victim] | None:
    """Choose of these running cells those that have what is lacking beside what is hot; None where they do not."""
    rest = lacks
    for lease in hot:
        rest = rest.less(node.part_of(lease, shape))
    plan.begin()
    chosen: list[Victim] = []
    for victim in sorted(able):
        part = node.part_of(victim.lease, shape)
        if rest.gains(part) and plan.right_to(victim.lease) is not None:  # what was chosen counts against others
            plan.take(victim.lease)
            chosen.append(victim)
            rest = rest.less(part)
    if not rest.is_nothing or not chosen:
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


def _last_used(state: State, place: Placement) -> list[int]:
    """How many victims are kept from others, and how recently all were used, the most recent one first."""
    kept = sum(kept_until_ms(state, lease) is not None for lease in place.victims)
    return [kept, *(lease.used for lease in reversed(place.victims))]


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
