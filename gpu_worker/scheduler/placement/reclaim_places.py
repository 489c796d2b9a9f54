"""Where a request fits once running cells are given back, on a node and in what is full beside it: questions only."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bulletin.ids import AgentId, LeaseId
from gpu_worker.scheduler.actions import Right
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.resources import Amount
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.ahead import Ahead
from gpu_worker.scheduler.placement.backfill import Head
from gpu_worker.scheduler.placement.gone_cells import without_cells
from gpu_worker.scheduler.placement.heirs import has_heir
from gpu_worker.scheduler.placement.lent import would_be_lent
from gpu_worker.scheduler.placement.places import Placement, distance, has_slots, idles, victims_of
from gpu_worker.scheduler.placement.reclaim import Victim, VictimSelection, lost_by, may_reclaim
from gpu_worker.scheduler.placement.reclaimable import reclaimable
from gpu_worker.scheduler.placement.room import Claims, hot_leases, missing, needed
from gpu_worker.scheduler.state import State


class Full(NamedTuple):
    """A limit, or what lenders keep, for which running cells must be given back, wherever they are."""

    names: frozenset[LeaseId] | None  #: of cells that count for it; None is all
    lacks: int  #: thousandths of a GPU
    but: frozenset[LeaseId] = frozenset()  #: of cells that do not count, although all do
    place: str | None = None  #: a node pool, or `ELSEWHERE`, if it is full for who starts there alone

    def counts(self, lease: Lease) -> bool:
        """Whether a cell counts for it."""
        return lease.id not in self.but if self.names is None else lease.id in self.names


def reclaim_place(
    state: State,
    request: Request,
    ahead: Ahead,
    claims: Claims,
    full: Sequence[Full] | None = None,
    leaving: Sequence[Lease] = (),
) -> Placement | None:
    """Where running cells can be given back for a request, after all that is hot there: on the node that loses least.

    With `full` also where none need be, and whoever is chosen there or elsewhere makes room in what is full too, from
    the inside out. `leaving` are hot leases that leave in any case. Who is covered has no cell go that is of its own
    project, or of its department and covered, where others may before its grace would be over: it waits for those.
    Where what goes would be others' it is stuck.
    """
    if not may_reclaim(state, request):
        return None
    plan = VictimSelection(state, state.accounts, request)
    found = _find_place(state, request, ahead, claims, plan, plan.candidates(request.lane), full, leaving)
    if found is None or plan.displaces or not _moves_own(state, request, found.place) or not state.is_covered(request):
        return None if found is None else found.place
    grace_ms = max(state.grace_ms(lease) for lease, _ in found.place.reclaimed)
    soon = plan.borrowed_by(request.lane, state.accounts.now_ms + grace_ms)
    old = reclaimable(state, request.lane)
    if all(lease.id in old for leases in soon.values() for lease in leases):
        return found.place
    now = {agent: [lease for lease in leases if lease.id in old] for agent, leases in soon.items()}
    if any(now.values()) and _find_place(state, request, ahead, claims, plan, now, full, leaving):
        return found.place
    return None if _find_place(state, request, ahead, claims, plan, soon, full, leaving) else found.place


class _Found(NamedTuple):
    """The best of the places that were looked at."""

    loss: tuple[int, ...]
    place: Placement


def _moves_own(state: State, request: Request, place: Placement) -> bool:
    """Whether a cell of the request's project goes, or one of its department that is covered: it gains nothing then."""
    top = state.accounts.of(request.project).top
    return any(
        lease.project == request.project
        or (state.accounts.of(lease.project).top is top and state.coverage.is_in_quota(state.accounts, lease))
        for lease, _ in place.reclaimed
    )


