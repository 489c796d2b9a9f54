"""Who must give back a GPU that somebody else has more right to: questions only, answered on counts.

A request that a guarantee covers may take running cells that are borrowed, seen from where the two paths in the tree of
projects part. Whoever has taken so is covered, and whoever has lost was not: neither can take it back.

A request that is within what its project is guaranteed in a node pool may take there what others have of it beyond what
they are guaranteed there, also if another guarantee covers that: whoever has lost is covered elsewhere, and not there.

A request may take cells of its own project of a lower class of service. Classes have an order, so that goes one way.

A request that borrows, and has waited for a while, may take borrowed cells from who has more of the surplus for its
weight, as long as it has no more than the other afterwards; and in the same way cells of its own project and class from
a user who uses more. Each such step makes the division more even, so taking ends where everybody has a share by weight.
One share is compared with another, so nobody need know who wants how much. What was taken from another project for a
share is not taken back for one, whatever happens next. So no two requests ever preempt each other.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bulletin.ids import AgentId, LeaseId, ProjectId, UserName
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.branches import Branch, is_covered, parting
from gpu_worker.scheduler.actions import Right
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import Lane
from gpu_worker.scheduler.placement.reclaimable import (
    borrowed_beside,
    borrowed_in_pools,
    has_beside_going,
    reclaimable,
    spared,
)
from gpu_worker.scheduler.policy.projects import Preemption
from gpu_worker.scheduler.state import State
from gpu_worker.scheduler.wakeups import share_interval_ms


class Victim(NamedTuple):
    """A running cell that a request may take. The smaller one is taken first."""

    is_spared: bool  #: of the request's own project; of another where its own would be borrowed from then on
    #: Some guarantee covers it, also one that both are in: it takes another one's then. It is of another project, not
    #: where the request is at home in a node pool: there that makes no difference.
    is_covered: bool
    overshoot: int  #: how far its project is below its guarantee without it and what goes, in thousandths of a GPU
    priority: int  #: of its class of service
    lost_ms: int  #: what it has run, on all of its slots
    name: str
    lease: Lease
    right: Right


def has_waited(state: State, request: Request) -> bool:
    """Whether the request may take for its share in this step. If it cannot yet, the state notes when to look again."""
    qos, now_ms = state.qos[request.qos], state.accounts.now_ms
    from_ms = request.since_ms + qos.share_after_ms
    if from_ms <= now_ms:
        if state.wakeups.ask_for_shares():
            return True
        from_ms = now_ms + share_interval_ms(state.settings.share_every_ms, len(state.pending))
    state.wakeups.note(from_ms)
    return False


def may_reclaim(state: State, request: Request) -> bool:
    """Whether a request may take any running cell at all now, as far as that is seen without looking at nodes."""
    shape = request.entry.shape
    account = state.accounts.of(request.project)
    if not shape.cost:
        return False
    if state.is_covered(request) or account.used_below(state.qos, state.qos[request.qos].priority):
        return True
    return has_waited(state, request)


def lost_by(lease: Lease, now_ms: int) -> int:
    """Compute what a cell has run on all of its slots, which is lost if it is taken; milliseconds."""
    return (now_ms - lease.began_ms) * len(lease.slots)


class _Parting(NamedTuple):
    """Where the path of a request's project parts from that of another project, and what is known of both there."""

    mine: list[Branch]
    others: list[Branch]
    is_owed: bool  #: whether a guarantee beside the other project covers the request


