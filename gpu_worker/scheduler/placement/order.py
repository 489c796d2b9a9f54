"""Who is next, where it fits, and who must make room: questions only, answered on counts.

One rule makes the order: **nobody is passed on a node that could hold them.** A request may run before one that stands
ahead of it only on a node that could not hold that one, or where the two use nothing of the same: there it takes
nothing away. So a request for many GPUs is not starved by small ones, and one that no connected node can hold blocks
nobody. The first that waits for running cells holds one node instead (`backfill`), and may be passed where that does it
no harm. And who is covered by a guarantee passes all that is not late, where it finds no other place.
"""

from collections.abc import Generator

import msgspec

from bulletin.ids import AgentId, ProjectId, RequestId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.resources import Lane
from gpu_worker.scheduler.leases.shapes import QueueEntry, Shape
from gpu_worker.scheduler.nodes.node import Node, NodeKind
from gpu_worker.scheduler.placement.ahead import Ahead
from gpu_worker.scheduler.placement.backfill import Head
from gpu_worker.scheduler.placement.caps import make_room_in_limits
from gpu_worker.scheduler.placement.feasible import FeasibleShapes
from gpu_worker.scheduler.placement.keep_time import is_kept_from
from gpu_worker.scheduler.placement.kept_quota import KeptQuota
from gpu_worker.scheduler.placement.lent import lacks_of_lent
from gpu_worker.scheduler.placement.open_nodes import open_nodes
from gpu_worker.scheduler.placement.places import Placement, Start, fit, nodes_of_pools, place, victims_of
from gpu_worker.scheduler.placement.queue_walk import QueueWalk, has_node
from gpu_worker.scheduler.placement.reclaim import VictimSelection, may_reclaim
from gpu_worker.scheduler.placement.reclaim_places import reclaim_place
from gpu_worker.scheduler.placement.room import Claims, hot_leases, missing
from gpu_worker.scheduler.placement.room_left import RoomLeft
from gpu_worker.scheduler.state import State
from gpu_worker.scheduler.wakeups import share_interval_ms


