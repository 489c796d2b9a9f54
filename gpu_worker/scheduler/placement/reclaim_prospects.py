"""Who might find a running cell to take, as far as that is known without a look at nodes."""

from collections.abc import Mapping
from typing import NamedTuple

from bulletin.ids import LeaseId, ProjectId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.branches import Branch, is_covered
from gpu_worker.scheduler.accounts.parts import sides_beside, sides_in, sides_up
from gpu_worker.scheduler.leases.resources import Lane
from gpu_worker.scheduler.leases.shapes import QueueEntry, Shape
from gpu_worker.scheduler.nodes.node import NodeKind
from gpu_worker.scheduler.placement.reclaimable import (
    borrowed_beside,
    borrowed_in_pools,
    has_beside_going,
    reclaimable,
    spared,
)
from gpu_worker.scheduler.state import State


class Giver(NamedTuple):
    """A side that has something of the surplus: how much, and its smallest borrowed cell of each class's priority."""

    side: Branch
    surplus: int  #: thousandths of a GPU
    costs: tuple[tuple[int, int], ...]


class ReclaimProspects:
    """Answers for one walk of a lane.

    What a request may take runs on nodes of some kinds, of which one must be able to hold it.
    """

    def __init__(self, state: State, lane: Lane) -> None:
        self._state, self._lane = state, lane
        self._of: dict[frozenset[LeaseId], frozenset[NodeKind]] = {}
        self._beside: dict[ProjectId, frozenset[NodeKind]] = {}
        self._own: dict[tuple[ProjectId, int], frozenset[NodeKind]] = {}
        self._borrowed_cache: bool | None = None
        self._parts: dict[tuple[ProjectId, str, int], Mapping[ProjectId | None, int]] = {}
        self._has: dict[tuple[str, bool], int] = {}
        self._most: dict[ProjectId, int] = {}  #: what the user of a project has who has most
        #: What the user of a project keeps who has most without a cell, by the priority of its class.
        self._left_inside: dict[ProjectId, dict[int, int]] = {}
        self._may_share_cache: dict[ProjectId, bool] = {}
        self._shares_cache: dict[tuple[ProjectId, str, int], bool] = {}
        #: By the project that all are in; None is the pool.
        self._givers_cache: dict[ProjectId | None, list[Giver]] = {}
        self.are_for_borrowers = True
        self.are_for_shares = state.wakeups.is_for_shares and _has_anybody_waited(state)
        state.follow_coverage()
        #: Those that may go for a share now: of the others the state notes when to look again, whoever is looked at.
        self._may_go: set[LeaseId] = set()
        if self.are_for_shares:
            self._may_go = reclaimable(state, lane).difference(lease.id for lease in spared(state))

    def has(self, account: Account, entry: QueueEntry, *, is_covered: bool) -> bool:
        """Whether there may be a cell for a request of this project."""
        if not is_covered and not self.are_for_borrowers:
            return self._state.accounts.has_lenders  # what they keep is given back without a look at who is next
        shape, qos = entry.shape, self._state.qos[entry.shape.qos]
        shares = self.are_for_shares and self.has_waited(entry)
        beside = is_covered or (shares and self._has_share_beside(account, shape))
        if beside and any(kind.holds(shape) for kind in self._kinds_beside(account)):
            return True
        shares = shares and self._has_share_inside(account, entry)
        if not shares and not account.used_below(self._state.qos, qos.priority):
            return False
        return any(kind.holds(shape) for kind in self._kinds_own(account, qos.priority + shares))

    def _has_share_beside(self, account: Account, shape: Shape) -> bool:
        """Whether a project beside its own, or beside one that it is in, may have a cell to give up for a share."""
        key = account.project.id, shape.qos, shape.cost
        if key not in self._shares_cache:
            is_own = is_covered(account, self._state.accounts.quota_cost(account, shape))  # it takes by its guarantee
            self._shares_cache[key] = not is_own and any(
                self._may_give_up(self._givers(above), mine, shape) for mine, above in sides_up(account)
            )
        return self._shares_cache[key]

    def may_share(self, account: Account) -> bool:
        """Whether there may be a cell for the share of somebody in a project, or in one inside it, in this step."""
        if not self.are_for_shares:
            return False
        return self.may_share_own(account) or any(
            self.may_share(child) for child in account.children.values() if child.waiting
        )

    def may_share_own(self, account: Account) -> bool:
        """Whether there may be one for the share of a project's own users."""
        name = account.project.id
        if self.are_for_shares and name not in self._may_share_cache:
            self._may_share_cache[name] = any(
                self._keeps_inside(account, shape) >= shape.cost or self._has_share_beside(account, shape)
                for shape in account.heads
            )
        return self.are_for_shares and self._may_share_cache[name]

    def _has_share_inside(self, account: Account, entry: QueueEntry) -> bool:
        """Whether another user of its project keeps, without a cell of its class, as much as its user would have."""
        return account.users[entry.user].used + entry.shape.cost <= self._keeps_inside(account, entry.shape)

    def _keeps_inside(self, account: Account, shape: Shape) -> int:
        """Compute what the user of a project keeps who has most without one of their cells in a request's class."""
        name, priority = account.project.id, self._state.qos[shape.qos].priority
        if name not in self._left_inside:
            left = self._left_inside[name] = dict[int, int]()
            own = self._may_go.intersection(self._state.coverage.uses_of(account))
            for lease in map(self._state.leases.__getitem__, own):
                at, keeps = self._state.qos[lease.qos].priority, has_beside_going(account.users[lease.user])
                left[at] = max(keeps - lease.cost, left.get(at, 0))
        return self._left_inside[name].get(priority, 0)

    def _givers(self, above: Account | None) -> list[Giver]:
        """List the sides in a project, or at the top, that have something of the surplus which may be given up now.

        Those of less priority come first, then those that have more of it for their weight.
        """
        name = None if above is None else above.project.id
        if name not in self._givers_cache:
            found = self._givers_cache[name] = list[Giver]()
            old, leases = self._may_go, self._state.leases
            for side in sides_in(self._state.accounts, above):
                its = side.has - max(0, side.guaranteed) if side.used > side.guaranteed else 0
                borrowed = self._state.coverage.borrowed_in(side.account, by_users=side.is_members) if its > 0 else ()
                costs: dict[int, int] = {}
                for lease in map(leases.__getitem__, old.intersection(borrowed)):
                    priority = self._state.qos[lease.qos].priority
                    costs[priority] = min(lease.cost, costs.get(priority, lease.cost))
                if costs:
                    found.append(Giver(side, its, tuple(costs.items())))
            found.sort(key=lambda one: (one.side.priority, -one.surplus / one.side.weight))
        return self._givers_cache[name]

    def _may_give_up(self, givers: list[Giver], mine: Branch, shape: Shape) -> bool:
        """Whether one of these sides keeps, without a cell, as much of the surplus for its weight as one would have.

        Where credits alone say no, the state notes when they change.
        """
        highest, part = self._state.qos[shape.qos].priority, mine.used + shape.cost - max(0, mine.guaranteed)
        for side, surplus, every in givers:
            is_alike = side.priority == mine.priority
            if side.priority > mine.priority or (is_alike and part * side.weight > surplus * mine.weight):
                return False  # nor has any of those that follow
            costs = [cost for priority, cost in every if priority <= highest]
            if side.name == mine.name or not costs:
                continue
            keeps = surplus - min(costs)
            if keeps >= 0 and not is_alike:
                return True
            if is_alike and part * side.weight <= keeps * mine.weight and self._has_credits(mine, side):
                return True
        return False

    def _has_credits(self, mine: Branch, side: Branch) -> bool:
        """Whether a side has as many credits as another one; else the state notes when that may change."""
        now_ms = self._state.accounts.now_ms
        if mine.trader.standing_at(now_ms) >= side.trader.standing_at(now_ms):
            return True
        for trader in (mine.trader, side.trader):
            step_ms = trader.next_step_ms(now_ms)
            if step_ms is not None:
                self._state.wakeups.note(step_ms)
        return False

    def part(self, account: Account, entry: QueueEntry) -> int:
        """Compute what a request that has waited may take of one user of its project for its own user's part.

        In thousandths of a GPU.
        """
        name = account.project.id
        if name not in self._most:
            self._most[name] = max(map(has_beside_going, account.users.values()))
        return max(0, self._most[name] - account.users[entry.user].used - entry.shape.cost)

    def parts_beside(self, account: Account, entry: QueueEntry) -> Mapping[ProjectId | None, int]:
        """Compute what projects beside its own may give up for a request, by each project that both are in.

        That is at most what those have of the surplus that have more of it for their weight. None is the pool.
        """
        accounts, shape = self._state.accounts, entry.shape
        key = account.project.id, shape.qos, shape.cost
        if key not in self._parts:
            found, total = dict[ProjectId | None, int](), 0
            is_own = is_covered(account, accounts.quota_cost(account, shape))  # it takes by its guarantee
            for mine, others, name in () if is_own else sides_beside(accounts, account):
                total += sum(self._more_than(mine, other, shape.cost) for other in others)
                if total:
                    found[name] = total
            self._parts[key] = found
        return self._parts[key]

    def _more_than(self, mine: Branch, other: Branch, cost: int) -> int:
        """Compute what another side has of the surplus, if that is more than one has with so much more; else 0."""
        if mine.priority < other.priority or other.used <= other.guaranteed:
            return 0
        if other.name not in self._has:
            self._has[other.name] = other.has
        its = self._has[other.name] - max(0, other.guaranteed)
        is_more = (mine.used + cost - max(0, mine.guaranteed)) * other.weight < its * mine.weight
        return max(0, its) if is_more or mine.priority > other.priority else 0

    def has_beside(self, account: Account) -> bool:
        """Whether there may be a cell of somebody else for some request of this project that a guarantee covers."""
        return self.has_borrowed() and bool(self._kinds_beside(account))

    def has_own(self, account: Account) -> bool:
        """Whether there may be a cell of the project's own users for some request of theirs of a higher class."""
        highest = max(qos.priority for qos in self._state.qos.values())
        return bool(self._kinds_own(account, highest + 1))

    def has_borrowed(self) -> bool:
        """Whether there may be a borrowed cell for anybody."""
        if self._borrowed_cache is None:
            state = self._state
            every = [state.coverage, *(state.coverage.in_pool(name) for name in state.pools.by_name)]
            self._borrowed_cache = any(
                not borrowed.isdisjoint(reclaimable(state, self._lane))
                for coverage in every
                for borrowed in coverage.borrowed_anywhere()
            )
        return self._borrowed_cache

    def has_waited(self, entry: QueueEntry) -> bool:
        """Whether a request has waited for as long as its class asks; else the state notes when it will have."""
        state = self._state
        from_ms = state.pending[entry.id].since_ms + state.qos[entry.shape.qos].share_after_ms
        if from_ms > state.accounts.now_ms:
            state.wakeups.note(from_ms)
        return from_ms <= state.accounts.now_ms

    def _kinds_beside(self, account: Account) -> frozenset[NodeKind]:
        """Kinds of nodes where others run what is borrowed, seen from a project."""
        name = account.project.id
        if name not in self._beside:
            pools = tuple(self._state.pools.by_name)
            sides = [*borrowed_beside(self._state, account), *borrowed_in_pools(self._state, account, pools)]
            self._beside[name] = frozenset(kind for borrowed in sides for kind in self._kinds(borrowed))
        return self._beside[name]

    def _kinds_own(self, account: Account, below: int) -> frozenset[NodeKind]:
        """Kinds of nodes where the project's users run cells of a class of lower priority than this."""
        key, state = (account.project.id, below), self._state
        if key not in self._own:
            own = [state.leases[name] for name in state.coverage.uses_of(account)]
            lower = frozenset(one.id for one in own if one.qos in state.qos and state.qos[one.qos].priority < below)
            self._own[key] = self._kinds(lower)
        return self._own[key]

    def _kinds(self, leases: frozenset[LeaseId]) -> frozenset[NodeKind]:
        """Kinds of nodes where one of these leases is, of those that may be reclaimed now."""
        if not leases:
            return frozenset()
        if leases not in self._of:
            state = self._state
            found = reclaimable(state, self._lane) & leases
            self._of[leases] = frozenset(state.nodes[state.leases[name].agent].kind for name in found)
        return self._of[leases]


def _has_anybody_waited(state: State) -> bool:
    """Whether the first of those who wait has done so for as long as any class asks before it takes for a share.

    Who came later has waited for no longer. When that will be is noted once for all of them, not for each.
    """
    first = next(iter(state.pending.values()), None)
    shortest_ms = min((qos.share_after_ms for qos in state.qos.values()), default=0)
    return first is not None and first.since_ms + shortest_ms <= state.accounts.now_ms
