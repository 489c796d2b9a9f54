"""What lenders keep: with a lending limit, others may use so much of an unused guarantee, and the rest stays free.

What a project keeps is at least what the projects inside it keep: it is of the same guarantee.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bulletin.ids import LeaseId, ProjectId
    from gpu_worker.scheduler.account import Account
    from gpu_worker.scheduler.accounts import Accounts


def note_use(accounts: "Accounts", account: "Account") -> None:
    """Bring up to date what a project keeps whose use has changed, and what is kept inside all that it is in."""
    for at in account.path:
        limit, before = at.project.lending_limit_milli, at.kept
        own = 0 if limit is None else max(0, at.guaranteed - at.used - limit)
        at.kept = max(own, at.kept_inside)
        above = accounts if at.parent is None else at.parent
        above.kept_inside += at.kept - before


def kept_from(accounts: "Accounts", account: "Account", cost: int) -> int:
    """Compute what others keep, where so much more for a project's users would not leave it free; 0 where it would.

    A project that its guarantee covers borrows of nobody outside it; among those inside it, what is left of that
    guarantee is what there is. Who borrows leaves what its siblings keep, at each level on which it borrows.
    """
    room, kept = accounts.capacity - accounts.in_use, 0
    above: Account | Accounts = accounts
    for at in reversed(list(account.path)):
        if at.covers(cost):
            room, kept = at.guaranteed - at.used, 0
        else:
            kept += above.kept_inside - at.kept
        above = at
    if account.kept_inside and account.members.surplus + cost > 0:
        kept += account.kept_inside
    return kept if room < cost + kept else 0


def hot_in_the_way(
    accounts: "Accounts", account: "Account", cost: int, hot: "Mapping[LeaseId, tuple[Account, int]]"
) -> "list[LeaseId] | None":
    """Choose hot leases that must leave before a project's users may have so much more; None where none is in the way.

    A hot lease may begin a cell at any time. Were all to do so, what others keep would be borrowed beside that. `hot`
    has the project and the cost of all of them, those first that are to leave first; none is chosen where those that
    leave already suffice.
    """
    if _lacking(accounts, account, cost, lambda at: at.held) <= 0:
        return None
    gone: Counter[ProjectId] = Counter()

    def staying(at: "Account") -> int:
        return at.held - at.leaving - gone[at.project.id]

    chosen = []
    lacks = _lacking(accounts, account, cost, staying)
    for lease, (holder, held) in hot.items():
        if lacks <= 0:
            break
        path = [at.project.id for at in holder.path]
        gone.update(dict.fromkeys(path, held))
        rest = _lacking(accounts, account, cost, staying)
        if rest < lacks:
            chosen.append(lease)
            lacks = rest
        else:
            gone.subtract(dict.fromkeys(path, held))
    return chosen


def _lacking(accounts: "Accounts", account: "Account", cost: int, use: "Callable[[Account], int]") -> int:
    """Compute as `kept_from` does, were so much used of each project, what is missing; 0 or less where nothing is."""

    def keeps(children: "Iterable[Account]") -> int:
        total = 0
        for at in children:
            limit = at.project.lending_limit_milli
            own = 0 if limit is None else max(0, at.guaranteed - use(at) - limit)
            total += max(own, keeps(at.children.values()))
        return total

    room, kept, siblings = accounts.capacity - sum(map(use, accounts.top.values())), 0, accounts.top
    for at in reversed(list(account.path)):
        if at.covers(cost):
            room, kept = at.guaranteed - use(at), 0
        else:
            kept += keeps(one for one in siblings.values() if one is not at)
        siblings = at.children
    inside = account.children.values()
    by_users = use(account) - sum(map(use, inside))
    if inside and by_users + cost > account.guaranteed - sum(one.guaranteed for one in inside):
        kept += keeps(inside)
    return cost + kept - room if kept else 0
