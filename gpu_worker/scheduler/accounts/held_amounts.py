"""What leases hold of projects and users, and may yet spend of budgets, by the phase that they are in."""

from collections.abc import Mapping
from typing import Literal

from bulletin.ids import LeaseId
from gpu_worker.scheduler.accounts.account import Account, Commitment
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.branches import used_in_quota
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.life import Phase


def count_held(accounts: Accounts, leases: Mapping[LeaseId, Lease], lease: Lease, sign: Literal[1, -1]) -> None:
    """Add or take a lease in its present phase to or from what its project, its user and their class hold."""
    accounts.of(lease.project).note_change()
    is_committed = commits(accounts, lease)
    for holder, amount, _ in accounts.holders(lease.project, lease.user, lease.qos, lease.cost):
        holder.count_lease(lease, amount, sign, leases, is_committed=is_committed)
    if accounts.budgeted:
        _commit(accounts, lease, sign)


def commits(accounts: Accounts, lease: Lease) -> bool:
    """Tell whether a hot lease keeps its part of a guarantee: its class of service never borrows."""
    return lease.qos in accounts.qos and accounts.qos[lease.qos].must_be_in_quota


def _commit(accounts: Accounts, lease: Lease, sign: Literal[1, -1]) -> None:
    """Note what a lease may yet spend of budgets: one that is evicted may begin a cell before it hears of that."""
    end_ms = lease.since_ms + lease.cell_walltime_ms if lease.phase in {Phase.BUSY, Phase.RECLAIMING} else None
    for at in accounts.of(lease.project).path:
        if at.project.budget is not None and sign > 0 and lease.phase is not Phase.ENDING:
            at.commitments[lease.id] = Commitment(lease.charged, lease.walltime_ms, end_ms)
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
    is_own = account is payer and bool(account.children)
    inside = sum(child.promised for child in account.children.values())
    own = _kept_in_quota(accounts, account) - sum(_kept_in_quota(accounts, one) for one in account.children.values())
    if is_own and own <= account.promised - inside:
        return False
    return _kept_in_quota(accounts, payer) > payer.promised


def _kept_in_quota(accounts: Accounts, account: Account) -> int:
    """Sum up what a project uses in classes that never borrow, and what hot leases of such classes hold."""
    return account.committed + used_in_quota(account, accounts.qos)