def _find_place(
    state: State,
    request: Request,
    ahead: Ahead,
    claims: Claims,
    plan: VictimSelection,
    candidates: Mapping[AgentId, list[Lease]],
    full: Sequence[Full] | None,
    leaving: Sequence[Lease],
) -> _Found | None:
    """Find where some of these running cells can be given back so that the least is lost."""
    shape, now_ms, account = request.entry.shape, state.accounts.now_ms, state.accounts.of(request.project)
    best: _Found | None = None
    is_stuck = False
    everywhere = plan.victims(candidates) if full else []
    for agent in candidates if full is None else state.nodes:
        node, leases = state.nodes[agent], candidates.get(agent, [])
        slots = sum(len(lease.slots) for lease in leases)
        if not has_slots(node, shape, hot=True, beside=slots):
            continue
        if node.is_drained or not node.holds(shape) or ahead.is_closed(node):
            continue
        full_there = full and [one for one in full if one.place in (None, state.pools.of(agent, shape))]
        if not _is_in_time(state, node, shape):
            continue
        far = distance(state, request, node)
        if full is None and (not leases or (best is not None and _least_loss(state, node, leases, far) > best.loss)):
            continue
        plan.begin()
        able = [one for lease in leases if (one := plan.victim(lease, now_ms)) is not None]
        if full is None and not able:
            continue
        hot = hot_leases(state, node, shape, account)
        hot.sort(key=lambda lease: lease not in leaving)
        lacks, chosen, late = missing(state, node, shape, claims), None, dict[Shape, int]()
        if ahead.lets_reclaim(node, shape):
            chosen = _choose_victims(plan, node, shape, lacks, hot, able, full_there)
            grace_ms = max((state.grace_ms(one.lease) for one in chosen or ()), default=0)
            there = ahead.first_there(node, shape, grace_ms) if chosen is not None else []
            heads = [
                head.shape
                for head in there
                if not _shares_before(state, request, head, chosen or ())
                and not _is_left_beside(head, node, shape, chosen or (), claims)
            ]
            late = _late_there(state, request, ahead, node, claims, chosen or (), grace_ms)
            heads += late
            heads = [one for one in heads if not _has_other_slots(node, shape, one, chosen or ())]
            if heads:  # it would be over too late for them: so it takes what is beside theirs
                lacks = missing(state, node, shape, {agent: [*claims.get(agent, ()), *heads]})
                chosen = _choose_victims(plan, node, shape, lacks, hot, able, full_there)
        if chosen is None:  # who takes the very place of a cell that would be there for longer is in nobody's way
            hot, lacks = [], needed(shape)
            waits_ms = max([ahead.waits_until_ms(node, shape), *late.values()])
            staying = _those_that_stay(state, request, ahead, node, able, waits_ms)
            chosen = _choose_victims(plan, node, shape, lacks, hot, staying, full_there)
        if chosen is None:
            is_stuck |= _is_for_late(state, request, late, able)
            continue
        if _would_be_kept(state, request, ahead, node, chosen):
            continue
        for victim in chosen:
            lacks = lacks.less(node.part_of(victim.lease, shape))
        more = choose_for_full(plan, full_there or (), everywhere, chosen)
        if more is None:
            continue
        gone = [*chosen, *more]
        leases = [one.lease for one in gone]
        if not plan.stands_before(gone) or not would_be_lent(state, request, leases):
            continue
        if has_heir(state, request, node, leases):
            is_stuck = request.entry.key.is_early  # else it holds the node against all but those
            continue
        loss = (
            sum(victim.is_spared for victim in gone),
            sum(state.coverage.is_in_quota(state.accounts, victim.lease) for victim in gone),
            far,
            *(() if full is None else (len(gone), idles(node, shape, lacks))),  # no cell ends so that nothing idles
            sum(victim.overshoot for victim in gone),
            max((victim.priority for victim in gone), default=0),
            sum(victim.lost_ms for victim in gone),
            node.seq,
        )
        if best is None or loss < best.loss:
            first = victims_of(node, shape, lacks, hot) or ()
            reclaimed = tuple((one.lease, one.right) for one in gone)
            best = _Found(loss, Placement(node.agent, first, reclaimed, has_grace=bool(reclaimed)))
    return _Found((), Placement(None, is_stuck=True)) if best is None and is_stuck else best


def _least_loss(state: State, node: Node, leases: Iterable[Lease], far: int) -> tuple[int, ...]:
    """Compute a loss that is no more than that of any of these cells on a node, or of several of them.

    Where another node loses less, nobody need ask which of them may be taken.
    """
    now_ms = state.accounts.now_ms
    priority = min(state.qos[lease.qos].priority for lease in leases)
    lost_ms = min(lost_by(lease, now_ms) for lease in leases)
    return 0, 0, far, 0, priority, lost_ms, node.seq


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


def _those_that_stay(
    state: State, request: Request, ahead: Ahead, node: Node, able: list[Victim], waits_ms: int
) -> list[Victim]:
    """Select the cells of its own project that would be there for longer than the request, or than anybody waits.

    One that whoever waits there takes back is there no longer than that.
    """
    most_ms = state.accounts.now_ms + state.settings.start_ms + request.entry.shape.walltime_ms
    found: list[Victim] = []
    for one in able:
        is_own, end_ms = one.right is Right.CLASS or one.lease.project == request.project, ahead.end_ms(node, one.lease)
        if is_own and (end_ms > waits_ms or most_ms + state.grace_ms(one.lease) <= end_ms):
            found.append(one)
    return found


