"""Who leaves where a limit, a budget or a guarantee that a request needs is full, and not a node."""

from collections.abc import Iterator, Mapping

from bulletin.ids import LeaseId
from gpu_worker.scheduler.accounts.account import Account, UsageTotals
from gpu_worker.scheduler.accounts.branches import lacks_of_quota
from gpu_worker.scheduler.accounts.held_amounts import commits
from gpu_worker.scheduler.accounts.lending import lent_to
from gpu_worker.scheduler.actions import Right
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.placement.places import Placement
from gpu_worker.scheduler.placement.reclaim import Victim, VictimSelection, reclaimable
from gpu_worker.scheduler.placement.room import Claims, hot_leases, missing
from gpu_worker.scheduler.state import State


def make_room_in_limits(state: State, request: Request, claims: Claims) -> Placement | None:
    """Choose whom a limit, a budget or a guarantee makes leave first; None where none of them is in the way.

    Hot leases of its own project or user go, least recently used first; then, if that is enough, cells inside the
    project with the limit to which the request has more right. `claims` are what those ahead are to have.
    """
    accounts, shape = state.accounts, request.entry.shape
    account, qos = accounts.of(request.project), state.qos[request.qos]
    victims: dict[LeaseId, None] = {}
    is_capped, missing = False, dict[str, tuple[Account, int]]()
    for holder, amount, limit in accounts.holders(request.project, request.user, request.qos, shape.cost):
        if limit is not None and amount and holder.held + amount > limit:
            is_capped = True
            lacks = holder.held - holder.leaving + amount - limit
            if sum(holder.hot.values()) >= lacks + holder.going:
                lacks += holder.going  # what is hot is gone before a cell that has its grace
            victims.update(dict.fromkeys(_room_in(holder, lacks, victims)))
            if isinstance(holder, Account):
                missing[holder.project.id] = holder, lacks - sum(holder.hot.values())
    for at in account.path if shape.cost else ():
        spendable = at.spendable(accounts.now_ms)
        lacks = 0 if spendable is None else shape.charged * request.walltime_ms - spendable
        if lacks > 0:
            is_capped = True
            victims.update(dict.fromkeys(_room_in_budget(at, lacks, victims)))
    below = account.used_below(state.qos, qos.priority)
    if shape.cost and qos.must_be_in_quota and lacks_of_quota(account, shape.cost, below=below, with_hot=True) > 0:
        is_capped = True
        victims.update(dict.fromkeys(hot for hot in account.payer.hot if commits(accounts, state.leases[hot])))
    lent = lent_to(accounts, account, shape.cost) if shape.cost and accounts.has_lenders else None
    unlent = 0  #: how much must be given back before what lenders keep is free beside it
    is_for_lenders = lent is not None and lent.kept > 0 and max(lent.lacks, lent.lacks_in_pool) > 0
    if lent is not None and is_for_lenders:
        is_capped = True
        unlent = max(lent.lacks, lent.lacks_in_pool) - sum(at.going for at in accounts.top.values())
    if not is_capped:
        return None
    reclaimed: dict[LeaseId, tuple[Lease, Right]] = {}
    for where, lacks in [*missing.values(), (None, unlent)]:
        chosen = _choose_running(state, request, where, lacks)
        if chosen is None:
            return Placement(None, tuple(state.leases[lease] for lease in victims), is_stuck=True)
        reclaimed |= {one.lease.id: (one.lease, one.right) for one in chosen}
    if reclaimed and not _could_start(state, request, claims, [lease for lease, _ in reclaimed.values()]):
        return Placement(None, waits_for_node=True)
    hot = tuple(state.leases[lease] for lease in victims)
    return Placement(None, hot, tuple(reclaimed.values()), is_for_lenders=is_for_lenders)


def _choose_running(state: State, request: Request, at: Account | None, missing: int) -> list[Victim] | None:
    """Choose running cells in a project, or in all, that make so much room there; None where all of them would not."""
    if missing <= 0:
        return []
    plan, now_ms = VictimSelection(state, state.accounts, request), state.accounts.now_ms
    running = reclaimable(state, request.lane)
    names = running if at is None else state.coverage.uses_in(at)
    inside = [state.leases[name] for name in names if name in running]
    able = [one for lease in inside if (one := plan.victim(lease, now_ms)) is not None]
    chosen: list[Victim] = []
    for victim in sorted(able):
        if missing > 0 and plan.right_to(victim.lease) is not None:
            plan.take(victim.lease)
            chosen.append(victim)
            missing -= victim.lease.cost
    return chosen if missing <= 0 else None


def _could_start(state: State, request: Request, claims: Claims, gone: list[Lease]) -> bool:
    """Whether a node has room for the request once what leaves, what is hot and these leases are gone."""
    shape, account = request.entry.shape, state.accounts.of(request.project)
    for node in state.nodes.values():
        if node.is_drained or not node.holds(shape):
            continue
        lacks = missing(state, node, shape, claims)
        for lease in (*hot_leases(state, node, shape, account), *(one for one in gone if one.agent == node.agent)):
            lacks = lacks.less(node.part_of(lease, shape))
        if lacks.is_nothing:
            return True
    return False


def _room_in_budget(account: Account, missing: int, chosen: Mapping[LeaseId, None]) -> Iterator[LeaseId]:
    """List hot leases whose next cells stand in the way of a budget, least recently used first."""
    for lease in account.hot:
        if missing <= 0:
            return
        commitment = account.commitments.get(lease)
        if commitment is not None:
            missing -= commitment.left(0)
            if lease not in chosen:
                yield lease


def _room_in(holder: UsageTotals, missing: int, chosen: Mapping[LeaseId, None]) -> Iterator[LeaseId]:
    """List hot leases that a limit of theirs needs gone, beside those chosen already, least recently used first."""
    missing -= sum(amount for lease, amount in holder.hot.items() if lease in chosen)
    for lease, amount in holder.hot.items():
        if missing <= 0:
            return
        if lease not in chosen:
            missing -= amount
            yield lease
