"""One project, or one user in it: what is used and held there, what of the budget is left, and its requests in line.

An account's amounts are of all that is inside it, in thousandths of a GPU. What is *used* is by leases whose cell runs
or is about to: it counts for guarantees and fair shares. What is *held* is by every lease, also a hot one, which may
begin a cell at any time: it counts for limits. A CPU slot costs nothing, unless the pool has shown no GPU.
"""

from collections.abc import Iterator

import msgspec

from bulletin.ids import LeaseId, ProjectId, UserName
from gpu_worker.scheduler.credits import Trader
from gpu_worker.scheduler.decayed_use import DecayedUse
from gpu_worker.scheduler.periods import period_at
from gpu_worker.scheduler.projects import GPU_MILLI, Project
from gpu_worker.scheduler.shapes import Key, QueueEntry, Shape

#: The smaller one is next.
Rank = tuple[int, ...]


class UsageTotals(msgspec.Struct, kw_only=True):
    """What is used and held, and what of it is on its way out, of a project, of a user in it, or of a user in a QoS.

    Thousandths of a GPU; of a user in a QoS they are numbers of leases.
    """

    used: int = 0
    held: int = 0
    leaving: int = 0  #: of what is held: on its way out
    going: int = 0  #: of what is used: reclaimed, and on its way out
    hot: dict[LeaseId, int] = msgspec.field(default_factory=dict)  #: what each one holds, least recently used first


class User(UsageTotals, kw_only=True):
    """One user in one project: what they use and hold of it, and their requests in line there.

    A person in two projects is two users.
    """

    name: UserName
    history: DecayedUse = msgspec.field(default_factory=DecayedUse)
    lines: dict[Shape, list[tuple[Key, QueueEntry]]] = msgspec.field(default_factory=dict)
    ranks: dict[Shape, Rank] = msgspec.field(default_factory=dict)  #: of the first of each line, among the users


class Account(UsageTotals, kw_only=True):
    """A project, while the scheduler runs: what it uses and holds, its requests in line, and what it may have yet.

    Made and indexed by `Accounts`; amounts are thousandths of a GPU, and times are those of `step`.
    """

    project: Project
    parent: "Account | None"
    guaranteed: int  #: now
    most: int  #: the most that it is guaranteed from now on, in its class hours
    usual: int  #: outside all class hours
    history: DecayedUse = msgspec.field(default_factory=DecayedUse)
    children: dict[ProjectId, "Account"] = msgspec.field(default_factory=dict)
    users: dict[UserName, User] = msgspec.field(default_factory=dict)
    heads: dict[Shape, list[tuple[Rank, UserName]]] = msgspec.field(default_factory=dict)  #: of its users, in order
    firsts: list[tuple[Rank, UserName, Shape]] = msgspec.field(default_factory=list)  #: of its heads, in order
    waiting: dict[Shape, int] = msgspec.field(default_factory=dict)  #: requests in line, here and inside
    #: What was used of the budget in the period, thousandths of a GPU times milliseconds, up to a time.
    spent: int = 0
    counted_ms: int = 0
    period_ends_ms: int = 0
    #: It was reclaimed from: until when it may not borrow again, and how often in a row.
    borrows_from_ms: int = 0
    reclaims: int = 0
    #: It among its siblings, and its own users among the projects inside it.
    trader: Trader
    members: Trader
    kept: int = 0  #: of its guarantee, what is unused and not lent
    kept_inside: int = 0  #: by the projects inside it, together

    @property
    def limit(self) -> int | None:
        """What it may hold; None is no limit."""
        return self.project.limit_milli if self.project.can_borrow else self.guaranteed

    @property
    def path(self) -> "Iterator[Account]":
        """The account, and those that it is in, from the inside out."""
        at: Account | None = self
        while at is not None:
            yield at
            at = at.parent

    @property
    def must_cover(self) -> bool:
        """Whether its guarantee counts for a QoS that never borrows: not where it leaves that to what it is in.

        Class hours change nothing in that: what may wait for them would else be what may not run in them.
        """
        return self.usual > 0 or self.parent is None

    @property
    def highest_limit(self) -> int | None:
        """What it may hold at any time from now on; None is no limit."""
        return self.project.limit_milli if self.project.can_borrow else self.most

    def count(self, now_ms: int) -> None:
        """Bring what was spent up to this time. Needed before `used` changes."""
        if self.project.budget is not None:
            if now_ms >= self.period_ends_ms:
                began_ms, self.period_ends_ms = period_at(self.project.budget.period, now_ms)
                self.spent, self.counted_ms = 0, began_ms
            self.spent += self.used * (now_ms - self.counted_ms)
            self.counted_ms = now_ms

    def spend(self, amount: int, now_ms: int) -> None:
        """So much was spent in this period that `used` does not tell of; what is below 0 was spent for nothing."""
        self.count(now_ms)
        if self.project.budget is not None:
            self.spent = max(0, self.spent + amount)

    def left(self, now_ms: int) -> int | None:
        """Compute what may be spent yet in this period, in the unit of `spent`; None is no limit."""
        if self.project.budget is None:
            return None
        self.count(now_ms)
        return max(0, self.project.budget.gpu_ms * GPU_MILLI - self.spent)

    def next_change_ms(self, now_ms: int) -> int | None:
        """When somebody may run again, or what is hot must go, because of the budget; None if neither comes."""
        left = self.left(now_ms)
        if left is None or self.project.budget is None:
            return None
        if not left:
            return self.period_ends_ms if self.waiting else None
        return now_ms - (-left // self.used) if self.used and self.hot else None

    def lost(self, now_ms: int, first_ms: int, longest_ms: int) -> None:
        """Something was reclaimed from it: it waits before it borrows again, each time twice as long."""
        is_in_a_row = now_ms < self.borrows_from_ms + longest_ms
        self.reclaims = self.reclaims + 1 if is_in_a_row else 1
        self.borrows_from_ms = now_ms + min(longest_ms, first_ms << min(self.reclaims - 1, 30))

    def covers(self, cost: int) -> bool:
        """Whether so much more would be within its guarantee."""
        return self.used + cost <= self.guaranteed
