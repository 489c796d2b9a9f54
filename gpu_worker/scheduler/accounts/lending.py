"""What lenders keep: with a lending limit, others may use so much of an unused guarantee, and the rest stays free.

What a project keeps is at least what the projects inside it keep: it is of the same guarantee.
"""

from typing import NamedTuple, Protocol

from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.branches import Branch


class PoolTotals(Protocol):
    """All accounts together, in thousandths of a GPU."""

    capacity: int  #: what may be used
    in_use: int
    awaited: int  #: of that, of requests that are only taken for granted
    kept_inside: int  #: what all at the top keep
    kept_now_inside: int  #: what they keep now


def note_use(accounts: PoolTotals, account: Account) -> None:
    """Bring up to date what a project keeps whose use has changed, and what is kept inside all that it is in.

    That is once those have what they ask for who are taken for granted, and now.
    """
    for at in account.path:
        above = accounts if at.parent is None else at.parent
        kept = max(_own(at, at.used), at.kept_inside)
        above.kept_inside += kept - at.kept
        now = max(_own(at, at.used - at.awaited), at.kept_now_inside)
        above.kept_now_inside += now - at.kept_now
        at.kept, at.kept_now = kept, now


def _own(at: Account, used: int) -> int:
    limit = at.project.lending_limit_milli
    return 0 if limit is None else max(0, at.guaranteed - used - limit)


def keeps_of_pool(pool: PoolTotals, there: Account, account: Account, cost: int) -> bool:
    """Whether so much more of a node pool for a project's users would not leave free there what lenders keep of it.

    `there` is the project's account of the pool, and `account` that of all GPUs: where a guarantee of either covers it,
    nobody outside holds it back.
    """
    room, kept = pool.capacity - pool.in_use, 0
    above: Account | PoolTotals = pool
    for at, whole in zip(reversed(list(there.path)), reversed(list(account.path)), strict=True):
        if at.covers(cost):
            room, kept = at.guaranteed - at.used, 0
        elif whole.covers(cost):
            kept = 0
        else:
            kept += above.kept_inside - at.kept
        above = at
    if there.children:
        if cost <= -there.members.surplus:
            room, kept = -there.members.surplus, 0
        elif cost > -account.members.surplus:
            kept += there.kept_inside
        else:
            kept = 0
    return kept > 0 and cost + kept > room


class Lent(NamedTuple):
    """What lenders keep from a request, in thousandths of a GPU, and how much too little would be left for them."""

    kept: int
    lacks: int  #: of what may be lent to it, or of the guarantee that covers it
    lacks_in_pool: int  #: of what nobody uses: who is covered may take that back first


def kept_from(accounts: PoolTotals, account: Account, cost: int, below: int = 0) -> int:
    """Compute what others keep, where so much more for a project's users would not leave it free; 0 where it would.

    Cells that use `below` give way to it.
    """
    lent = lent_to(accounts, account, cost)
    return lent.kept if lent.lacks > below else 0


def lent_to(accounts: PoolTotals, account: Account, cost: int) -> Lent:
    """Compute what others keep from a project's users, and whether so much more for them would leave it free.

    A project that its guarantee covers borrows of nobody outside it; among those inside it, what is left of that
    guarantee is what there is. Who borrows leaves what its siblings keep, at each level on which it borrows, and of
    what nobody uses now so much is left. Whoever may borrow so may have it although the guarantee has too little left.
    It is free now, and also once those have what they ask for who are taken for granted.
    """
    both = (_lent(accounts, account, cost, is_now=is_now) for is_now in (True, False))
    return max(both, key=lambda one: (one.kept > 0, one.lacks, one.lacks_in_pool))  # nobody waits for what none keeps


def _lent(accounts: PoolTotals, account: Account, cost: int, *, is_now: bool) -> Lent:
    free = accounts.capacity - accounts.in_use + (accounts.awaited if is_now else 0)
    room, kept, borrowed = free, 0, 0
    above: Account | PoolTotals = accounts
    for at in reversed(list(account.path)):
        beside = above.kept_now_inside - at.kept_now if is_now else above.kept_inside - at.kept
        borrowed, kept = borrowed + beside, kept + beside
        used = at.used - (at.awaited if is_now else 0)
        if used + cost <= at.guaranteed:
            room, kept = at.guaranteed - used, 0
        above = at
    inside = account.kept_now_inside if is_now else account.kept_inside
    borrowed, kept = borrowed + inside, kept + inside
    users = Branch(account, is_members=True)
    used = users.used - (users.awaited if is_now else 0)
    if account.children and used + cost <= users.guaranteed:
        room, kept = users.guaranteed - used, 0
    covered = Lent(kept, cost + kept - room, cost + kept - free if kept else 0)
    if covered.lacks <= 0:
        return covered
    return min(covered, Lent(borrowed, cost + borrowed - free, cost + borrowed - free), key=lambda one: one.lacks)
