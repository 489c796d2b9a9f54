"""What lenders keep: with a lending limit, others may use so much of an unused guarantee, and the rest stays free.

What a project keeps is at least what the projects inside it keep: it is of the same guarantee.
"""

from typing import NamedTuple, Protocol

from gpu_worker.scheduler.accounts.account import Account


class PoolTotals(Protocol):
    """All accounts together, in thousandths of a GPU."""

    capacity: int  #: what may be used
    in_use: int
    kept_inside: int  #: what all at the top keep


def note_use(accounts: PoolTotals, account: Account) -> None:
    """Bring up to date what a project keeps whose use has changed, and what is kept inside all that it is in."""
    for at in account.path:
        limit, before = at.project.lending_limit_milli, at.kept
        own = 0 if limit is None else max(0, at.guaranteed - at.used - limit)
        at.kept = max(own, at.kept_inside)
        above = accounts if at.parent is None else at.parent
        above.kept_inside += at.kept - before


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
    guarantee is what there is. Its own users are among those. Who borrows leaves what its siblings keep, at each level
    on which it borrows. Whatever covers it, of what nobody uses now so much is left.
    """
    room, kept = accounts.capacity - accounts.in_use, 0
    free = room
    above: Account | PoolTotals = accounts
    for at in reversed(list(account.path)):
        if at.covers(cost):
            room, kept = at.guaranteed - at.used, 0
        else:
            kept += above.kept_inside - at.kept
        above = at
    if account.children:
        left = -account.members.surplus
        if cost <= left:
            room, kept = left, 0
        else:
            kept += account.kept_inside
    return Lent(kept, cost + kept - room, cost + kept - free if kept else 0)