def _would_be_kept(state: State, request: Request, ahead: Ahead, node: Node, chosen: Sequence[Victim]) -> bool:
    """Whether the place of these cells would be kept for a head that has waited for its patience.

    It stands before the request also when they have gone, and could start sooner then than the request would be over:
    that would not start, and they would go for nothing.
    """
    if not chosen or not request.entry.key.is_early:
        return False
    shape = request.entry.shape
    late = ahead.late_heads(node, shape)
    if late:
        with without_cells(state, (one.lease for one in chosen)):
            is_covered = state.is_covered(request)
        late = [head for head in late if head.is_before_covered or not is_covered]
    if not late:
        return False
    grace_ms = max(state.grace_ms(one.lease) for one in chosen)
    end_ms = state.accounts.now_ms + grace_ms + state.settings.start_ms + shape.walltime_ms
    return any(head.is_delayed(node, shape, [one.lease for one in chosen], end_ms) for head in late)


def _has_other_slots(node: Node, shape: Shape, head: Shape, chosen: Sequence[Victim]) -> bool:
    """Whether these cells alone have what a request needs, on slots of which the head of the line can use none."""
    its = set(node.serving(head.lane, head.wants.kind))
    mine = [slot for slot in node.serving(shape.lane, shape.wants.kind) if slot not in its]
    given_back = {slot for victim in chosen for slot in victim.lease.slots}
    is_more = shape.wants.is_more and head.wants.is_more
    return not is_more and its.isdisjoint(given_back) and sum(slot in given_back for slot in mine) >= shape.need


def _is_left_beside(head: Head, node: Node, shape: Shape, chosen: Sequence[Victim], claims: Claims) -> bool:
    """Whether the head of the line starts no later, though a request has the slots of these cells, and no others."""
    slots = tuple(slot for victim in chosen for slot in victim.lease.slots)
    return len(slots) >= shape.need and head.is_left_beside(node, shape, slots, claims)


def _shares_before(state: State, request: Request, head: Head, chosen: Sequence[Victim]) -> bool:
    """Whether a request takes its user's part of its project before the head of the line, which may not do so yet.

    That one is of the same project and class and, since it asked for it, has not waited for as long.
    """
    other, qos = head.request, state.qos[head.request.qos]
    if other.project != request.project or qos.priority != state.qos[request.qos].priority:
        return False
    if any(one.right is not Right.SHARE or one.lease.project != request.project for one in chosen):
        return False
    has_waited = other.since_ms + qos.share_after_ms <= state.accounts.now_ms
    return other.entry.key.is_early and not has_waited and not state.is_covered(other)


def _late_there(
    state: State,
    request: Request,
    ahead: Ahead,
    node: Node,
    claims: Claims,
    chosen: Sequence[Victim],
    grace_ms: int,
) -> dict[Shape, int]:
    """List late requests of its own project that would hold the node once a cell of a lower class has been given back.

    That one's place in the guarantee, or in a limit of its user, is theirs first. Of those that need the same one is
    looked at. Each has the time at which it could start.
    """
    found: dict[Shape, int] = {}
    account, shape = state.accounts.of(request.project), request.entry.shape
    for name in account.late if any(one.right is Right.CLASS for one in chosen) else ():
        late = state.pending[name]
        its = late.entry.shape
        if late.project != request.project or late is request or its in found or ahead.has_head(late):
            continue
        if not node.kind.holds(its) or not node.kind.are_rivals(its, shape):
            continue
        if not state.accounts.is_allowed(account, late.entry):
            continue
        head = Head(state, late, {agent: list(shapes) for agent, shapes in claims.items()}, frozenset({node.kind}))
        if head.held is not None and head.holds(node) and not head.is_over_before(node, shape, grace_ms):
            found[its] = head.held[0]
    return found


def _is_for_late(state: State, request: Request, late: Iterable[Shape], able: Sequence[Victim]) -> bool:
    """Whether a late request of its project, which comes first there, may take such a cell of a lower class."""
    own = [state.qos[one.lease.qos].priority for one in able if one.lease.project == request.project]
    return bool(own) and any(state.qos[one.qos].priority > min(own) for one in late)


def _is_in_time(state: State, node: Node, shape: Shape) -> bool:
    """Whether it could still be over before the node is to be drained once those who give back have had their grace."""
    if node.kind.longest_ms is None:
        return True
    grace_ms = max(qos.grace_ms for qos in state.qos.values()) + state.settings.ask_again_ms
    return shape.walltime_ms + grace_ms <= node.kind.longest_ms
