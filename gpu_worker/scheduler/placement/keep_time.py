"""For how long hot sessions keep their GPU from those who borrow: a project's `keep_hot`, within its guarantee.

It is for people who type: between two cells of theirs a borrower would take the GPU, and their next cell would wait for
its grace. Kept are the sessions of a project that were used last, as many as fit what is left of its guarantee beside
what its cells use. They are kept from whoever borrows where the two paths in the tree part: not from who is covered
there, not from their own project, nor where a limit, a budget or a drain needs them gone. A session of a class that
never borrows has its part of the guarantee in any case, and its project's other cells wait for that: it is not kept.
"""

from bulletin.ids import LeaseId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.branches import Branch, parting
from gpu_worker.scheduler.accounts.held_amounts import commits
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.state import State


def kept_until_ms(state: State, lease: Lease) -> int | None:
    """Find until when a hot lease is kept from those who borrow; None where it is not."""
    return _kept(state, state.accounts.of(lease.project)).get(lease.id) if state.accounts.keeps_hot else None


def kept_from_until_ms(state: State, lease: Lease, account: Account, cost: int) -> int | None:
    """Find until when a hot lease is kept from a request of that project and cost; None where it is not."""
    until_ms = kept_until_ms(state, lease)
    if until_ms is None or not cost:
        return None
    mine, others = parting(account, state.accounts.of(lease.project))
    is_covered = any(branch.covers(cost) for branch in mine) or state.pools.covers(lease.pool, account, cost)
    return None if not mine or not others or is_covered else until_ms


def is_kept_from(state: State, lease: Lease, account: Account, cost: int) -> bool:
    """Whether a hot lease is kept from a request of that project and cost; if so, the state notes until when."""
    until_ms = kept_from_until_ms(state, lease, account, cost)
    if until_ms is not None:
        state.wakeups.note(until_ms)
    return until_ms is not None


def kept_on(state: State, node: Node, account: Account, cost: int) -> dict[LeaseId, int]:
    """Find the hot leases of a node that are kept from a request of that project and cost, each with its end."""
    if not state.accounts.keeps_hot:
        return {}
    hot = [state.leases[name] for counts in node.lanes.values() for name in counts.hot_leases]
    kept = [lease for lease in hot if is_kept_from(state, lease, account, cost)]
    return {lease.id: kept_until_ms(state, lease) or 0 for lease in kept}


def find_keep_ms(account: Account) -> int:
    """Find for how long hot sessions of a project are kept: what it says, or the one that it is in."""
    rules = (at.project.keep_hot_ms for at in account.path)
    return next((keep_ms for keep_ms in rules if keep_ms is not None), 0)


def _kept(state: State, account: Account) -> dict[LeaseId, int]:
    """Find which hot leases of a project's users are kept, each with its end; once for as long as nothing changes."""
    side = Branch(account, is_members=bool(account.children))
    room = side.guaranteed - side.used - side.committed
    key = (state.accounts.now_ms, room, len(account.hot))
    known = state.estimate_cache.kept_hot.get(account.project.id)
    if known is None or known[0] != key:
        known = state.estimate_cache.kept_hot[account.project.id] = key, _find_kept(state, account, room)
    return known[1]


def _find_kept(state: State, account: Account, room: int) -> dict[LeaseId, int]:
    kept: dict[LeaseId, int] = {}
    keep_ms, now_ms = find_keep_ms(account), state.accounts.now_ms
    for name in reversed(account.hot) if keep_ms else ():
        lease = state.leases[name]
        if lease.project != account.project.id or lease.since_ms + keep_ms <= now_ms or not lease.cost:
            continue
        if not commits(state.accounts, lease) and lease.cost <= room:
            kept[name] = lease.since_ms + keep_ms
            room -= lease.cost
    return kept
