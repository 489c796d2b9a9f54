"""Who has what: projects in a tree, the users of each, and what they may have yet."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol

import msgspec

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler.accounts.account import Account, UsageTotals, User
from gpu_worker.scheduler.accounts.branches import Branch, is_covered, quota_sides
from gpu_worker.scheduler.accounts.kept_limits import HoldingKind, kept_for_late
from gpu_worker.scheduler.accounts.lending import kept_from, note_use
from gpu_worker.scheduler.accounts.parts import NO_PARTS, Parts
from gpu_worker.scheduler.leases.leases import IDLE, Lease
from gpu_worker.scheduler.leases.shapes import QueueEntry, Shape
from gpu_worker.scheduler.policy.allowances import Allowances
from gpu_worker.scheduler.policy.class_hours import guaranteed_at, next_edge_ms
from gpu_worker.scheduler.policy.credits import Credits, Market, Trader
from gpu_worker.scheduler.policy.projects import Project, QoS, guarantees, in_force, most_in_force


class Promises(msgspec.Struct, frozen=True):
    """What all projects are guaranteed from a time on: now, at most from then on, and outside all class hours."""

    guaranteed: dict[ProjectId, int]
    most: dict[ProjectId, int]
    usual: dict[ProjectId, int]
    until_ms: int | None  #: when class hours of some project begin or end next; None is never


class Homes(Protocol):
    """What projects are guaranteed of some GPUs alone."""

    def cover_at(self, at: Account, account: Account, shape: Shape) -> bool:
        """Whether such a request of a project is within what it, or one that it is in, is guaranteed in some pool."""

    def cover(self, account: Account, shape: Shape) -> bool:
        """Whether such a request of a project is within what it, or one that it is in, is guaranteed in some pool."""

    def may_place(self, accounts: "Accounts", account: Account, shape: Shape, *, is_in_whole: bool, parts: int) -> bool:
        """Whether such a request may start anywhere, as far as its class never borrows, once others made way."""

    def lack_elsewhere(self, accounts: "Accounts", lease: Lease) -> bool:
        """Whether a hot lease of a class that never borrows is not at home, and all such are more than may be there."""


class Accounts:
    """All projects of a pool. One that is not configured is there as soon as somebody names it, with no guarantee."""

    def __init__(self, projects: Iterable[Project], qos: Iterable[QoS], now_ms: int = 0) -> None:
        self.qos = {one.name: one for one in qos}
        self.now_ms = now_ms  #: the time of the step
        self.began_ms: int | None = None  #: that of the first one, from which the age of use counts
        self.runs: dict[tuple[UserName, str], UsageTotals] = {}  #: of those QoS that limit a user's leases
        self.projects_of: dict[UserName, dict[ProjectId, None]] = {}
        self.top: dict[ProjectId, Account] = {}
        self.allowances = Allowances()
        self.by_id: dict[ProjectId, Account] = {}
        self.budgeted: list[Account] = []
        self.market = Market()  #: of those at the top
        self.capacity = self.in_use = self.awaited = 0  #: of what may be used; the last is part of the second
        self.kept_inside = self.kept_now_inside = 0  #: what all at the top keep together
        by_id = {project.id: project for project in projects}
        self.turns_ms: int | None = None  #: when class hours of some project begin or end next; None is never
        self.turns = 0  #: how often they did
        self.changes = 0  #: how often anything changed that may decide who is next anywhere
        self.uses = 0  #: how often anybody's use did
        self.kinds: tuple[HoldingKind, ...] = ()  #: of nodes that are not drained
        self.keeps_hot = any(project.keep_hot_ms for project in by_id.values())
        #: Whether anything is guaranteed to anybody, at some time.
        self.has_guarantees = any(one.guaranteed_milli or one.windows or one.pool_guarantees for one in by_id.values())
        self.lost: dict[ProjectId, int] = {}  #: of guarantees, what node pools cannot keep
        self.homes: Homes | None = None
        self.has_lenders = any(project.lending_limit_milli is not None for project in by_id.values())

        def add(project: Project) -> Account:
            if project.id not in self.by_id:
                parent = None if project.parent is None else add(by_id[project.parent])
                self._add(project, parent)
            return self.by_id[project.id]

        for project in by_id.values():
            add(project)
        self.timed = [account for account in self.by_id.values() if account.project.windows]
        self._reserved: dict[tuple[ProjectId, UserName], list[Account]] = {}  #: what is for a user of a project
        for account in self.by_id.values():
            for name in account.project.users:
                assert account.parent is not None, "a reservation is inside a project"
                self._reserved.setdefault((account.parent.project.id, name), []).append(account)
        self.turn()

    def _add(self, project: Project, parent: Account | None) -> None:
        market = self.market if parent is None else parent.members.market
        account = Account(
            project=project,
            parent=parent,
            promised=0,
            guaranteed=0,
            most=0,
            usual=0,
            trader=Trader(market, project.weight),
            members=Trader(Market()),
            is_bounded=project.is_bounded or (parent is not None and parent.is_bounded),
            firm=frozenset(name for name, qos in self.qos.items() if qos.must_be_in_quota),
        )
        siblings = self.top if parent is None else parent.children
        siblings[project.id] = self.by_id[project.id] = account
        if account.project.budget is not None:
            self.budgeted.append(account)

    def inherit(self, before: "Accounts") -> None:
        """Take over new settings. What was used and spent stays known, where there still is such a project."""
        self.now_ms, self.began_ms = before.now_ms, before.began_ms
        self.allowances = before.allowances
        for market in [self.market, *(account.members.market for account in self.by_id.values())]:
            market.counted_ms = self.now_ms
        for old in before.by_id.values():
            if old.project.id not in self.by_id and (old.project.users or old.is_blank(self.now_ms)):
                continue  # a reservation that is no more, or a project of which there is nothing to know
            account = self.of(old.project.id)
            account.trader.inherit(old.trader.at(self.now_ms))
            account.members.inherit(old.members.at(self.now_ms))
            account.history = old.history
            for user in old.users.values():
                heir = self.user_of(old.project.id, user.name)
                heir.history, heir.late_grant_ms = user.history, user.late_grant_ms
                heir.is_boosted = user.is_boosted
            budget, was = account.project.budget, old.project.budget
            if budget is not None and was is not None and budget.period == was.period:
                account.spent, account.counted_ms = old.spent, old.counted_ms
                account.period_ends_ms = old.period_ends_ms
            account.back_off_until_ms, account.lost_ms, account.reclaims = (
                old.back_off_until_ms,
                old.lost_ms,
                old.reclaims,
            )
            account.late_grant_ms = old.late_grant_ms
        for account in self.budgeted:
            account.count(self.now_ms)  # a budget that is new begins now
            account.grant_budget(self.allowances.budget_ms(account.project.id))

    def of(self, project: ProjectId) -> Account:
        """Return the account of a project; a new one where it has none."""
        if project not in self.by_id:
            self._add(Project(id=project), None)
        return self.by_id[project]

    def user_of(self, project: ProjectId, name: UserName) -> User:
        """Return the account of a user of a project; a new one where there is none."""
        users = self.of(project).users
        if name not in users:
            users[name] = User(name=name)
            self.projects_of.setdefault(name, {})[project] = None
        return users[name]

    def holders(
        self, project: ProjectId, name: UserName, qos: str, cost: int
    ) -> Iterator[tuple[UsageTotals, int, int | None]]:
        """Whose amounts a lease counts for, with how much, and the most that each may hold."""
        account, user = self.of(project), self.user_of(project, name)
        yield user, cost, self.allowances.user_limit_milli(account.project, name)
        for at in account.path:
            yield at, cost, at.limit
        limit = self.qos[qos].running_per_user if qos in self.qos else None  # else it was learned, or is no more
        if limit is not None:
            yield self.runs.setdefault((name, qos), UsageTotals()), 1, limit

    def place_lease(self, lease: Lease) -> ProjectId:
        """Find where a lease counts from now on: what runs stays in its project until it is over."""
        return self.place_of(lease.home, lease.user, None if lease.phase in IDLE else lease.project)

    # --- amounts

    def use(
        self,
        project: ProjectId,
        name: UserName,
        qos: str,
        cost: int,
        sign: Literal[1, -1],
        *,
        charged: int = 0,
        is_awaited: bool = False,
    ) -> None:
        """Count so much more, or less, as in use, and as charged.

        What `is_awaited` is of a request that is only taken for granted.
        """
        for account in self.of(project).path:
            account.count(self.now_ms)
            account.charged += sign * charged
        for holder, amount, _ in self.holders(project, name, qos, cost):
            holder.used += sign * amount
            holder.awaited += sign * amount if is_awaited else 0
        if cost:
            own = self.of(project)
            own.by_qos[qos] = own.by_qos.get(qos, 0) + sign * cost
            if not own.by_qos[qos]:
                del own.by_qos[qos]
            self.awaited += sign * cost if is_awaited else 0
            self._trade(own, sign * cost)
        self.of(project).note_change()
        self.uses += 1
        self.changes += self.has_lenders  # what one keeps is nobody else's

    def remember(self, project: ProjectId, name: UserName, amount: int) -> None:
        """So much was used: thousandths of a GPU at its price, times milliseconds."""
        age_ms = self.now_ms - (self.began_ms or 0)
        self.user_of(project, name).history.add(amount, age_ms)
        for account in self.of(project).path:
            account.history.add(amount, age_ms)
        self.of(project).note_change()

    def forget(self, project: ProjectId, name: UserName, amount: int) -> None:
        """So much that was remembered is not to count: no more than there is of the user, at what use counts now."""
        age_ms, user = self.now_ms - (self.began_ms or 0), self.user_of(project, name)
        taken = user.history.take(amount, age_ms)
        for account in self.of(project).path:
            account.history.amount = max(0, account.history.amount - taken)
        self.of(project).note_change()

    # --- class hours and reservations

    def reserved_for(self, home: ProjectId, user: UserName) -> Sequence[Account]:
        """List the accounts of reservations for a user of a project, whenever they are."""
        return self._reserved.get((home, user), ())

    def place_of(
        self, home: ProjectId, user: UserName, place: ProjectId | None = None, began_ms: int | None = None
    ) -> ProjectId:
        """Find where cells of a user count that were submitted to a project: in a reservation for them that is on.

        A cell that runs counts in `place`: in its project it stays, until it is over. Where nobody knows where it
        counts, `began_ms` says when it began.
        """
        if place == home:
            return home
        times = (self.now_ms, self.now_ms if began_ms is None else began_ms)
        reserved = (one.project for one in self.reserved_for(home, user))
        return next((one.id for one in reserved if all(guaranteed_at(one.windows, at_ms) for at_ms in times)), home)

    def turn(self) -> None:
        """Guarantee what is in force now: class hours have begun or ended, or nothing was guaranteed before."""
        promises = self._promised()
        for name, account in self.by_id.items():
            account.promised, account.most, account.usual = (
                one[name] for one in (promises.guaranteed, promises.most, promises.usual)
            )
        self._guarantee()
        self.set_capacity(self.capacity)
        self.turns_ms = promises.until_ms

    def _guarantee(self) -> None:
        """Guarantee what is promised or, where that is more than the pool has, the same part of it to everybody."""
        total = sum(account.promised for account in self.top.values())
        is_short = 0 < self.capacity < total
        for account in self.by_id.values():
            account.guaranteed = account.promised * self.capacity // total if is_short else account.promised
        for account in self.by_id.values():
            if account.children:
                inside = account.children.values()
                own = account.used - sum(child.used for child in inside)
                rest = account.guaranteed - sum(child.guaranteed for child in inside)
                account.members.change(own - rest, self.now_ms)
            account.trader.change(account.used - account.guaranteed, self.now_ms)
            if self.has_lenders:
                note_use(self, account)
        self.turns += 1
        self.changes += 1

    def lose(self, lost: dict[ProjectId, int]) -> None:
        """Guarantee so much less from now on: what node pools cannot keep, which nobody else is to miss."""
        if lost != self.lost:
            self.lost = lost
            self.turn()

    def _promised(self) -> Promises:
        projects = [account.project for account in self.by_id.values()]
        edges = (next_edge_ms(account.project.windows, self.now_ms) for account in self.timed)
        own = in_force(self.now_ms)
        return Promises(
            guarantees(projects, lambda project: max(0, own(project) - self.lost.get(project.id, 0))),
            guarantees(projects, most_in_force(self.now_ms)),
            guarantees(projects),
            min((at_ms for at_ms in edges if at_ms is not None), default=None),
        )

    def next_changes_ms(self) -> Iterator[int | None]:
        """List when time alone may let somebody else be next: budgets, back-off, credits, and who is late."""
        patience = {qos.patience_ms for qos in self.qos.values()}
        for account in self.by_id.values():
            if account.waiting:
                yield account.next_change_ms(self.now_ms)
                yield account.back_off_until_ms
                yield account.trader.next_step_ms(self.now_ms)
                if account.children:  # else nobody is beside its users to trade with
                    yield account.members.next_step_ms(self.now_ms)
            if account.late:
                yield from (account.late_grant_ms + each for each in patience)

    # --- credits

    def credits(self, project: ProjectId) -> Credits:
        """Sum up what a project ever earned and spent among its siblings."""
        return self.of(project).trader.credits(self.now_ms)

    def recall_credits(self, project: ProjectId, past: Credits, *, own_users: bool) -> None:
        """So much a project, or its own users among the projects inside it, earned and spent before this was there."""
        account = self.of(project)
        (account.members if own_users else account.trader).at(self.now_ms).recall(past)
        account.note_change()

    def set_capacity(self, capacity: int) -> None:
        """Note how much of the pool may be used now: guarantees of more than that shrink to it.

        What of it nobody is guaranteed costs no credits.
        """
        before, self.capacity = self.capacity, capacity
        self.changes += before != capacity
        if min(before, capacity) < sum(account.promised for account in self.top.values()) and before != capacity:
            self._guarantee()
        self.market.count(self.now_ms)
        self.market.unpromised = max(0, capacity - sum(account.guaranteed for account in self.top.values()))

    def _trade(self, account: Account, more: int) -> None:
        """Count that the users of the project use so much more, or less below 0."""
        self.in_use += more
        if self.has_lenders:
            note_use(self, account)
        if account.children:
            account.members.change(account.members.surplus + more, self.now_ms)
        for at in account.path:
            at.trader.change(at.used - at.guaranteed, self.now_ms)

    def quota_cost(self, account: Account, shape: Shape) -> int:
        """Compute by how much more a request has its project use of its guarantee.

        Cells of lower classes of its project borrow from then on where its class never does.
        """
        qos = self.qos.get(shape.qos)
        if qos is None or not qos.must_be_in_quota:
            return shape.cost
        below = account.used_below(self.qos, qos.priority, may_borrow=True)
        return shape.cost - max(0, below - account.replaced)  # what goes for somebody here counts no more in any case

    def is_covered(self, account: Account, entry: QueueEntry) -> bool:
        """Whether a request of a project would be within its guarantee, or within that of one that it is in."""
        return is_covered(account, self.quota_cost(account, entry.shape), entry)

    def kept_in_limits(self, account: Account, entry: QueueEntry) -> Iterator[int | None]:
        """Find what the limit of each project that a request is in keeps from it for those that are late.

        None is: a guarantee inside covers the request, which is within that limit in any case.
        """
        cost = self.quota_cost(account, entry.shape)
        covered = bool(account.children) and Branch(account, is_members=True).will_cover(cost, entry)
        for at in account.path:
            yield None if covered else kept_for_late(self, at, account, entry)
            at_home = self.homes is not None and self.homes.cover_at(at, account, entry.shape)
            covered = covered or at.will_cover(cost, entry) or at_home

    def is_allowed(self, account: Account, entry: QueueEntry, parts: Parts = NO_PARTS) -> bool:
        """Whether the project and all that it is in may use so much more, once what must give way has made room.

        That is what is hot there, the project's own cells of a lower class of service, what others have beyond their
        parts, and what others inside borrow of what it is guaranteed. What costs nothing may always run.
        """
        shape, qos = entry.shape, self.qos[entry.shape.qos]
        if not shape.cost or (not account.is_bounded and not qos.must_be_in_quota and not self.has_lenders):
            return True
        below = account.used_below(self.qos, qos.priority)
        gives_way = below + parts.of_users + account.given_up_beside(self.qos, qos.priority)
        for at, kept in zip(account.path, self.kept_in_limits(account, entry), strict=True):
            used = at.used - gives_way - parts.beside(account, at.project.id) + shape.cost
            if at.limit is not None and kept is not None and used + kept > at.limit:
                return False
            spendable = at.spendable(self.now_ms, without_hot=True)
            if spendable is not None and spendable < shape.charged * entry.key.walltime_ms:
                return False
        sides = quota_sides(account) if qos.must_be_in_quota else ()
        lefts = [side.guaranteed - side.used + gives_way + parts.beside_side(account, side) for side in sides]
        is_in_whole = not lefts or max(lefts) >= shape.cost
        if lefts and self.homes is not None:
            given_up = gives_way - below + parts.beside(account, account.payer.project.id)
            if not self.homes.may_place(self, account, shape, is_in_whole=is_in_whole, parts=given_up):
                return False
        elif not is_in_whole:
            return False
        gives_way += parts.beside(account, None)
        return not self.kept_by_lenders(account, shape, gives_way)

    def kept_by_lenders(self, account: Account, shape: Shape, below: int = 0) -> int:
        """Compute what lenders keep from a request: nothing where it is at home, which is where it starts then.

        Cells that use `below` give way to it.
        """
        kept = kept_from(self, account, shape.cost, below) if self.has_lenders and shape.cost else 0
        is_home = kept and self.homes is not None and self.homes.cover(account, shape)
        return 0 if is_home else kept
