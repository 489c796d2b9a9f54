"""Where a request fits now, or once others have left: questions only, answered on counts."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from bulletin.ids import AgentId, SlotId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.actions import Right
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.resources import LANES, Amount, Lane
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.ahead import Ahead
from gpu_worker.scheduler.placement.keep_time import kept_until_ms
from gpu_worker.scheduler.placement.owed_types import given_back_for, owed_types
from gpu_worker.scheduler.placement.room import Claims, hot_leases, is_spare, missing, needed
from gpu_worker.scheduler.placement.room_left import RoomLeft
from gpu_worker.scheduler.placement.seats import choose_slots
from gpu_worker.scheduler.state import State


class Start(NamedTuple):
    """Where a request starts now, and on which slots, which are free."""

    agent: AgentId
    slots: tuple[SlotId, ...]


class Placement(msgspec.Struct, frozen=True):
    """Where a request fits once the victims, hot leases, have gone; none where those that leave already suffice.

    Without an agent the victims are not in its way on a node, but in the way of its project's limit.
    """

    agent: AgentId | None
    victims: tuple[Lease, ...] = ()
    reclaimed: tuple[tuple[Lease, Right], ...] = ()  #: running cells that must be given back
    waits_for_node: bool = False  #: no node could hold it yet if they left: so nobody leaves for it
    has_grace: bool = False  #: whatever is free there, it waits for cells that have a grace
    is_stuck: bool = False  #: what it lacks nobody gives back yet, or others would have it: it takes nothing meanwhile


def nodes_of_pools(state: State, request: Request) -> frozenset[AgentId] | None:
    """Select the nodes where a request that only its node pools cover is covered; None where it is on all nodes."""
    account, shape = state.accounts.of(request.project), request.entry.shape
    if not state.pools or state.accounts.is_covered(account, request.entry):
        return None
    return state.pools.agents(state.pools.covering(account, shape, request.entry))


def fit(state: State, request: Request, ahead: Ahead, claims: Claims) -> Start | None:
    """Find the node that holds a request now without harm to those who wait, with the least GPUs and least torn.

    One in a node pool that covers it comes first, one in a pool that does not comes last. Where all are closed, that
    which is held for the head of the line, if the request is over in time. Of several types that it could use on a
    node it leaves those to others that they are to have.
    """
    shape, account = request.entry.shape, state.accounts.of(request.project)
    if not ahead.heads and ahead.blocked.everywhere(shape):
        return None
    best: tuple[tuple[int, ...], Start] | None = None
    held: list[tuple[Node, list[Shape]]] = []
    for node in _roomy(state, shape.lane):
        if not is_free(node, shape):
            continue
        promised = [*claims.get(node.agent, ()), *owed_types(state, request, node, claims)]
        slots = _choose_spare(state, node, shape, promised, ahead, ahead.lets_in)
        if slots is None:
            held.append((node, promised))
            continue
        far, sizes = state.pools.distance(account, node.agent, shape), node.size_of(slots)
        rank = far, *sizes, node.lanes[shape.lane].free, node.seq
        if best is None or rank < best[0]:
            best = rank, Start(node.agent, slots)
    if best is not None:
        return best[1]
    for node, promised in held if ahead.heads else ():
        slots = _choose_spare(state, node, shape, promised, ahead, ahead.lets_fill)
        if slots is not None:
            return Start(node.agent, slots)
    return None


def _choose_spare(
    state: State,
    node: Node,
    shape: Shape,
    promised: list[Shape],
    ahead: Ahead,
    lets: Callable[[Node, Shape, tuple[SlotId, ...]], bool],
) -> tuple[SlotId, ...] | None:
    """Choose free slots of the node that are promised to nobody, and that those ahead let such a request have."""
    slow = ahead.slow.get(node.agent, ())
    return choose_slots(
        node,
        shape,
        lambda slots: is_spare(state, node, shape, slots, promised, slow) and lets(node, shape, slots),
        promised,
    )


def _roomy(state: State, lane: Lane) -> Iterator[Node]:
    return map(state.nodes.__getitem__, state.roomy[lane])


def is_free(node: Node, shape: Shape) -> bool:
    """Whether a node has free what such a request needs."""
    is_likely = node.lanes[shape.lane].free >= shape.need and node.holds(shape)
    return is_likely and needed(shape).less(node.free(shape)).is_nothing


def place(state: State, request: Request, ahead: Ahead, claims: Claims, left: RoomLeft) -> Placement | None:
    """Where, on a node that is not closed, the request will fit without waiting for a running cell.

    What those ahead claim, free or leaving, is meant for them. A node where what leaves suffices comes first; then the
    one whose most recently used victim was used the longest ago; then one where a reclaimed cell has its grace. None
    where running cells are in the way everywhere.
    """
    shape, account = request.entry.shape, state.accounts.of(request.project)
    lanes = LANES if shape.wants.is_more else (shape.lane,)  # CPUs and memory are of both
    ready = _ready(state, request, ahead, claims, left, at_once=True)
    if ready is not None:
        return ready
    best: Placement | None = None
    for node in map(state.nodes.__getitem__, dict.fromkeys(agent for lane in lanes for agent in state.warm[lane])):
        if has_slots(node, shape, hot=True) and node.holds(shape) and ahead.lets_make_room(node, shape):
            lacks = _missing(state, request, node, ahead, claims, at_once=True)
            victims = victims_of(node, shape, lacks, _hot_beside(state, node, shape, account, ahead))
            found = Placement(node.agent, victims) if victims is not None else None
            if found is not None and (
                best is None or _last_used(state, found, request) < _last_used(state, best, request)
            ):
                best = found
    return best or _ready(state, request, ahead, claims, left, at_once=False)


def _able(state: State, shape: Shape, ahead: Ahead) -> list[Node]:
    """List the nodes where enough may be free or leaving for such a request, and where it passes nobody."""
    lanes = LANES if shape.wants.is_more else (shape.lane,)  # CPUs and memory are of both
    roomy = dict.fromkeys(agent for lane in lanes for agent in state.roomy[lane])
    return [
        node
        for node in map(state.nodes.__getitem__, roomy)
        if has_slots(node, shape, hot=False) and node.holds(shape) and ahead.lets_make_room(node, shape)
    ]


def has_slots(node: Node, shape: Shape, *, hot: bool, beside: int = 0) -> bool:
    """Whether enough slots of the lane are free or leaving, or perhaps hot, of whatever kind, with so many beside."""
    counts = node.lanes[shape.lane]
    return counts.free + counts.leaving + (counts.hot if hot else 0) + beside >= shape.need


def _ready(
    state: State, request: Request, ahead: Ahead, claims: Claims, left: RoomLeft, *, at_once: bool
) -> Placement | None:
    """Find the node where what leaves suffices, and it passes nobody, with the most to spare; at home first."""
    shape = request.entry.shape
    ready: list[tuple[int, int, int, AgentId]] = []
    for agent, lacks in left.find(shape, at_once=at_once).items():
        node = state.nodes[agent]
        if not node.holds(shape) or not ahead.lets_make_room(node, shape):
            continue
        if not node.kind.is_one_type(shape.lane):
            lacks = _missing(state, request, node, ahead, claims, at_once=at_once)  # noqa: PLW2901
        if lacks.is_nothing:
            ready.append((distance(state, request, node), -lacks.slots, node.seq, agent))
    return Placement(min(ready)[3], has_grace=not at_once) if ready else None


def _missing(
    state: State, request: Request, node: Node, ahead: Ahead, claims: Claims, *, at_once: bool = False
) -> Amount:
    """Compute what a request lacks there beside all who are to have some of its slots, whoever waits longer too."""
    shape, slow = request.entry.shape, ahead.slow.get(node.agent, ())
    if node.kind.is_one_type(shape.lane):
        return missing(state, node, shape, claims, at_once=at_once, slow=slow)
    owed, kept = owed_types(state, request, node, claims), ahead.kept_slots(node, shape)
    return missing(state, node, shape, claims, at_once=at_once, slow=slow, but=kept, owed=owed)


def _hot_beside(state: State, node: Node, shape: Shape, account: Account, ahead: Ahead) -> list[Lease]:
    """List hot leases that may leave for such a request and have none of the slots that are kept for a head."""
    hot, kept = hot_leases(state, node, shape, account), ahead.kept_slots(node, shape)
    return [lease for lease in hot if kept.isdisjoint(lease.slots)]


def ready_place(state: State, request: Request, ahead: Ahead, claims: Claims) -> Placement | None:
    """Where what is free or leaving suffices for it, beside what those ahead claim: with the least of what is free.

    Of those that do as well it is rather one where something is given back for its project.
    """
    shape = request.entry.shape
    best: tuple[tuple[int, ...], Node] | None = None
    its_own = {lease.agent for lease in given_back_for(state, request.project)}
    for node in _able(state, shape, ahead):
        lacks, is_others = _missing(state, request, node, ahead, claims), node.agent not in its_own
        rank = distance(state, request, node), idles(node, shape, lacks), is_others, lacks.slots, node.seq
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
        if node.is_drained or not has_slots(node, shape, hot=True) or not node.holds(shape):
            continue
        if not ahead.lets_make_room(node, shape):
            continue
        hot = _hot_beside(state, node, shape, account, ahead)
        hot.sort(key=lambda lease: lease not in leaving)
        victims = victims_of(node, shape, _missing(state, request, node, ahead, claims, at_once=True), hot)
        if victims is not None:
            found = Placement(node.agent, tuple(lease for lease in victims if lease not in leaving))
            rank = [len(found.victims), *_last_used(state, found, request), node.seq]
            if best is None or rank < best[0]:
                best = rank, found
    return best[1] if best is not None else None


def idles(node: Node, shape: Shape, lacks: Amount) -> int:
    """Count the free slots that would idle there for as long as a request waits for what leaves elsewhere."""
    return max(0, lacks.slots + node.free(shape).slots)


def _last_used(state: State, place: Placement, request: Request) -> list[int]:
    """How many victims are kept from others, how far from home they are, and how recently all were used.

    Of the latter the most recent one first.
    """
    kept = sum(kept_until_ms(state, lease) is not None for lease in place.victims)
    far = 0 if place.agent is None else distance(state, request, state.nodes[place.agent])
    return [kept, far, *(lease.used for lease in reversed(place.victims))]


def distance(state: State, request: Request, node: Node) -> int:
    """Compute how far from home a node is for a request, as `NodePools.distance` does."""
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