class VictimSelection:
    """Which running cells a request may take, one after the other; what was chosen counts for those that follow."""

    def __init__(self, state: State, accounts: Accounts, request: Request) -> None:
        self._state, self._accounts, self._request = state, accounts, request
        self._account, self._cost = accounts.of(request.project), request.entry.shape.cost
        self._priority = state.qos[request.qos].priority
        self._quota_cost = accounts.quota_cost(self._account, request.entry.shape)
        self._shares_inside = has_waited(state, request)
        self._is_covered = is_covered(self._account, self._quota_cost, request.entry)
        self._shares = self._shares_inside and not self._is_covered
        is_covered_beside = is_covered(self._account, self._cost, request.entry)
        self.displaces = not is_covered_beside and self._is_covered
        self._pools = state.pools.covering(self._account, request.entry.shape, request.entry)  #: where it is covered
        self._taken: dict[tuple[str, bool], int] = {}
        self._taken_of_users: dict[str, int] = {}
        self._parting_cache: dict[ProjectId, _Parting] = {}
        #: By side: what it has of the surplus, and whether it has no more credits than the request's.
        self._surplus_cache: dict[tuple[str, bool], int] = {}
        self._credits_cache: dict[tuple[str, bool], bool] = {}
        self._candidates: dict[AgentId, list[Lease]] | None = None
        self._spared_cache: dict[tuple[ProjectId, UserName], list[Lease]] | None = None
        state.follow_coverage()

    def candidates(self, lane: Lane) -> dict[AgentId, list[Lease]]:
        """List running cells that it might take, by node: those that are borrowed, and those of its own project.

        Of those that are too young the state notes when to look again.
        """
        if self._candidates is None:
            self._candidates = self._by_node(reclaimable(self._state, lane).intersection(self._names()))
        return self._candidates

    def borrowed_by(self, lane: Lane, by_ms: int) -> dict[AgentId, list[Lease]]:
        """List running cells that no guarantee covers and that it might take, by node: now, or by this time."""
        state = self._state
        leases = [state.leases[name] for name in self._borrowed()]
        busy = [one for one in leases if one.phase is Phase.BUSY and one.lane == lane and one.qos in state.qos]
        names = [
            one.id
            for one in busy
            if state.qos[one.qos].preemption is not Preemption.NEVER
            and one.began_ms + state.qos[one.qos].min_runtime_ms <= by_ms
            and not state.coverage.is_in_quota(self._accounts, one)
        ]
        return self._by_node(names)

    def given_back_ms(self, lane: Lane) -> dict[LeaseId, int]:
        """Compute when running cells are over at the latest, if it takes them as soon as it may, young ones too.

        They are those that it may take by its guarantee or its class of service, whatever it takes beside.
        """
        found: dict[LeaseId, int] = {}
        for lease in map(self._state.leases.__getitem__, self._names()):
            qos = self._state.qos.get(lease.qos)
            if lease.lane != lane or lease.phase not in (Phase.GRANTED, Phase.BUSY) or qos is None:
                continue
            if qos.preemption is not Preemption.NEVER and self.right_to(lease) in (Right.GUARANTEE, Right.CLASS):
                began_ms = lease.began_ms if lease.phase is Phase.BUSY else self._state.alarms.get(lease.id, 0)
                found[lease.id] = max(self._accounts.now_ms, began_ms + qos.min_runtime_ms) + qos.grace_ms
        return found

    def _names(self) -> list[LeaseId]:
        """List what is borrowed, seen from its project, and what that has itself, if it may take any of it."""
        names = self._borrowed()
        if self._shares_inside or self._account.used_below(self._state.qos, self._priority):
            names += self._state.coverage.uses_of(self._account)
        return names

    def _borrowed(self) -> list[LeaseId]:
        """List what is borrowed, seen from its project."""
        state, account = self._state, self._account
        sides = [*borrowed_beside(state, account), *borrowed_in_pools(state, account, self._pools)]
        return [name for borrowed in sides for name in borrowed]

    def _by_node(self, names: Iterable[LeaseId]) -> dict[AgentId, list[Lease]]:
        found: dict[AgentId, list[Lease]] = {}
        for lease in map(self._state.leases.__getitem__, names):
            found.setdefault(lease.agent, []).append(lease)
        return found

    def victims(self, candidates: Mapping[AgentId, list[Lease]]) -> list[Victim]:
        """List what it would be to take each of these cells that it may take, wherever it is; the best one first."""
        now_ms = self._state.accounts.now_ms
        leases = (lease for some in candidates.values() for lease in some)
        return sorted(one for lease in leases if (one := self.victim(lease, now_ms)) is not None)

    def begin(self) -> None:
        """Forget what was chosen: another node is tried."""
        self._taken.clear()
        self._taken_of_users.clear()

    def right_to(self, lease: Lease) -> Right | None:
        """Say by which right it may take this one too; None where it may not."""
        if not self._cost or not lease.cost:
            return None
        mine, others, is_owed = self._parting(lease.project)
        if not mine or not others:
            return self._right_inside(lease)
        if lease.pool in self._pools and self._has_pool_right(lease):
            return Right.GUARANTEE
        side = others[0]
        if not self._state.coverage.is_borrowed(side.account, lease.id, by_users=side.is_members):
            return None
        if is_owed:
            return Right.GUARANTEE
        may = self._shares and self._has_less(mine[0], side, lease) and not self._is_spared(lease)
        return Right.SHARE if may else None

    def _parting(self, project: ProjectId) -> _Parting:
        known = self._parting_cache.get(project)
        if known is None:
            mine, others = parting(self._account, self._accounts.of(project))
            cost, entry = self._quota_cost, self._request.entry
            is_owed = self._is_covered and any(branch.will_cover(cost, entry) for branch in mine)
            known = self._parting_cache[project] = _Parting(mine, others, is_owed)
        return known

    def _has_pool_right(self, lease: Lease) -> bool:
        """Whether its project is guaranteed in the lease's node pool what the lease's has of it beyond its own."""
        accounts = self._state.pools.by_name[lease.pool].accounts
        mine, others = parting(accounts.of(self._account.project.id), accounts.of(lease.project))
        side, coverage = others[0], self._state.coverage.in_pool(lease.pool)
        cost = accounts.quota_cost(accounts.of(self._account.project.id), self._request.entry.shape)
        is_borrowed = coverage.is_borrowed(side.account, lease.id, by_users=side.is_members)
        return is_borrowed and any(branch.covers(cost) for branch in mine)

    def _right_inside(self, lease: Lease) -> Right | None:
        """Say by which right it may take a cell of its own project."""
        qos = self._state.qos[lease.qos]
        boosted = self._state.boosts.until_ms
        if (lease.project, lease.user) in boosted and (lease.project, self._request.user) not in boosted:
            return None  # who lost it would ask again, stand before the request, and have it back
        if qos.priority < self._priority:
            return Right.CLASS
        is_alike = qos.priority == self._priority and lease.user != self._request.user
        if not is_alike or not self._shares_inside:
            return None
        if _is_behind_boosted(self._state, self._request):
            return None
        users = self._account.users
        its = has_beside_going(users[lease.user]) - self._taken_of_users.get(lease.user, 0) - lease.cost
        may = users[self._request.user].used + self._cost <= its and not self._is_spared(lease)
        return Right.SHARE if may else None

    def _is_spared(self, lease: Lease) -> bool:
        """Whether a cell, or one of its user that began later and would do, went for a share a short while ago."""
        if self._spared_cache is None:
            self._spared_cache = {}
            for one in spared(self._state):
                self._spared_cache.setdefault((one.project, one.user), []).append(one)
        spares = self._spared_cache.get((lease.project, lease.user), ())
        return any(one is lease or (one.began_ms > lease.began_ms and self._would_do(one)) for one in spares)

    def _would_do(self, lease: Lease) -> bool:
        """Whether a cell leaves enough for the request where it runs, beside those that go on there."""
        shape, node = self._request.entry.shape, self._state.nodes[lease.agent]
        serving = node.serving(shape.lane, shape.wants.kind)
        if sum(slot in serving for slot in lease.slots) < shape.need:
            return False
        others = (self._state.leases[name] for name in node.leases if name != lease.id)
        staying = [one for one in others if one.phase in (Phase.GRANTED, Phase.BUSY)]
        has_cpus = shape.wants.cpus <= node.cpus - sum(one.cpus for one in staying)
        return has_cpus and shape.wants.memory_bytes <= node.memory_bytes - sum(one.memory_bytes for one in staying)

    def take(self, lease: Lease) -> None:
        """Count a cell as chosen."""
        _, others, _ = self._parting(lease.project)
        for branch in others:
            self._taken[branch.name] = self._taken.get(branch.name, 0) + lease.cost
        if not others:
            self._taken_of_users[lease.user] = self._taken_of_users.get(lease.user, 0) + lease.cost

    def stands_before(self, victims: Iterable[Victim]) -> bool:
        """Whether it comes before those whose cells it takes for its share, once these have left.

        A guarantee that is large enough for one of them then must be large enough for the request: who is covered
        comes first, and would take the place that was made. It may have cells of lower classes of its project go, too,
        as the request may where it is of the same project.
        """
        shared = [one for one in victims if one.right is Right.SHARE]
        theirs = [self._accounts.of(one.lease.project) for one in shared]
        inside = [{at.project.id for at in account.path} for account in theirs]
        below = [
            0 if account is self._account else account.used_below(self._state.qos, one.priority)
            for account, one in zip(theirs, shared, strict=True)
        ]
        for at in self._account.path if shared else ():
            chosen = [one.lease.cost for one, names in zip(shared, inside, strict=True) if at.project.id in names]
            left = at.guaranteed - at.used + sum(chosen)
            if self._quota_cost <= left:
                return True
            costs = [
                one.lease.cost - lower
                for one, names, lower in zip(shared, inside, below, strict=True)
                if at.project.id in names
            ]
            if costs and min(costs) <= left:
                return False
        return True

    def victim(self, lease: Lease, now_ms: int) -> Victim | None:
        """Describe a running cell as what it would be to take it; None where that is not its right."""
        right = self.right_to(lease)
        if right is None:
            return None
        account = self._accounts.of(lease.project)
        is_own = account is self._account
        is_elsewhere = not is_own and lease.pool not in self._pools
        is_covered = is_elsewhere and self._state.coverage.is_in_quota(self._accounts, lease)
        overshoot = 0 if is_own else max(0, account.guaranteed - (account.used - account.going) + lease.cost)
        priority, is_spared = self._state.qos[lease.qos].priority, is_own is not self.displaces
        return Victim(is_spared, is_covered, overshoot, priority, lost_by(lease, now_ms), lease.id, lease, right)

    def _has_less(self, mine: Branch, other: Branch, lease: Lease) -> bool:
        """Whether it comes before the victim among those who borrow, and has no more of the surplus than that one then.

        Of the other side only what it has is counted, and not what its requests ahead are to have.
        """
        if self._request.session in lease.took or self._priority < self._state.qos[lease.qos].priority:
            return False
        has_passed = lease.age is not None and other.account.project.id in lease.age.passed_for
        if has_passed and mine.priority > other.priority:  # it had waited for so long, and would begin again and again
            return False
        name = other.name
        if name not in self._surplus_cache:
            self._surplus_cache[name] = other.has - max(0, other.guaranteed)
        its = self._surplus_cache[name] - self._taken.get(name, 0) - lease.cost
        if its < 0 or mine.priority != other.priority:
            return its >= 0 and mine.priority > other.priority
        if name not in self._credits_cache:
            self._credits_cache[name] = self._has_credits(mine, other)
        if not self._credits_cache[name]:
            return False
        return (mine.used + self._cost - max(0, mine.guaranteed)) * other.weight <= its * mine.weight

    def _has_credits(self, mine: Branch, other: Branch) -> bool:
        """Whether one side has as many credits as another one; the state notes when that may change with time alone."""
        now_ms = self._accounts.now_ms
        for trader in (mine.trader, other.trader):
            step_ms = trader.next_step_ms(now_ms)
            if step_ms is not None:
                self._state.wakeups.note(step_ms)
        return mine.trader.standing_at(now_ms) >= other.trader.standing_at(now_ms)


def _is_behind_boosted(state: State, request: Request) -> bool:
    """Whether a request of a user of its project waits whom an admin has boosted: they would have what it takes."""
    boosted, project = state.boosts.until_ms, request.project
    if not boosted or (project, request.user) in boosted:
        return False
    others = (one for one in state.pending.values() if one.project == project and one.hold is None)
    return any((project, one.user) in boosted for one in others)


def gives_back(state: State, account: Account, cost: int, other: Account) -> bool:
    """Whether a project could take back by its guarantee what another one begins now and no guarantee covers."""
    mine, others = parting(account, state.accounts.of(other.project.id))
    return bool(others) and any(branch.will_cover(cost) for branch in mine)
