"""Who is next, where it fits, and who must make room: questions only, answered on counts.

One rule makes the order: **nobody is passed on a node that could hold them.** A request may run before one that stands
ahead of it only on a node that could not hold that one, or where the two use nothing of the same: there it takes
nothing away. So a request for many GPUs is not starved by small ones, and one that no connected node can hold blocks
nobody. The first that waits for running cells holds one node instead (`backfill`), and may be passed where that does it
no harm. And who is covered by a guarantee passes all that is not late, where it finds no other place.
"""

from collections.abc import Generator, Iterator

from bulletin.ids import AgentId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.branches import is_covered
from gpu_worker.scheduler.actions import Right
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.resources import LANES, Amount, Lane
from gpu_worker.scheduler.leases.shapes import FIRST, Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.ahead import Ahead
from gpu_worker.scheduler.placement.backfill import Head
from gpu_worker.scheduler.placement.caps import Placement, make_room_in_limits
from gpu_worker.scheduler.placement.feasible import FeasibleShapes
from gpu_worker.scheduler.placement.keep_time import is_kept_from, kept_until_ms
from gpu_worker.scheduler.placement.queue_walk import QueueWalk
from gpu_worker.scheduler.placement.reclaim import Victim, VictimSelection, may_reclaim
from gpu_worker.scheduler.placement.room import Claims, hot_leases, missing, needed
from gpu_worker.scheduler.state import State


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
    waiting = before or Ahead(is_timed=bool(state.planned_drains))
    waiting.next_lane()
    _note_shares(state)
    if all(asked != lane for asked, *_ in state.queue.alike):
        return  # nobody is in line: the usual case of CPU slots, and of a pool that is not full
    line = QueueWalk(state, lane)
    claims: dict[AgentId, list[Shape]] = {}
    ahead, feasible = 0, FeasibleShapes(state)
    walk = iter(line)
    try:
        for request in walk:
            capped = make_room_in_limits(state, request, claims)
            if capped is not None and not capped.waits_for_node:
                waiting.forget_no_room()
                feasible.forget()
                if not capped.is_stuck:
                    line.take_for_granted(lends=capped.is_for_lenders)
                yield request, capped
                continue
            shape = request.entry.shape
            has_room = feasible.has(shape)
            covered = state.is_covered(request)
            found: Node | Placement | None = None
            if capped is not None:
                pass  # it has no place in its limit before it has one on a node
            elif not covered:
                found = fit(state, request, waiting) if has_room else None
                if found is None and ahead < state.settings.look_ahead:
                    found = place(state, request, waiting, claims, has_room=has_room)
            elif not (waiting.has_no_room(shape) and not _may_take(state, request)):
                found = (fit(state, request, waiting) if has_room else None) or place(
                    state, request, waiting, claims, has_room=has_room
                )
                if found is None and (waiting.heads or waiting.blocked):
                    passing = waiting.for_covered(_nodes_of_pools(state, request))
                    found = (fit(state, request, passing) if has_room else None) or place(
                        state, request, passing, claims, has_room=has_room
                    )
                if found is None:
                    waiting.note_no_room(shape)
            node = None if found is None or found.agent is None else state.nodes[found.agent]
            first = None if node is None else _who_took(state, request, node, waiting, claims)
            if node is not None and first is not None:
                yield request, None
                line.close_in_project(request)
                if _is_free(node, first.entry.shape):
                    yield first, node
                continue
            if isinstance(found, Node):
                yield request, found
                continue
            if found is not None and found.agent is not None:
                ahead += not covered
                waiting.place(shape, found.agent)
                claims.setdefault(found.agent, []).append(shape)
                waiting.forget_no_room()
                if found.reclaimed:
                    feasible.forget()
                line.take_for_granted(state.pools.of(found.agent, shape))
            else:
                alone = waiting.unheaded(feasible.kinds, shape)
                if alone:
                    head = Head(state, request, claims, alone)
                    waiting.heads.append(head)
                    found = _late(state, head) if ahead < state.settings.look_ahead else None
                else:
                    waiting.blocked.add(shape)
                if covered:  # others that are covered may take back what it may not
                    line.close_in_project(request)
                else:
                    line.narrow(shape, waiting, feasible)
                line.skip_hopeless(shape, alone or feasible.kinds, feasible)
            yield request, found
    finally:
        walk.close()


