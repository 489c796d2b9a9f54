"""Who leaves where a limit, a budget or a guarantee that a request needs is full, and not a node."""

from collections.abc import Iterator, Mapping

import msgspec

from bulletin.ids import LeaseId
from gpu_worker.scheduler.accounts.account import Account, UsageTotals
from gpu_worker.scheduler.accounts.branches import lacks_of_quota, quota_sides
from gpu_worker.scheduler.accounts.held_amounts import commits
from gpu_worker.scheduler.accounts.kept_limits import kept_for_own_late
from gpu_worker.scheduler.accounts.parts import NO_PARTS
from gpu_worker.scheduler.accounts.quota_places import Once
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.placement.ahead import Ahead
from gpu_worker.scheduler.placement.lent import kept_by_lenders, lacks_of_lent
from gpu_worker.scheduler.placement.places import Placement, hot_place, nodes_of_pools, ready_place
from gpu_worker.scheduler.placement.reclaim import VictimSelection
from gpu_worker.scheduler.placement.reclaim_places import Full, choose_for_full, reclaim_place
from gpu_worker.scheduler.placement.room import Claims
from gpu_worker.scheduler.state import State


def make_room_in_limits(state: State, request: Request, ahead: Ahead, claims: Claims) -> Placement | None:
    """Choose whom a limit, a budget or a guarantee makes leave first; None where none of them is in the way.

    Hot leases of its own project or user go, least recently used first; then, if that is enough, cells inside the
    project with the limit to which the request has more right, and on its node whoever is in the way there at the same
    time. `claims` are what those ahead are to have.
    """
    accounts, shape = state.accounts, request.entry.shape
    account, qos = accounts.of(request.project), state.qos[request.qos]
    victims: dict[LeaseId, None] = {}
    is_capped, is_going, full = False, False, list[Full]()
    for_late = accounts.kept_in_limits(account, request.entry)
    kept = {
        at.project.id: kept_for_own_late(accounts, at, account, request.entry) if amount is None else amount
        for at, amount in zip(account.path, for_late, strict=True)
    }
    for holder, amount, limit in accounts.holders(request.project, request.user, request.qos, shape.cost):
        if limit is None or not amount:
            continue
        hot = sum(holder.hot.values())
        lacks = holder.used + hot + amount - limit  # what those ahead are to have is used
        late = kept[holder.project.id] if isinstance(holder, Account) else 0
        over = lacks - hot + late  # of what runs
        if lacks <= 0 and over <= 0 and holder.held + amount <= limit:
            continue
        if _is_left_now(holder, amount, limit, max(lacks, over)):
            continue
        is_capped, is_going = True, is_going or (holder.going > 0 and over > 0)
        if over > 0:  # else what is hot is gone before a cell that has its grace
            lacks -= holder.going
            over -= holder.going
        victims.update(dict.fromkeys(_room_in(holder, lacks, victims)))
        if isinstance(holder, Account) and over > 0:
            full.append(Full(frozenset(state.coverage.uses_in(holder)), over))
    for at in account.path if shape.cost else ():
        now, then = (at.spendable(accounts.now_ms, without_leaving=one) for one in (False, True))
        if now is not None and then is not None and shape.charged * request.walltime_ms > now:
            is_capped = True
            lacks = shape.charged * request.walltime_ms - then
            victims.update(dict.fromkeys(_room_in_budget(at, lacks, victims)))
    if shape.cost and qos.must_be_in_quota:
        hot_ones = _in_the_way_of_quota(state, account, shape)
        is_capped |= bool(hot_ones)
        victims.update(dict.fromkeys(hot_ones))
        quota = full_quota(state, account, shape)
        if quota is not None:
            is_capped, is_going = True, is_going or not quota
            full += quota
    unlent = lacks_of_lent(state, account, shape)
    if unlent is not None:
        is_capped = True
        full += [Full(None, unlent, kept_by_lenders(state, account))] if unlent > 0 else []
    if not is_capped:
        return None
    leaving = tuple(state.leases[lease] for lease in victims)
    is_going |= unlent is not None
    found = _with_node(state, request, ahead, claims, full, leaving, is_going=is_going)
    if found.agent is None and not full and not is_going:  # whoever is in its way leaves at once
        there = _with_hot(state, request, ahead, claims, leaving) or ready_place(state, request, ahead, claims)
        found = there or Placement(None, leaving, waits_for_node=not leaving)
    return msgspec.structs.replace(found, has_grace=found.has_grace or bool(full) or is_going)


def _is_left_now(holder: UsageTotals, amount: int, limit: int, lacks: int) -> bool:
    """Whether so much is left of a limit at once, as those ahead who wait for what is going will have its places."""
    is_left_then = lacks <= min(holder.going, holder.replacing)
    return is_left_then and holder.held + holder.awaited - holder.replacing + amount <= limit


def _in_the_way_of_quota(state: State, account: Account, shape: Shape) -> list[LeaseId]:
    """List hot leases that keep what a request of a class that never borrows needs of a guarantee."""
    accounts, priority = state.accounts, state.qos[shape.qos].priority
    below = account.used_below(state.qos, priority, may_borrow=True)
    is_in_whole, once = lacks_of_quota(account, shape.cost, below=below, with_hot=True) <= 0, Once.ENDED
    if state.pools.quota_places(accounts, account, shape, is_in_whole=is_in_whole, once=once, with_hot=True):
        return []
    return [name for name, held in account.payer.hot.items() if held and commits(accounts, state.leases[name])]