def decisions(
    state: State, lane: Lane, before: Ahead | None = None
) -> Generator[tuple[Request, Start | Placement | None]]:
    """Each request of the lane that something can be said of, in order, with what is to become of it now.

    The caller exhausts or closes it: meanwhile the line is not as it was. `before` is of lanes that come before.

    Yields
    ------
    (Request, Start)
        It fits these free slots of a node. Who decides must grant it before the next one is asked for.
    (Request, Placement)
        It waits for slots that are leaving or, where there are victims, must be made to leave.
    (Request, None)
        It waits for running cells, or stands too far back for room to be made now.
    """
    waiting = before or Ahead(state)
    waiting.next_lane()
    _note_shares(state)
    if all(asked != lane for asked, *_ in state.queue.alike):
        return  # nobody is in line: the usual case of CPU slots, and of a pool that is not full
    line, quota = QueueWalk(state, lane), KeptQuota(state)
    claims: dict[AgentId, list[Shape]] = {}
    left, ahead = RoomLeft(state, claims, waiting.slow), 0
    asked_first: set[RequestId] = set()  #: those that others of their project would take cells for, or leave them
    passed: set[ProjectId] = set()  #: of those that found no place: what they would take nobody behind them has
    feasible = FeasibleShapes(state, claims, left)
    walk = iter(line)
    try:
        for request in walk:
            open_to_it = open_nodes(state, request)
            there = waiting.on(open_to_it)
            could_run = feasible.could_ever_have(request.entry.shape)
            capped = make_room_in_limits(state, request, there, claims) if could_run else None
            if capped is not None and not capped.waits_for_node:
                if quota.is_kept_from(request):
                    yield request, None
                    continue
                waiting.forget_no_room()
                feasible.forget(lease for lease, _ in capped.reclaimed)
                if not capped.is_stuck:
                    pool = "" if capped.agent is None else state.pools.of(capped.agent, request.entry.shape)
                    line.take_for_granted(pool, replaces=capped.has_grace)
                    quota.note(request, pool)
                    capped = _with_hot_in_way(capped, quota, request, pool)
                if capped.agent is None and request.id in asked_first:
                    passed.add(request.project)
                if capped.agent is not None:
                    claims.setdefault(capped.agent, []).append(request.entry.shape)
                    feasible.note_claim(capped.agent)
                    if capped.has_grace:
                        waiting.slow.setdefault(capped.agent, []).append(request.entry.shape)
                yield request, capped
                continue
            shape = request.entry.shape
            has_room = feasible.has_left(shape)
            covered = state.is_covered(request)
            if not covered:
                there = there.of_borrower(state.accounts.of(request.project))
            found: Start | Placement | None = None
            if capped is not None:
                pass  # it has no place in its limit before it has one on a node
            elif not covered:
                is_near = ahead < state.settings.look_ahead
                found = _find(state, request, there, claims, left, has_room=has_room, makes_room=is_near)
            elif not (there.has_no_room(shape) and not _may_take(state, request)):
                found = _find(state, request, there, claims, left, has_room=has_room)
                if found is None and (there.heads or there.blocked):
                    passing = there.for_covered(nodes_of_pools(state, request))
                    found = _find(state, request, passing, claims, left, has_room=has_room)
                if found is None and open_to_it is None:
                    waiting.note_no_room(shape)
            if found is not None and quota.is_kept_from(request):
                yield request, None
                continue
            node = None if found is None or found.agent is None else state.nodes[found.agent]
            if node is None and request.id in asked_first:
                passed.add(request.project)
            first = None if node is None else _who_took(state, request, node, there, claims)
            if first is not None and first.id not in asked_first:
                asked_first.add(first.id)
                line.look_first(first)
                continue
            if node is not None and (first is not None or request.project in passed):
                yield request, None
                line.close_in_project(request)
                continue
            if isinstance(found, Start):
                yield request, found
                continue
            if found is not None and found.is_stuck:
                yield request, None
                continue
            if found is not None and found.agent is not None:
                ahead += not covered
                if ahead >= state.settings.look_ahead:
                    line.close_to_borrowers()
                waiting.place(shape, found.agent)
                if found.has_grace:
                    waiting.slow.setdefault(found.agent, []).append(shape)
                claims.setdefault(found.agent, []).append(shape)
                feasible.note_claim(found.agent)
                waiting.forget_no_room()
                if found.reclaimed:
                    feasible.forget(lease for lease, _ in found.reclaimed)
                pool = state.pools.of(found.agent, shape)
                line.take_for_granted(pool)
                quota.note(request, pool)
                found = _with_hot_in_way(found, quota, request, pool)
            else:
                kinds = _kinds_of(state, feasible.kinds, open_to_it)
                alone = waiting.unheaded(kinds, shape)
                if alone:
                    head = Head(state, request, claims, alone, waiting.heads)
                    waiting.heads.append(head)
                    found = _late(state, head) if ahead < state.settings.look_ahead else None
                elif open_to_it is None:
                    waiting.blocked.add(shape)
                if covered:  # others that are covered may take back what it may not
                    line.close_in_project(request)
                elif open_to_it is None:
                    line.narrow(request, waiting.of_borrower("anybody"), feasible)
                line.skip_hopeless(shape, alone or (kinds if open_to_it is None else ()), feasible)
            yield request, found
    finally:
        walk.close()


def _find(
    state: State,
    request: Request,
    ahead: Ahead,
    claims: Claims,
    left: RoomLeft,
    *,
    has_room: bool,
    makes_room: bool = True,
) -> Start | Placement | None:
    """Find where it fits: in what is free; with `makes_room` else in what is hot or leaves, else in what is given back.

    Without `has_room` it is known that only running cells can make room.
    """
    found: Start | Placement | None = fit(state, request, ahead, claims) if has_room else None
    if found is None and has_room and makes_room:
        found = place(state, request, ahead, claims, left)
    if found is None and makes_room:
        found = reclaim_place(state, request, ahead, claims)
    return found


def _with_hot_in_way(found: Placement, quota: KeptQuota, request: Request, pool: str) -> Placement:
    """Have hot leases leave, too, that would begin with what is kept for a request for which cells go."""
    if not found.has_grace and not found.reclaimed:
        return found
    more = (one for one in quota.hot_in_way(request, pool) if one not in found.victims)
    return msgspec.structs.replace(found, victims=(*found.victims, *more))


def _kinds_of(state: State, kinds: tuple[NodeKind, ...], nodes: frozenset[AgentId] | None) -> tuple[NodeKind, ...]:
    """Select the kinds of these nodes; None is all."""
    if nodes is None:
        return kinds
    there = {id(state.nodes[agent].kind) for agent in nodes}
    return tuple(kind for kind in kinds if id(kind) in there)


