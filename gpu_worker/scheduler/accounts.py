"""Who has what, and who is next: projects in a tree, the users of each, and their requests in line.

An account's amounts are of all that is inside it, in thousandths of a GPU. What is *used* is by leases whose cell runs
or is about to: it counts for guarantees and fair shares. What is *held* is by every lease, also a hot one, which may
begin a cell at any time: it counts for limits. A CPU slot costs nothing, unless the pool has shown no GPU.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Literal

import msgspec

from bulletin.ids import LeaseId, ProjectId, RequestId, UserName
from gpu_worker.scheduler.class_hours import next_edge_ms
from gpu_worker.scheduler.credits import Credits, Market, Trader
from gpu_worker.scheduler.lending import kept_from, note_use
from gpu_worker.scheduler.periods import period_at
from gpu_worker.scheduler.projects import GPU_MILLI, Project, QoS, guarantees, in_force, most_in_force
from gpu_worker.scheduler.shapes import Shape
from gpu_worker.scheduler.shares import Used

#: Place in a user's own line: higher priority of QoS first, then who is due first, to ten seconds, then the shorter
#: walltime, then earlier submission. Sequence numbers never tie.
Key = tuple[int, int, int, int]
#: A GPU-hour used, decayed, puts a user's requests back by a minute, and all use by no more than ten.
_USE_A_DELAY, _LATEST_MS = 60, 600_000
#: Whoever is due for so long, in tens of seconds, stands behind nobody for their credits: four hours.
_PATIENCE = 1440
#: Of a borrower's rank, how far it goes with its credits, which come last there.
_CREDITS = 4
#: The smaller one is next.
Rank = tuple[int, ...]


class Entry(msgspec.Struct, frozen=True):
    """A request, as its place in line depends on it."""

    id: RequestId
    user: UserName
    key: Key
    shape: Shape


class Holder(msgspec.Struct, kw_only=True):
    """Amounts of one user in a project, of a whole project, or of a user in a QoS: there they are numbers of leases."""

    used: int = 0
    held: int = 0
    leaving: int = 0  #: of what is held: on its way out
    going: int = 0  #: of what is used: reclaimed, and on its way out
    hot: dict[LeaseId, int] = msgspec.field(default_factory=dict)  #: what each one holds, least recently used first


class User(Holder, kw_only=True):
    """One user in one project, with the requests in line."""

    name: UserName
    history: Used = msgspec.field(default_factory=Used)
    lines: dict[Shape, list[tuple[Key, Entry]]] = msgspec.field(default_factory=dict)
    ranks: dict[Shape, Rank] = msgspec.field(default_factory=dict)  #: of the first of each line, among the users


class Account(Holder, kw_only=True):
    """A project."""

    project: Project
    parent: "Account | None"
    guaranteed: int  #: now
    most: int  #: the most that it is guaranteed from now on, in its class hours
    usual: int  #: outside all class hours
    history: Used = msgspec.field(default_factory=Used)
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
        """What may be spent yet in this period, in the unit of `spent`; None is no limit."""
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


class Accounts:
    """All projects of a pool. One that is not configured is there as soon as somebody names it, with no guarantee."""

    def __init__(self, projects: Iterable[Project], qos: Iterable[QoS], now_ms: int = 0) -> None:
        self.qos = {one.name: one for one in qos}
        self.now_ms = now_ms  #: the time of the step
        self.began_ms: int | None = None  #: that of the first one, from which the age of use counts
        self.runs: dict[tuple[UserName, str], Holder] = {}  #: of those QoS that limit a user's leases
        self.projects_of: dict[UserName, dict[ProjectId, None]] = {}
        self.top: dict[ProjectId, Account] = {}
        self.by_id: dict[ProjectId, Account] = {}
        self.budgeted: list[Account] = []
        self.market = Market()  #: of those at the top
        self.capacity = self.in_use = self.kept_inside = (
            0  #: of what may be used; and what all at the top keep together
        )
        self.shapes: dict[Shape, int] = {}  #: requests in line, of all projects
        by_id = {project.id: project for project in projects}
        self.turns_ms: int | None = None  #: when class hours of some project begin or end next; None is never
        self.turns = 0  #: how often they did
        self.has_lenders = any(project.lending_limit_milli is not None for project in by_id.values())

        def add(project: Project) -> Account:
            if project.id not in self.by_id:
                parent = None if project.parent is None else add(by_id[project.parent])
                self._add(project, parent)
            return self.by_id[project.id]

        for project in by_id.values():
            add(project)
        usual = guarantees(by_id.values())
        for account in self.by_id.values():
            account.usual = usual[account.project.id]
        self.timed = [account for account in self.by_id.values() if account.project.class_hours]
        self.turn()

    def _add(self, project: Project, parent: Account | None) -> None:
        market = self.market if parent is None else parent.members.market
        account = Account(
            project=project,
            parent=parent,
            guaranteed=0,
            most=0,
            usual=0,
            trader=Trader(market, project.weight),
            members=Trader(Market()),
        )
        siblings = self.top if parent is None else parent.children
        siblings[project.id] = self.by_id[project.id] = account
        if account.project.budget is not None:
            self.budgeted.append(account)

    def inherit(self, before: "Accounts") -> None:
        """What was used and spent stays known, where there still is such a project."""
        self.now_ms, self.began_ms = before.now_ms, before.began_ms
        for market in [self.market, *(account.members.market for account in self.by_id.values())]:
            market.counted_ms = self.now_ms
        for old in before.by_id.values():
            account = self.of(old.project.id)
            account.trader.inherit(old.trader.at(self.now_ms))
            account.members.inherit(old.members.at(self.now_ms))
            account.history = old.history
            for user in old.users.values():
                self.user_of(old.project.id, user.name).history = user.history
            budget, was = account.project.budget, old.project.budget
            if budget is not None and was is not None and budget.period == was.period:
                account.spent, account.counted_ms = old.spent, old.counted_ms
                account.period_ends_ms = old.period_ends_ms
            account.borrows_from_ms, account.reclaims = old.borrows_from_ms, old.reclaims
        for account in self.budgeted:
            account.count(self.now_ms)  # a budget that is new begins now

    def foreseen(self, at_ms: int) -> "Accounts":
        """These accounts at a time to come, with what is guaranteed then: nothing is in use, and nobody waits."""
        then = Accounts([account.project for account in self.by_id.values()], self.qos.values(), at_ms)
        then.began_ms = self.began_ms
        then.has(self.capacity)
        for account in self.by_id.values():
            other = then.by_id[account.project.id]
            other.history, other.borrows_from_ms = account.history, account.borrows_from_ms
            other.spent, other.counted_ms = account.spent, account.counted_ms
            other.period_ends_ms = account.period_ends_ms
            other.trader.standing, other.members.standing = account.trader.standing, account.members.standing
        return then

    def of(self, project: ProjectId) -> Account:
        """The account of a project."""
        if project not in self.by_id:
            self._add(Project(id=project), None)
        return self.by_id[project]

    def user_of(self, project: ProjectId, name: UserName) -> User:
        """A user of a project."""
        users = self.of(project).users
        if name not in users:
            users[name] = User(name=name)
            self.projects_of.setdefault(name, {})[project] = None
        return users[name]

    def holders(
        self, project: ProjectId, name: UserName, qos: str, cost: int
    ) -> Iterator[tuple[Holder, int, int | None]]:
        """Whose amounts a lease counts for, with how much, and the most that each may hold."""
        account, user = self.of(project), self.user_of(project, name)
        yield user, cost, account.project.user_limit_milli
        for at in account.path:
            yield at, cost, at.limit
        limit = self.qos[qos].running_per_user if qos in self.qos else None  # else it was learned, or is no more
        if limit is not None:
            yield self.runs.setdefault((name, qos), Holder()), 1, limit

    # --- amounts

    def use(self, project: ProjectId, name: UserName, qos: str, cost: int, sign: Literal[1, -1]) -> None:
        """So much more, or less, is in use."""
        for account in self.of(project).path:
            account.count(self.now_ms)
        for holder, amount, _ in self.holders(project, name, qos, cost):
            holder.used += sign * amount
        if cost:
            self._trade(self.of(project), sign * cost)
        self._rank_user(project, name, qos)

    def remember(self, project: ProjectId, name: UserName, amount: int) -> None:
        """So much was used: thousandths of a GPU, times milliseconds."""
        age_ms = self.now_ms - (self.began_ms or 0)
        self.user_of(project, name).history.add(amount, age_ms)
        for account in self.of(project).path:
            account.history.add(amount, age_ms)

    def forget(self, project: ProjectId, name: UserName, amount: int) -> None:
        """So much that was remembered is not to count: no more than there is of the user, at what use counts now."""
        age_ms, user = self.now_ms - (self.began_ms or 0), self.user_of(project, name)
        taken = user.history.take(amount, age_ms)
        for account in self.of(project).path:
            account.history.amount = max(0, account.history.amount - taken)

    # --- class hours

    def turn(self) -> None:
        """Guarantee what is in force now: class hours have begun or ended, or nothing was guaranteed before."""
        projects = [account.project for account in self.by_id.values()]
        promised = guarantees(projects, in_force(self.now_ms))
        most = guarantees(projects, most_in_force(self.now_ms))
        for name, account in self.by_id.items():
            account.guaranteed, account.most = promised[name], most[name]
        for account in self.by_id.values():
            if account.children:
                inside = account.children.values()
                own = account.used - sum(child.used for child in inside)
                rest = account.guaranteed - sum(child.guaranteed for child in inside)
                account.members.change(own - rest, self.now_ms)
            account.trader.change(account.used - account.guaranteed, self.now_ms)
            if self.has_lenders:
                note_use(self, account)
        self.has(self.capacity)
        edges = (next_edge_ms(account.project.class_hours, self.now_ms) for account in self.timed)
        self.turns_ms = min((at_ms for at_ms in edges if at_ms is not None), default=None)
        self.turns += 1

    # --- credits

    def credits(self, project: ProjectId) -> Credits:
        """What a project ever earned and spent among its siblings."""
        return self.of(project).trader.credits(self.now_ms)

    def recall_credits(self, project: ProjectId, past: Credits, *, own_users: bool) -> None:
        """So much a project, or its own users among the projects inside it, earned and spent before this was there."""
        account = self.of(project)
        (account.members if own_users else account.trader).at(self.now_ms).recall(past)

    def has(self, capacity: int) -> None:
        """So much of the pool may be used now: what of it nobody is guaranteed costs no credits."""
        self.capacity = capacity
        self.market.count(self.now_ms)
        self.market.unpromised = max(0, capacity - sum(account.guaranteed for account in self.top.values()))

    def _trade(self, account: Account, more: int) -> None:
        """The users of the project use so much more, or less below 0."""
        self.in_use += more
        if self.has_lenders:
            note_use(self, account)
        if account.children:
            account.members.change(account.members.surplus + more, self.now_ms)
        for at in account.path:
            at.trader.change(at.used - at.guaranteed, self.now_ms)

    # --- lines

    def enter(self, project: ProjectId, entry: Entry) -> None:
        """Put a request in line."""
        user = self.user_of(project, entry.user)
        insort(user.lines.setdefault(entry.shape, []), (entry.key, entry))
        self._count(project, entry.shape, +1)
        self._rank_line(self.of(project), user, entry.shape)

    def leave(self, project: ProjectId, entry: Entry) -> None:
        """Take a request out of its line."""
        user = self.user_of(project, entry.user)
        line = user.lines[entry.shape]
        del line[bisect_left(line, (entry.key,))]
        if not line:
            del user.lines[entry.shape]
        self._count(project, entry.shape, -1)
        self._rank_line(self.of(project), user, entry.shape)

    def _count(self, project: ProjectId, shape: Shape, step: int) -> None:
        for waiting in (self.shapes, *(account.waiting for account in self.of(project).path)):
            number = waiting.get(shape, 0) + step
            if number:
                waiting[shape] = number
            else:
                del waiting[shape]

    def due_ms(self, project: ProjectId, name: UserName, apart_ms: int) -> int:
        """When a request of now is due: the later the more its user used before, but not much later.

        So who used less comes first, and nobody is passed for ever. Whatever of the user waits or runs puts it back by
        `apart_ms`: many requests are no way to the front.
        """
        age_ms, user = self.now_ms - (self.began_ms or 0), self.user_of(project, name)
        used_ms = user.history.at(age_ms) // GPU_MILLI
        number = sum(map(len, user.lines.values())) + user.used // GPU_MILLI
        return self.now_ms + min(_LATEST_MS, used_ms // _USE_A_DELAY) + number * apart_ms

    def _rank_user(self, project: ProjectId, name: UserName, qos: str = "") -> None:
        """Put a user's lines in order again; those in other projects as well where a QoS limits the user in all."""
        is_everywhere = qos in self.qos and self.qos[qos].running_per_user is not None
        for at in self.projects_of[name] if is_everywhere else (project,):
            account = self.by_id[at]
            user = account.users[name]
            for shape in list(user.lines):
                self._rank_line(account, user, shape)

    def _rank_line(self, account: Account, user: User, shape: Shape) -> None:
        """Put the first of a user's line where it belongs among those of the other users."""
        line = user.lines.get(shape)
        rank = self.rank_in_line(account, user, line[0][1]) if line else None
        before = user.ranks.get(shape)
        if rank == before:
            return
        heads = account.heads.setdefault(shape, [])
        first = heads[0] if heads else None
        if before is not None:
            del heads[bisect_left(heads, (before, user.name))]
            del user.ranks[shape]
        if rank is not None:
            insort(heads, (rank, user.name))
            user.ranks[shape] = rank
        if not heads or heads[0] is not first:
            if first is not None:
                del account.firsts[bisect_left(account.firsts, first)]
            if heads:
                insort(account.firsts, (*heads[0], shape))
        if not heads:
            del account.heads[shape]

    def rank_in_line(self, account: Account, user: User, entry: Entry) -> Rank | None:
        """Where a user's request stands among those of the project's users; None where the user may have no more."""
        shape, limit = entry.shape, account.project.user_limit_milli
        if limit is not None and user.used + shape.cost > limit:
            return None
        at_once, runs = self.qos[shape.qos].running_per_user, self.runs.get((user.name, shape.qos))
        if at_once is not None and runs is not None and runs.used >= at_once:
            return None
        return (entry.key[0], user.used, *entry.key[1:])

    # --- who is next

    def next(self, closed: set[Shape]) -> tuple[Account, Entry] | None:
        """Whoever is next with a shape that is not closed; None where nobody may have more."""
        if closed.issuperset(self.shapes):
            return None
        return self._next_among(self.top.values(), None, closed)

    def _next_in(self, account: Account, closed: set[Shape]) -> tuple[Account, Entry] | None:
        own = self._next_user(account, closed)
        if not account.children:
            return own
        return self._next_among(account.children.values(), own, closed)

    def _next_among(
        self, accounts: Iterable[Account], own: tuple[Account, Entry] | None, closed: set[Shape]
    ) -> tuple[Account, Entry] | None:
        """The next among siblings, and among the users of the project that they are in."""
        ranked = [] if own is None else [(rank_of_members(*own, self.now_ms), own)]
        for account in accounts:
            if closed.issuperset(account.waiting):
                continue
            found = self._next_in(account, closed)
            if found is not None:
                ranked.append((rank_among(account, found[1], self.now_ms), found))
        if not ranked:
            return None
        best, first = min(ranked, key=itemgetter(0))
        if best[0]:  # all borrow: who is late has the most credits of those who are alike before credits count
            late = self.now_ms // 10_000 - _PATIENCE
            *before, most = best[:_CREDITS]
            for rank, found in ranked:
                if found[1].key[1] <= late and rank[: _CREDITS - 1] == tuple(before):
                    best, first = min((best, first), ((*before, most, *rank[_CREDITS:]), found), key=itemgetter(0))
        return first

    def _next_user(self, account: Account, closed: set[Shape]) -> tuple[Account, Entry] | None:
        refused: tuple[tuple[str, int], ...] = ()  # shapes are many more than what this depends on
        for _, name, shape in account.firsts:
            if shape in closed:
                continue
            asks = shape.qos, shape.cost
            if asks not in refused:
                if self.is_allowed(account, shape):
                    return account, account.users[name].lines[shape][0][1]
                refused = (*refused, asks)
        return None

    def is_allowed(self, account: Account, shape: Shape) -> bool:
        """Whether the project and all that it is in may use so much more, once what is hot there makes room."""
        must_be_covered = self.qos[shape.qos].must_be_in_quota
        for at in account.path:
            if at.limit is not None and at.used + shape.cost > at.limit:
                return False
            if shape.cost and self.now_ms < at.borrows_from_ms and not at.covers(shape.cost):
                return False
            if shape.cost and at.left(self.now_ms) == 0:
                return False
            if must_be_covered and at.must_cover and not at.covers(shape.cost):
                return False
        return not (self.has_lenders and shape.cost and kept_from(self, account, shape.cost))


