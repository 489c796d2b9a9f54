"""The sides of a tree of projects: where the paths of two projects part, and what each side is guaranteed and uses."""

import itertools
from collections.abc import Iterator

import msgspec

from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.leases.shapes import QueueEntry
from gpu_worker.scheduler.policy.credits import Trader


class Branch(msgspec.Struct, frozen=True):
    """One side of where two paths part: a project, or those users of one that are in no project inside it."""

    account: Account
    is_members: bool = False

    @property
    def name(self) -> tuple[str, bool]:
        """What no other side is called."""
        return self.account.project.id, self.is_members

    @property
    def weight(self) -> int:
        """By which it shares the surplus with those beside it."""
        return 1 if self.is_members else self.account.project.weight

    @property
    def priority(self) -> int:
        """Who has more of it shares in the surplus first."""
        return 0 if self.is_members else self.account.project.priority

    @property
    def trader(self) -> Trader:
        """Its credits: the project's own, or those of the users that are in no project inside it."""
        return self.account.members if self.is_members else self.account.trader

    @property
    def guaranteed(self) -> int:
        """Of its guarantee what no project inside it has."""
        inside = sum(child.guaranteed for child in self.account.children.values()) if self.is_members else 0
        return self.account.guaranteed - inside

    @property
    def committed(self) -> int:
        """What hot leases hold of its guarantee that never borrow."""
        inside = self.account.children.values() if self.is_members else ()
        return self.account.committed - sum(child.committed for child in inside)

    def covers(self, cost: int) -> bool:
        """Whether so much more would be within its guarantee."""
        return self.used + cost <= self.guaranteed

    def will_cover(self, cost: int, entry: QueueEntry | None = None) -> bool:
        """Whether so much more would be within its guarantee once others have the places of cells that are going.

        That is beside what is kept of it for others, where it is a request that asks.
        """
        if not self.is_members:
            return self.account.will_cover(cost, entry)
        left = self.guaranteed - self.used + self.account.replaced_by_users - cost
        return left >= 0 and left >= self.account.kept_of_guarantee(entry, by_users=True)

    @property
    def awaited(self) -> int:
        """Of what it uses, what requests are to have that are only taken for granted in this walk."""
        inside = self.account.children.values() if self.is_members else ()
        return self.account.awaited - sum(child.awaited for child in inside)

    @property
    def used(self) -> int:
        """What it uses, also what it was asked to give back."""
        inside = sum(child.used for child in self.account.children.values()) if self.is_members else 0
        return self.account.used - inside

    @property
    def has(self) -> int:
        """What it uses and was not asked to give back, without requests that are only taken for granted in this walk.

        It adds up what is hot: its time grows with the number of hot leases.
        """
        has = self.account.held - self.account.leaving - sum(self.account.hot.values())
        inside = self.account.children.values() if self.is_members else ()
        return has - sum(child.held - child.leaving - sum(child.hot.values()) for child in inside)


def is_covered(account: Account, cost: int, entry: QueueEntry | None = None) -> bool:
    """Whether the users of a project, it, or one that it is in, will be within its guarantee with so much more.

    With a request it is beside what is kept for others. What is kept inside a project is kept there from what that one
    is in covers, too: it would be in the way of the nearer guarantee.
    """
    kept = 0
    if account.children:
        kept = account.kept_of_guarantee(entry, by_users=True)
        if Branch(account, is_members=True).will_cover(cost + kept):
            return True
    for at in account.path:
        kept = max(kept, at.kept_of_guarantee(entry))
        if at.will_cover(cost + kept):
            return True
    return False


def covered_room(account: Account) -> int:
    """Compute the largest cost with which `is_covered` would still hold, in thousandths of a GPU; 0 where none does."""
    sides = [Branch(at) for at in account.path]
    if account.children:
        sides.append(Branch(account, is_members=True))
    return max(0, *(side.guaranteed - side.used for side in sides))


def all_inside(account: Account) -> Iterator[Account]:
    """List a project and all that are in it."""
    yield account
    for child in account.children.values():
        yield from all_inside(child)


def lacks_of_quota(account: Account, cost: int, *, below: int, with_hot: bool = False) -> int:
    """Compute how much too little is guaranteed for a cell that never borrows.

    Cells of lower classes of its project that use `below` and may borrow do so from then on. `with_hot` counts what
    hot leases keep for such cells. What is guaranteed nearer than by its payer is so in class hours alone, and counts
    in them, too.
    """
    sides = quota_sides(account)
    return min(side.used + (side.committed if with_hot else 0) + cost - below - side.guaranteed for side in sides)


def quota_sides(account: Account) -> list[Branch]:
    """List the sides of which any may have enough of a guarantee left for a class that never borrows."""
    nearer = itertools.takewhile(lambda at: at is not account.payer, account.path)
    sides = [Branch(account.payer), *map(Branch, nearer)]
    if account.children and account.payer is account:
        sides.append(Branch(account, is_members=True))
    return sides


def has_room(account: Account) -> bool:
    """Whether anything is left of its guarantee, or of one that it is in, once others have what goes for them."""
    at: Account | None = account
    while at is not None:
        if at.used - at.replaced < at.guaranteed:
            return True
        at = at.parent
    return False


def parting(one: Account, other: Account) -> tuple[list[Branch], list[Branch]]:
    """Below the last account that both are in: the branches of each, from the outside in; none of the same account."""
    mine, others = _downwards(one), _downwards(other)
    while mine and others and mine[0].account is others[0].account and mine[0].is_members == others[0].is_members:
        del mine[0], others[0]
    return mine, others


def _downwards(account: Account) -> list[Branch]:
    path = [Branch(at) for at in reversed(list(account.path))]
    return [*path, Branch(account, is_members=True)] if account.children else path
