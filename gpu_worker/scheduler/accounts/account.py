"""One project, or one user in it: what is used and held there, what of the budget is left, and its requests in line.

An account's amounts are of all that is inside it, in thousandths of a GPU. What is *used* is by leases whose cell runs
or is about to: it counts for guarantees and fair shares. What is *held* is by every lease, also a hot one, which may
begin a cell at any time: it counts for limits. A CPU slot costs nothing, unless the pool has shown no GPU.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from bulletin.ids import LeaseId, ProjectId, RequestId, UserName
from gpu_worker.scheduler.accounts.late_lines import FirstByHand, HeldInside, LateLines
from gpu_worker.scheduler.leases.leases import LEAVING, Lease, insert_hot
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.shapes import QueueEntry, QueueKey, Shape
from gpu_worker.scheduler.policy.credits import Trader
from gpu_worker.scheduler.policy.decayed_use import DecayedUse
from gpu_worker.scheduler.policy.periods import period_at
from gpu_worker.scheduler.policy.projects import GPU_MILLI, Budget, Preemption, Project, QoS

#: The smaller one is next.
Rank = tuple[int, ...]
#: Before all times: what never was.
NEVER_MS = -(1 << 62)


class UsageTotals(msgspec.Struct, kw_only=True):
    """What is used and held, and what of it is on its way out, of a project, of a user in it, or of a user in a QoS.

    Thousandths of a GPU; of a user in a QoS they are numbers of leases.
    """

    used: int = 0
    awaited: int = 0  #: of what is used: of requests that are only taken for granted in this walk
    replacing: int = 0  #: of that: of requests that a limit, a guarantee or lenders have wait for what is going
    held: int = 0
    leaving: int = 0  #: of what is held: on its way out
    going: int = 0  #: of what is used: reclaimed, and on its way out
    hot: dict[LeaseId, int] = msgspec.field(default_factory=dict)  #: what each one holds, least recently used first
    committed: int = 0  #: held by hot leases that never borrow: of the guarantee, as if it were used
    by_qos: dict[str, int] = msgspec.field(default_factory=dict)  #: what is used, by class of service

    def count_lease(
        self, lease: Lease, each: int, sign: Literal[1, -1], leases: Mapping[LeaseId, Lease], *, is_committed: bool
    ) -> None:
        """Add or take what a lease holds in its present phase; what is used is counted by whoever ranks by it."""
        amount = sign * each
        self.held += amount
        if lease.phase in LEAVING:
            self.leaving += amount
        if lease.phase is Phase.RECLAIMING:
            self.going += amount
        if lease.phase is Phase.HOT:
            if sign > 0:
                insert_hot(leases, self.hot, lease, amount)
            else:
                del self.hot[lease.id]
            if is_committed:
                self.committed += amount


class Commitment(NamedTuple):
    """What one lease may yet spend of a budget."""

    charged: int  #: thousandths of a GPU, at its price
    walltime_ms: int
    end_ms: int | None  #: of a cell that runs; None where none has begun
    is_leaving: bool  #: its agent was asked to free the slots: a cell that was faster may begin yet

    def left(self, now_ms: int) -> int:
        """Compute what the lease may spend from now on: thousandths of a GPU times milliseconds."""
        return self.charged * (self.walltime_ms if self.end_ms is None else max(0, self.end_ms - now_ms))


class User(UsageTotals, kw_only=True):
    """One user in one project: what they use and hold of it, and their requests in line there.

    A person in two projects is two users.
    """

    name: UserName
    history: DecayedUse = msgspec.field(default_factory=DecayedUse)
    lines: dict[Shape, list[tuple[QueueKey, QueueEntry]]] = msgspec.field(default_factory=dict)
    ranks: dict[Shape, Rank] = msgspec.field(default_factory=dict)  #: of the first of each line, among the users
    late: RequestId | None = None  #: the one that stands first because it has waited for so long
    late_grant_ms: int = NEVER_MS  #: when the last such request was granted
    is_boosted: bool = False  #: an admin wants these requests before those of the project's other users


class Account(UsageTotals, kw_only=True):
    """A project, while the scheduler runs: what it uses and holds, its requests in line, and what it may have yet.

    Made and indexed by `Accounts`; amounts are thousandths of a GPU, and times are those of `step`.
    """

    project: Project
    parent: "Account | None"
    promised: int  #: what it is guaranteed now, by the settings
    guaranteed: int  #: of that, what the pool can keep: less where all are promised more than there is
    most: int  #: the most that it is guaranteed from now on, in its class hours
    usual: int  #: outside all class hours
    history: DecayedUse = msgspec.field(default_factory=DecayedUse)
    children: dict[ProjectId, "Account"] = msgspec.field(default_factory=dict)
    users: dict[UserName, User] = msgspec.field(default_factory=dict)
    heads: dict[Shape, list[tuple[Rank, UserName]]] = msgspec.field(default_factory=dict)  #: of its users, in order
    firsts: list[tuple[Rank, UserName, Shape]] = msgspec.field(default_factory=list)  #: of its heads, in order
    waiting: dict[Shape, int] = msgspec.field(default_factory=dict)  #: requests in line, here and inside
    replaced: int = 0  #: of what is used: going for a request of somebody in it, so that it uses no more then
    replaced_by_users: int = 0  #: of that, what goes from its own users for its own users
    given_up: dict[str, int] = msgspec.field(default_factory=dict)  #: of that, what goes for a user's part, by class
    #: What goes of its own users for whomever, by class of service.
    going_by_qos: dict[str, int] = msgspec.field(default_factory=dict)
    #: What goes in other projects for a share of its users, by each project that both are in; None is the pool.
    given_by: dict[ProjectId | None, int] = msgspec.field(default_factory=dict)
    charged: int = 0  #: what is used, each lease at the price that was agreed
    #: What was used of the budget in the period, thousandths of a GPU at its price times milliseconds, up to a time.
    spent: int = 0
    counted_ms: int = 0
    period_ends_ms: int = 0
    granted_ms: int = 0  #: what is allowed beyond the budget until a time, GPUs times milliseconds
    commitments: dict[LeaseId, Commitment] = msgspec.field(default_factory=dict)  #: where it has a budget
    #: It was reclaimed from: until when it stands behind other borrowers, since when, and how often in a row.
    back_off_until_ms: int = 0
    lost_ms: int = 0
    reclaims: int = 0
    late_grant_ms: int = NEVER_MS  #: when a late request of it was last granted before its siblings'
    late: dict[RequestId, int] = msgspec.field(default_factory=dict)  #: late requests here and inside: what each costs
    late_lines: LateLines = msgspec.field(default_factory=LateLines)  #: the same, by what they ask for
    #: For whom of them its limit is kept, as of when (`kept_limits`).
    first_late_cache: tuple[tuple[object, ...], RequestId | None] | None = None
    late_until: tuple[RequestId, int] | None = None  #: that one, and what is over by when is not in its way
    held_inside: HeldInside | None = None  #: for whom it is kept from when a limit inside lets them through
    first_by_hand: FirstByHand | None = None  #: for whom it is kept from its own users
    firm: frozenset[str] = frozenset()  #: classes of service that never borrow
    passed: QueueEntry | None = None  #: the first request that an admin put first, and that waits in this walk
    #: It among its siblings, and its own users among the projects inside it.
    trader: Trader
    members: Trader
    changes: int = 0  #: how often anything changed here or inside that decides who is next
    waiting_in_quota: int = 0  #: requests in line, here and inside, of classes that never borrow
    is_bounded: bool = False  #: whether it, or one that it is in, has a limit or a budget, or may not borrow
    kept: int = 0  #: of its guarantee, what is unused and not lent
    kept_inside: int = 0  #: by the projects inside it, together
    kept_now: int = 0  #: what it keeps before those have what they ask for who are taken for granted
    kept_now_inside: int = 0

    @property
    def budget(self) -> Budget | None:
        """What may be spent in the period, with what was granted beyond; None is no limit."""
        own = self.project.budget
        return own if own is None or not self.granted_ms else Budget(own.gpu_ms + self.granted_ms, own.period)

    def grant_budget(self, granted_ms: int) -> bool:
        """Allow so much beyond the budget, in place of what was; return whether that is another amount."""
        is_other = granted_ms != self.granted_ms
        self.granted_ms = granted_ms
        if is_other:
            self.note_change()
        return is_other

    @property
    def limit(self) -> int | None:
        """What it may hold; None is no limit."""
        return self._limit(self.promised)

    @property
    def top(self) -> "Account":
        """The outermost project that it is in, or itself."""
        at = self
        while at.parent is not None:
            at = at.parent
        return at

    def is_blank(self, now_ms: int) -> bool:
        """Tell whether nothing is known of it but its settings: nobody asked, and it earned and spent nothing."""
        traders = (self.trader.at(now_ms), self.members.at(now_ms))
        return not (self.users or self.history.amount or any(one.earned or one.spent for one in traders))

    def note_change(self) -> None:
        """Count a change that may decide who is next in it, or in what it is in."""
        for at in self.path:
            at.changes += 1

    @property
    def path(self) -> "Iterator[Account]":
        """The account, and those that it is in, from the inside out."""
        at: Account | None = self
        while at is not None:
            yield at
            at = at.parent

    @property
    def payer(self) -> "Account":
        """Find whose guarantee counts for a QoS that never borrows: its own, or that of what it is in if it has none.

        Class hours change nothing in that: what may wait for them would else be what may not run in them.
        """
        return self if self.usual > 0 or self.parent is None else self.parent.payer

    @property
    def highest_limit(self) -> int | None:
        """What it may hold at any time from now on; None is no limit."""
        return self._limit(self.most)

    def _limit(self, promised: int) -> int | None:
        limit = self.project.limit_milli
        if self.project.can_borrow:
            return limit
        return promised if limit is None else min(promised, limit)

    def count(self, now_ms: int) -> None:
        """Bring what was spent up to this time. Needed before `charged` changes."""
        if self.project.budget is not None:
            if now_ms >= self.period_ends_ms:
                began_ms, self.period_ends_ms = period_at(self.project.budget.period, now_ms)
                self.spent, self.counted_ms = 0, began_ms
            self.spent += self.charged * (now_ms - self.counted_ms)
            self.counted_ms = now_ms

    def spend(self, amount: int, now_ms: int) -> None:
        """So much was spent in this period that `charged` does not tell of; what is below 0 was spent for nothing."""
        self.count(now_ms)
        if self.project.budget is not None:
            self.spent = max(0, self.spent + amount)
        self.note_change()

    def left(self, now_ms: int) -> int | None:
        """Compute what may be spent yet in this period, in the unit of `spent`; None is no limit."""
        if self.project.budget is None:
            return None
        self.count(now_ms)
        return max(0, (self.project.budget.gpu_ms + self.granted_ms) * GPU_MILLI - self.spent)

    def spendable(self, now_ms: int, *, without_hot: bool = False, without_leaving: bool = False) -> int | None:
        """Compute what of the budget is neither spent nor promised to leases: below 0 where that is more than there is.

        None is no limit. `without_hot` is what it would be without its hot leases, which may be evicted;
        `without_leaving` what it will be without those that were.
        """
        if self.project.budget is None:
            return None
        self.count(now_ms)
        leases = (
            one.left(now_ms)
            for name, one in self.commitments.items()
            if not (without_hot and name in self.hot) and not (without_leaving and one.is_leaving)
        )
        return (self.project.budget.gpu_ms + self.granted_ms) * GPU_MILLI - self.spent - sum(leases)

    def over_budget(self, now_ms: int) -> Iterator[LeaseId]:
        """List hot leases, least recently used first, for whose next cells the budget does not reach.

        What leaves already has made room for others.
        """
        lacks = -(self.spendable(now_ms, without_leaving=True) or 0) if self.hot else 0
        for lease in self.hot:
            if lacks > 0 and lease in self.commitments and self.commitments[lease].charged:
                lacks -= self.commitments[lease].left(now_ms)
                yield lease

    def next_change_ms(self, now_ms: int) -> int | None:
        """When somebody may run again because a new period of the budget begins; None where nobody waits for that."""
        self.count(now_ms)
        return self.period_ends_ms if self.project.budget is not None and self.waiting else None

    def back_off(self, now_ms: int, grace_ms: int, first_ms: int, longest_ms: int) -> None:
        """Note that something was reclaimed from it: it stands behind other borrowers, each time twice as long.

        What it loses within a grace is one time, however many cells that are.
        """
        if self.reclaims and now_ms < self.lost_ms + grace_ms:
            return
        is_in_a_row = now_ms < self.back_off_until_ms + longest_ms
        self.reclaims = self.reclaims + 1 if is_in_a_row else 1
        self.lost_ms = now_ms
        self.back_off_until_ms = now_ms + min(longest_ms, first_ms << min(self.reclaims - 1, 30))
        self.note_change()

    def covers(self, cost: int) -> bool:
        """Whether so much more would be within its guarantee."""
        return self.used + cost <= self.guaranteed

    def will_cover(self, cost: int, entry: QueueEntry | None = None) -> bool:
        """Whether so much more would be within its guarantee once others have the places of cells that are going.

        That is beside what is kept of it for others, where it is a request that asks.
        """
        return self.used - self.replaced + cost + self.kept_of_guarantee(entry) <= self.guaranteed

    def given_up_beside(self, qos: Mapping[str, QoS], priority: int) -> int:
        """Sum up what cells of a class of this priority use that are going for the part of another user."""
        return sum(used for name, used in self.given_up.items() if name in qos and qos[name].priority == priority)

    def leaves_to(self, qos: Mapping[str, QoS], priority: int, *, firm_alone: bool = False) -> int:
        """Sum up what cells that go leave of a guarantee to a request of a class of this priority that never borrows.

        They are of a lower class like it, or go for the part of another user of its class; `firm_alone` leaves out, of
        the latter, classes that may borrow.
        """
        known = {name: qos[name].priority for name in self.firm if name in qos}
        below = sum(used for name, used in self.going_by_qos.items() if known.get(name, priority) < priority)
        alike = (used for name, used in self.given_up.items() if known.get(name) == priority)
        return below + (sum(alike) if firm_alone else self.given_up_beside(qos, priority))

    def used_below(self, qos: Mapping[str, QoS], priority: int, *, may_borrow: bool = False) -> int:
        """Sum up what cells of a lower class of service use that may be ended for one of this priority.

        With `may_borrow` only what may borrow from then on, so that a class that never does need not wait for its end.
        """
        below = 0
        for name, amount in self.by_qos.items():
            one = qos.get(name)
            if one is None or (may_borrow and one.must_be_in_quota):
                continue
            if one.priority < priority and one.preemption is not Preemption.NEVER:
                below += amount
        return below

    def late_within(self, amount: int) -> tuple[RequestId, int] | None:
        """Find the request that is late here for the longest time of those that cost no more than this, and its cost.

        One for which room is made costs nothing: it uses that already.
        """
        first = next(iter(self.late.items()), None)
        if first is None or 0 < first[1] <= amount:
            return first
        name = self.late_lines.first(self.late, lambda shape: shape.cost <= amount)
        return None if name is None else (name, self.late[name])

    def kept_of_guarantee(self, entry: QueueEntry | None, *, by_users: bool = False) -> int:
        """Find what is kept of its guarantee from a request for another one in it, which that could cover alone.

        `by_users` asks of what its own users are guaranteed beside the projects inside it. The innermost guarantee is
        kept that is large enough. Whom an admin put first, or boosted, is in nobody's way, but in that of one like it.
        Nothing is kept from who never borrows: who does may start elsewhere meanwhile, and such a one could only wait.
        """
        foremost = self.foremost
        if entry is None or not self.guaranteed or (foremost is None and not self.late):
            return 0
        if entry.shape.qos in self.firm:
            return 0
        inside = sum(child.guaranteed for child in self.children.values())
        own = self.guaranteed - inside if self.children else 0
        amount = own if by_users else self.guaranteed
        if foremost is not None and foremost.id != entry.id and 0 < foremost.shape.cost <= amount:
            return 0 if not by_users and foremost.shape.cost <= own else foremost.shape.cost
        user = self.users.get(entry.user)
        if foremost is not None or entry.key.turn or (user is not None and user.is_boosted):
            return 0
        name, cost = self.late_within(amount) or (entry.id, 0)
        if name == entry.id:
            return 0
        child = next((child for child in self.children.values() if name in child.late), None)
        is_elsewhere = (not by_users and cost <= own) if child is None else (by_users or cost <= child.guaranteed)
        return 0 if is_elsewhere else cost

    def kept_there(self, entry: QueueEntry, guaranteed: int, serves: Callable[[Shape], bool]) -> int:
        """Find what is kept from a request of what its project is guaranteed of a node pool, for one that it serves.

        That is as of its whole guarantee: for the foremost of its users, or for the first that is late.
        """
        foremost = self.foremost
        if entry.shape.qos in self.firm or not guaranteed or (foremost is None and not self.late):
            return 0
        if foremost is not None:
            shape = foremost.shape
            return shape.cost if foremost.id != entry.id and shape.cost <= guaranteed and serves(shape) else 0
        user = self.users.get(entry.user)
        if entry.key.turn or (user is not None and user.is_boosted):
            return 0
        first = self.late_lines.first(self.late, lambda shape: 0 < shape.cost <= guaranteed and serves(shape))
        return 0 if first is None or first == entry.id else self.late[first]

    @property
    def foremost(self) -> QueueEntry | None:
        """The first request of its own users, if an admin put that first, or boosted its user."""
        if self.passed is not None or not self.firsts:
            return self.passed
        rank, name, shape = self.firsts[0]
        return self.users[name].lines[shape][0][1] if rank[0] or not rank[1] else None

    def note_passed(self, entry: QueueEntry) -> None:
        """Note that a request waits for running cells while those behind it are looked at: whom it was put before."""
        is_first = bool(entry.key.turn) or self.users[entry.user].is_boosted
        if is_first and self.passed is None and entry.shape.cost:
            self.passed = entry