def rank_among(account: Account, entry: Entry, now_ms: int) -> Rank:
    """Where a request stands among those of the projects beside this one: in quota first.

    Then by priority, then by credits for its weight, then by how much of its guarantee or, by weight, of the surplus a
    project would have, then by what it used in the past, then the shortest and the earliest.
    """
    project, cost = account.project, entry.shape.cost
    used, past = account.used + cost, account.history.amount // project.weight
    rest = (past, *entry.key[1:])
    if account.covers(cost):
        return (0, entry.key[0], 0, 0, used * 1_000_000 // max(1, account.guaranteed), *rest)
    standing, surplus = account.trader.standing_at(now_ms), (used - account.guaranteed) * 1000 // project.weight
    return (1, entry.key[0], -project.priority, -standing, surplus, *rest)


def rank_of_members(account: Account, entry: Entry, now_ms: int) -> Rank:
    """The same for the users of a project that has others inside: they share what those leave of its guarantee."""
    inside = account.children.values()
    used = account.used - sum(child.used for child in inside) + entry.shape.cost
    guaranteed = account.guaranteed - sum(child.guaranteed for child in inside)
    past = account.history.amount - sum(child.history.amount for child in inside)
    rest = (past, *entry.key[1:])
    if used <= guaranteed:
        return (0, entry.key[0], 0, 0, used * 1_000_000 // max(1, guaranteed), *rest)
    standing = account.members.standing_at(now_ms)
    return (1, entry.key[0], 0, -standing, (used - max(0, guaranteed)) * 1000, *rest)
