"""What leases hold of projects and users, and may yet spend of budgets, by the phase that they are in."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from bulletin.ids import LeaseId
from gpu_worker.scheduler.accounts.account import Account, Commitment
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.actions import Right
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.life import Phase


def count_held(accounts: Accounts, leases: Mapping[LeaseId, Lease], lease: Lease, sign: Literal[1, -1]) -> None:
    """Add or take a lease in its present phase to or from what its project, its user and their class hold."""
    accounts.of(lease.project).note_change()
    is_committed = commits(accounts, lease)
    for holder, amount, _ in accounts.holders(lease.project, lease.user, lease.qos, lease.cost):
        holder.count_lease(lease, amount, sign, leases, is_committed=is_committed)
    count_replaced(accounts, lease, sign)
    if accounts.budgeted:
        _commit(accounts, lease, sign)


def count_replaced(accounts: Accounts, lease: Lease, sign: Literal[1, -1]) -> None:
    """Note, if a lease goes for somebody, in all that both are in that they use no more then."""
    if lease.phase is not Phase.RECLAIMING:
        return
    own = accounts.of(lease.project)
    own.going_by_qos[lease.qos] = own.going_by_qos.get(lease.qos, 0) + sign * lease.cost
    if lease.reclaimed_for is None:
        return
    to = accounts.of(lease.reclaimed_for)
    inside = {at.project.id for at in to.path}
    own.replaced_by_users += sign * lease.cost if own is to else 0
    if own is to and lease.reclaimed_by is Right.SHARE:
        own.given_up[lease.qos] = own.given_up.get(lease.qos, 0) + sign * lease.cost
    for at in own.path:
        if at.project.id in inside:
            at.replaced += sign * lease.cost
    if own is not to and lease.reclaimed_by is Right.SHARE:
        for name in (*(at.project.id for at in own.path if at.project.id in inside), None):
            to.given_by[name] = to.given_by.get(name, 0) + sign * lease.cost
        to.note_change()


def commits(accounts: Accounts, lease: Lease) -> bool:
    """Tell whether a hot lease keeps its part of a guarantee: its class of service never borrows."""
    return lease.qos in accounts.qos and accounts.qos[lease.qos].must_be_in_quota


def _commit(accounts: Accounts, lease: Lease, sign: Literal[1, -1]) -> None:
    """Note what a lease may yet spend of budgets: one that is evicted may begin a cell before it hears of that."""
    end_ms = lease.since_ms + lease.cell_walltime_ms if lease.phase in {Phase.BUSY, Phase.RECLAIMING} else None
    for at in accounts.of(lease.project).path:
        if at.project.budget is not None and sign > 0 and lease.phase is not Phase.ENDING:
            is_leaving = lease.phase is Phase.EVICTING
            at.commitments[lease.id] = Commitment(lease.charged, lease.walltime_ms, end_ms, is_leaving)
        else:
            at.commitments.pop(lease.id, None)


def holds_too_much(accounts: Accounts, lease: Lease) -> bool:
    """Tell whether a hot lease is more than may be held, or kept of a guarantee: that has shrunk since it was granted.

    Its next cell would exceed a limit, or borrow although its class never does.
    """
    for holder, amount, limit in accounts.holders(lease.project, lease.user, lease.qos, lease.cost):
        if limit is not None and amount and holder.held - holder.leaving > limit:
            return True
    if not commits(accounts, lease) or not lease.cost:
        return False
    account = accounts.of(lease.project)
    payer = account.payer
    if accounts.homes is not None and accounts.homes.lack_elsewhere(accounts, lease):
        return True
    if account is payer and account.children and not _of_own_users(accounts, account).lacks:
        return False
    return _of_all_inside(accounts, payer).lacks > 0


class _Kept(NamedTuple):
    """What is promised, if all hot leases of classes that never borrow began a cell now. Thousandths of a GPU."""

    covered: int  #: what is used here, as far as it is promised here
    lacks: int  #: what such classes would use beyond that


def _of_own_users(accounts: Accounts, account: Account) -> _Kept:
    """Compute what is kept for a project's own users, of what no project inside it is promised."""
    children = account.children.values()
    promised = account.promised - sum(one.promised for one in children)
    hot = account.committed - sum(one.committed for one in children)
    known = accounts.qos
    firm = hot + sum(used for name, used in account.by_qos.items() if name in known and known[name].must_be_in_quota)
    used = hot + account.used - sum(one.used for one in children)
    return _Kept(min(used, promised), max(0, firm - promised))


def _of_all_inside(accounts: Accounts, account: Account) -> _Kept:
    """Compute what is kept in a project: what those inside it are promised is theirs first."""
    inside = [_of_own_users(accounts, account), *(_of_all_inside(accounts, one) for one in account.children.values())]
    covered = sum(one.covered for one in inside)
    lacks = sum(one.lacks for one in inside) - (account.promised - covered)
    return _Kept(min(account.used + account.committed, account.promised), max(0, lacks))