def _who_took(state: State, request: Request, node: Node, ahead: Ahead, claims: Claims) -> Request | None:
    """Find who would take the request's cell at once, since it is of a lower class of their project, for the node.

    They have taken others already, or are late. The request does not come before them there, nor where a limit, or
    what lenders keep, lets only one of the two through; unless they wait for running cells wherever they could run,
    and are not late, or it is what lenders keep: that would be nobody's meanwhile.
    """
    account, shape = state.accounts.of(request.project), request.entry.shape
    if not request.entry.key.is_early:
        return None
    for (turn, is_plain, is_early, since_ms, priority, *_), name, wanted in account.firsts:
        if not turn and is_plain and is_early and since_ms >= 0:
            return None
        entry = account.users[name].lines[wanted][0][1]
        if priority >= request.entry.key.priority or not state.accounts.is_allowed(account, entry):
            continue
        if not has_node(state, wanted) or _is_at_home_alone(state, request, entry, node):
            continue
        if _fills_limit(account, shape.cost, wanted.cost) and (
            not is_early or _may_start(state, wanted, account, ahead, claims)
        ):
            return state.pending[entry.id]
        if _fills_lent(state, request, account, wanted) and _may_start(state, wanted, account, ahead, claims):
            return state.pending[entry.id]
        if not node.holds(wanted) or not ahead.lets_make_room(node, wanted):
            continue
        first = state.pending[entry.id]
        capped = make_room_in_limits(state, first, ahead, claims)
        if (capped is not None and capped.is_stuck) or not _may_come_free(state, node, wanted, account, claims):
            continue
        beside = {node.agent: [*claims.get(node.agent, ()), shape]}
        if not _may_come_free(state, node, wanted, account, beside):
            return first
        if _is_in_way_of_limit(state, request, first, capped, ahead, claims):
            return first
    return None


def _is_at_home_alone(state: State, request: Request, other: QueueEntry, node: Node) -> bool:
    """Whether the request is at home on the node, and another one of its project, for more GPUs, is not."""
    pool, account = state.pools.of(node.agent, request.entry.shape), state.accounts.of(request.project)
    if not pool or pool not in state.pools.covering(account, request.entry.shape, request.entry):
        return False
    return pool not in state.pools.covering(account, other.shape, other)


def _fills_limit(account: Account, cost: int, wanted: int) -> bool:
    """Whether a limit lets one of these costs through and not both, beside the cells that stay."""
    stays = ((at.limit, at.used - at.going) for at in account.path)
    return any(limit is not None and used + wanted <= limit < used + wanted + cost for limit, used in stays)


def _fills_lent(state: State, request: Request, account: Account, wanted: Shape) -> bool:
    """Whether lenders keep something from such a request beside this one, and nothing without it."""
    if not state.accounts.has_lenders or (lacks_of_lent(state, account, wanted) or 0) > 0:
        return False
    owner = request.project, request.user, request.qos, request.entry.shape.cost
    state.accounts.use(*owner, +1, is_awaited=True)
    lacks = lacks_of_lent(state, account, wanted)
    state.accounts.use(*owner, -1, is_awaited=True)
    return lacks is not None and lacks > 0


def _may_start(state: State, shape: Shape, account: Account, ahead: Ahead, claims: Claims) -> bool:
    """Whether there is room for such a request on any node once what leaves has left, and what is hot."""
    return any(
        node.holds(shape)
        and not node.is_drained
        and ahead.lets_make_room(node, shape)
        and _may_come_free(state, node, shape, account, claims)
        for node in state.nodes.values()
    )


def _is_in_way_of_limit(
    state: State, request: Request, first: Request, capped: Placement | None, ahead: Ahead, claims: Claims
) -> bool:
    """Whether a request would have of a limit, or of what is lent, what another one of its project needs to start."""
    owner = request.project, request.user, request.qos, request.entry.shape.cost
    state.accounts.use(*owner, +1, is_awaited=True)
    then = make_room_in_limits(state, first, ahead, claims)
    state.accounts.use(*owner, -1, is_awaited=True)
    return then is not None and (capped is None or then.is_stuck or bool(then.reclaimed))


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
            every_ms = share_interval_ms(state.settings.share_every_ms, len(state.pending))
            state.wakeups.note_share(from_ms, now_ms, every_ms)


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
    for lease in victims_of(node, head.shape, head.needs_of_hot(), hot) or ():
        if is_kept_from(state, lease, head.account, head.shape.cost):
            continue
        until_ms = at_ms - lease.walltime_ms
        if until_ms <= state.accounts.now_ms:
            victims.append(lease)
        else:
            state.wakeups.note(until_ms)
    return Placement(node.agent, tuple(victims)) if victims else None


def _may_take(state: State, request: Request) -> bool:
    """Whether any running cell could be reclaimed for a request, wherever it is."""
    may = may_reclaim(state, request)
    return may and bool(VictimSelection(state, state.accounts, request).candidates(request.entry.shape.lane))