def _who_took(state: State, request: Request, node: Node, ahead: Ahead, claims: Claims) -> Request | None:
    """Find who would take the request's cell at once, since it is of a lower class of their project, for the node.

    They have taken others already, or are late. The request does not come before them there.
    """
    account, shape = state.accounts.of(request.project), request.entry.shape
    if not request.entry.key.is_early:
        return None
    for (turn, is_plain, is_early, since_ms, priority, *_), name, wanted in account.firsts:
        if not turn and is_plain and is_early and since_ms != FIRST:
            return None
        entry = account.users[name].lines[wanted][0][1]
        if priority >= request.entry.key.priority or not node.holds(wanted):
            continue
        if not state.accounts.is_allowed(account, entry) or not ahead.lets_make_room(node, wanted):
            continue
        beside = {node.agent: [*claims.get(node.agent, ()), shape]}
        if _may_come_free(state, node, wanted, account, claims) and not _may_come_free(
            state, node, wanted, account, beside
        ):
            return state.pending[entry.id]
    return None


def _may_come_free(state: State, node: Node, shape: Shape, account: Account, claims: Claims) -> bool:
    """Whether there is room for such a request once what leaves has left, and what is hot."""
    lacks = missing(state, node, shape, claims)
    for hot in hot_leases(state, node, shape, account):
        lacks = lacks.less(node.part_of(hot, shape))
    return lacks.is_nothing


def _note_shares(state: State) -> None:
    """Note when to look again for those who may take for a share later, and who are not looked at now."""
    first = next(iter(state.pending.values()), None)
    if first is not None:
        now_ms = state.accounts.now_ms
        from_ms = first.since_ms + min(qos.share_after_ms for qos in state.qos.values())
        if from_ms > now_ms or not state.wakeups.is_for_shares:
            state.wakeups.note_share(from_ms, now_ms, state.settings.share_every_ms)


def _nodes_of_pools(state: State, request: Request) -> frozenset[AgentId] | None:
    """Select the nodes where a request that only its node pools cover is covered; None where it is on all nodes."""
    account, shape = state.accounts.of(request.project), request.entry.shape
    if not state.pools or is_covered(account, shape.cost):
        return None
    return state.pools.agents(state.pools.covering(account, shape))


def fit(state: State, request: Request, ahead: Ahead) -> Node | None:
    """Find the node that holds a request now without harm to those who wait, with the least GPUs and least torn.

    One in a node pool that covers it comes first, one in a pool that does not comes last. Where all are closed, that
    which is held for the head of the line, if the request is over in time.
    """
    shape, account = request.entry.shape, state.accounts.of(request.project)
    if not ahead.heads and ahead.blocked.everywhere(shape):
        return None
    nodes = [node for node in _roomy(state, shape.lane) if _is_free(node, shape)]
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


def _is_free(node: Node, shape: Shape) -> bool:
    is_likely = node.lanes[shape.lane].free >= shape.need and node.holds(shape)
    return is_likely and needed(shape).less(node.free(shape)).is_nothing


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
    hot = hot_leases(state, node, head.shape)
    for lease in _victims(node, head.shape, head.needs_of_hot(), hot) or ():
        if is_kept_from(state, lease, head.account, head.shape.cost):
            continue
        until_ms = at_ms - lease.walltime_ms
        if until_ms <= state.accounts.now_ms:
            victims.append(lease)
        else:
            state.wakeups.note(until_ms)
    return Placement(node.agent, tuple(victims)) if victims else None


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
            victims = _victims(node, shape, lacks, hot_leases(state, node, shape, account))
            found = Placement(node.agent, victims) if victims is not None else None
            if found is not None and (best is None or _last_used(state, found) < _last_used(state, best)):
                best = found
    best = best or _ready(state, able, shape, claims, at_once=False)
    return best or _reclaim(state, request, ahead, claims)


def _has_slots(node: Node, shape: Shape, *, hot: bool, beside: int = 0) -> bool:
    """Whether enough slots of the lane are free or leaving, or perhaps hot, of whatever kind, with so many beside."""
    counts = node.lanes[shape.lane]
    return counts.free + counts.leaving + (counts.hot if hot else 0) + beside >= shape.need


def _may_take(state: State, request: Request) -> bool:
    """Whether any running cell could be reclaimed for a request, wherever it is."""
    may = may_reclaim(state, request)
    return may and bool(VictimSelection(state, state.accounts, request).candidates(request.entry.shape.lane))


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
            first = _victims(node, shape, lacks, hot) or ()
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


def _victims(node: Node, shape: Shape, lacks: Amount, hot: list[Lease]) -> tuple[Lease, ...] | None:
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