def full_quota(state: State, account: Account, shape: Shape) -> list[Full] | None:
    """List what running cells must leave of a guarantee for a class that never borrows; None where it has enough.

    Nothing lacks, or less, where cells of other users of its project, or of projects beside it, are going for it, or of
    a lower class that never borrows either. Those of lower classes of its project that may borrow do from then on, and
    leave nothing by going. In a place, also where the whole guarantee has enough left.
    """
    accounts, priority = state.accounts, state.qos[shape.qos].priority
    below = account.used_below(state.qos, priority, may_borrow=True)
    is_in_whole = lacks_of_quota(account, shape.cost, below=below) <= 0
    if is_in_whole and (not state.pools or state.pools.quota_places(accounts, account, shape, is_in_whole=True)):
        return None
    if not is_in_whole and state.pools.quota_places(accounts, account, shape, is_in_whole=False):
        return None
    side = min(quota_sides(account), key=lambda one: one.used - one.guaranteed)
    going = account.leaves_to(state.qos, priority) + NO_PARTS.beside_side(account, side)
    uses = state.coverage.uses_of(account) if side.is_members else state.coverage.uses_in(side.account)
    counted = (
        name
        for name in uses
        if state.leases[name].project != account.project.id or not _would_borrow(state, state.leases[name], priority)
    )
    lacks = side.used + shape.cost - below - going - side.guaranteed
    full = [Full(frozenset(counted), lacks)] if lacks > 0 else []
    if state.pools and not state.pools.quota_places(accounts, account, shape, is_in_whole=not full, once=Once.GONE):
        return [*_full_places(state, account, shape), *full] or None  # whoever leaves a place leaves the whole, too
    return full


def _full_places(state: State, account: Account, shape: Shape) -> list[Full]:
    """List what must leave before a request of a class that never borrows starts in a node pool, or beside all."""
    found: list[Full] = []
    for place, at, lacks, where in state.pools.lacks_in_places(state.accounts, account, shape):
        uses = (state.leases[name] for name in state.coverage.uses_in(at))
        names = (one.id for one in uses if one.qos in at.firm and one.pool in where)
        found.append(Full(frozenset(names), lacks, place=place))
    return found


def _would_borrow(state: State, lease: Lease, priority: int) -> bool:
    """Whether a lease is of a class of service of lower priority than this, which may borrow."""
    qos = state.qos.get(lease.qos)
    return qos is not None and qos.priority < priority and not qos.must_be_in_quota


def _with_node(
    state: State,
    request: Request,
    ahead: Ahead,
    claims: Claims,
    full: list[Full],
    leaving: tuple[Lease, ...],
    *,
    is_going: bool,
) -> Placement:
    """Choose who gives back for what is full, and a node where the request fits then; `leaving` leave in any case."""
    covered = state.is_covered(request)
    if full:
        plan = VictimSelection(state, state.accounts, request)
        everywhere = [one for one in full if one.place is None]
        if choose_for_full(plan, everywhere, plan.victims(plan.candidates(request.lane))) is None:
            return Placement(None, leaving, is_stuck=True)
    found: Placement | None = None
    if is_going and not full:  # it waits for what goes in any case: what is hot or runs elsewhere would idle meanwhile
        found = ready_place(state, request, ahead, claims)
    if found is None and (full or covered):
        found = reclaim_place(state, request, ahead, claims, full, leaving)
        if found is None and covered:
            passing = ahead.for_covered(nodes_of_pools(state, request))
            found = reclaim_place(state, request, passing, claims, full, leaving)
        if found is None and full:
            return Placement(None, waits_for_node=True)
    if found is None:
        return Placement(None, leaving)
    return _beside(state, found, leaving)


def _with_hot(
    state: State, request: Request, ahead: Ahead, claims: Claims, leaving: tuple[Lease, ...]
) -> Placement | None:
    """Find a node where hot leases are in its way at most: those of them that are not `leaving` leave with those."""
    found = hot_place(state, request, ahead, claims, leaving)
    return None if found is None else _beside(state, found, leaving)


def _beside(state: State, found: Placement, leaving: tuple[Lease, ...]) -> Placement:
    both = dict.fromkeys(lease.id for lease in (*leaving, *found.victims))
    return msgspec.structs.replace(found, victims=tuple(state.leases[one] for one in both))


def _room_in_budget(account: Account, missing: int, chosen: Mapping[LeaseId, None]) -> Iterator[LeaseId]:
    """List hot leases whose next cells stand in the way of a budget, least recently used first."""
    for lease in account.hot:
        if missing <= 0:
            return
        commitment = account.commitments.get(lease)
        if commitment is not None and commitment.charged:
            missing -= commitment.left(0)
            if lease not in chosen:
                yield lease


def _room_in(holder: UsageTotals, missing: int, chosen: Mapping[LeaseId, None]) -> Iterator[LeaseId]:
    """List hot leases that a limit of theirs needs gone, beside those chosen already, least recently used first."""
    missing -= sum(amount for lease, amount in holder.hot.items() if lease in chosen)
    for lease, amount in holder.hot.items():
        if missing <= 0:
            return
        if amount and lease not in chosen:
            missing -= amount
            yield lease
