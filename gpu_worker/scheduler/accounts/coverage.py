"""Which leases in use are in quota and which are borrowed, as it changes while others start and end.

A guarantee covers leases in the order in which they started, those that fit; leases that their project is guaranteed in
their node pool come first, then those that may not be reclaimed, or never borrow. The innermost project comes first,
and the users of a project that has others inside are a side of their own there, with what is left of its guarantee.
What neither covers, the project itself may, with what it guarantees beyond what is covered inside already, and then the
one that it is in. A cell that may not be reclaimed, or never borrows, and does not fit the users' side comes before
cells of other classes of that side there, too; so does one that does not fit what a project is guaranteed in class
hours alone. What no guarantee covers is borrowed. So who stays within a guarantee is in quota whatever others do, and
no project has more in quota than it is guaranteed itself or by what it is in.

What is borrowed may be reclaimed, also in a department of those inside it, where its own guarantee covers it alone.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from bulletin.ids import LeaseId, ProjectId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.branches import is_covered
from gpu_worker.scheduler.accounts.node_pools import NodePools
from gpu_worker.scheduler.leases.leases import USING, Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.policy.projects import Preemption

#: The precedence of what comes after what may not be reclaimed, or never borrows.
_OTHERS = 2


class _Use(NamedTuple):
    """A lease in use, as a guarantee takes them: the smaller one first."""

    precedence: int  #: 0: covered in its node pool; 1: never taken back, or never borrows; 2: any other
    since_ms: int
    seq: int  #: above those of all that came into use before
    lease: LeaseId
    cost: int  #: thousandths of a GPU


class _CoveredProject(msgspec.Struct):
    """One project: its own leases in use, and which of those here and inside no guarantee up to here covers."""

    own: list[_Use] = []
    borrowed_by_users: frozenset[LeaseId] = frozenset()  #: of its own, what its part beside the projects inside leaves
    rest: list[_Use] = []
    borrowed: frozenset[LeaseId] = frozenset()  #: those of `rest`
    covered: int = 0  #: thousandths of a GPU, here and inside


class Coverage:
    """Follows a scheduler's state step by step, and looks only at projects that a change is in."""

    def __init__(self) -> None:
        self._accounts: Accounts | None = None
        self._turns = 0  #: how often guarantees had changed
        self._projects: dict[ProjectId, _CoveredProject] = {}
        self._uses: dict[LeaseId, tuple[ProjectId, _Use]] = {}
        self._borrowed: dict[ProjectId, dict[LeaseId, None]] = {}  #: by the topmost project
        self._seq = 0
        self._pools: dict[str, Coverage] = {}  #: of node pools, by name
        self._of_pools: NodePools | None = None

    def is_in_quota(self, accounts: Accounts, lease: Lease) -> bool:
        """Whether a lease is covered; of one that is not in use, whether it would be if a cell began now."""
        account = accounts.of(lease.project)
        if lease.id in self._uses:
            return lease.id not in self._borrowed.get(_top(account).project.id, ())
        is_counted = lease.phase is Phase.HOT and never_borrows(accounts, lease.qos)
        cost = 0 if is_counted else lease.cost
        in_pool = self._of_pools is not None and self._of_pools.covers(lease.pool, accounts.of(lease.project), cost)
        return in_pool or self.would_cover(accounts, lease.project, cost)

    def is_borrowed(self, account: Account, lease: LeaseId, *, by_users: bool) -> bool:
        """Whether no guarantee of the project, or of one inside it, covers a lease in use there.

        `by_users` asks of the project's own users alone, beside the projects inside it.
        """
        return lease in self.borrowed_in(account, by_users=by_users)

    def borrowed_in(self, account: Account, *, by_users: bool = False) -> frozenset[LeaseId]:
        """Return the leases of which `is_borrowed` says so."""
        covered = self._projects.get(account.project.id)
        if covered is None:
            return frozenset()
        return covered.borrowed_by_users if by_users else covered.borrowed

    def borrowed_anywhere(self) -> Iterator[frozenset[LeaseId]]:
        """List all sets that `borrowed_in` may return and that are not empty."""
        for covered in self._projects.values():
            yield from (one for one in (covered.borrowed, covered.borrowed_by_users) if one)

    def uses_of(self, account: Account) -> Iterator[LeaseId]:
        """List the leases in use of a project's own users."""
        covered = self._projects.get(account.project.id)
        return iter(()) if covered is None else (use.lease for use in covered.own)

    def uses_in(self, account: Account) -> Iterator[LeaseId]:
        """List the leases in use in a project, and in those inside it."""
        yield from self.uses_of(account)
        for child in account.children.values():
            yield from self.uses_in(child)

    @staticmethod
    def would_cover(accounts: Accounts, project: ProjectId, cost: int) -> bool:
        """Whether so much more, in thousandths of a GPU, would be in quota."""
        return not cost or is_covered(accounts.of(project), cost)

    def in_pool(self, pool: str) -> "Coverage":
        """Return what is covered and borrowed of a node pool alone."""
        return self._pools.setdefault(pool, Coverage())

    def follow(
        self,
        accounts: Accounts,
        leases: Mapping[LeaseId, Lease],
        touched: Iterable[LeaseId],
        pools: NodePools | None = None,
    ) -> dict[LeaseId, bool]:
        """Take in what the step changed: leases in use that are in quota from now on (True), or borrowed.

        Must be called at least once in every step, with all leases that it touched so far. A lease that came into use
        is there only if it is borrowed.
        """
        touched = self._follow_pools(leases, touched, pools) if pools or self._pools else touched
        before: dict[LeaseId, None] = {}
        changed: dict[ProjectId, None] = {}
        if accounts is not self._accounts:  # other settings, so perhaps other trees
            self._accounts, self._projects = accounts, {}
            for borrowed in self._borrowed.values():
                before |= borrowed
            self._borrowed = {}
            for project, use in self._uses.values():
                insort(self._project(project).own, use)
                changed[project] = None
        elif accounts.turns != self._turns:
            changed = dict.fromkeys(self._projects)
        self._turns = accounts.turns
        for name in touched:
            self._place(accounts, name, leases.get(name), changed)
        after: dict[LeaseId, None] = {}
        for top in self._cover([accounts.by_id[project] for project in changed if project in accounts.by_id]):
            before |= self._borrowed.get(top.project.id, {})
            borrowed = dict.fromkeys(use.lease for use in self._project(top.project.id).rest)
            self._borrowed[top.project.id] = borrowed
            after |= borrowed
        turned = {name: True for name in before if name not in after and name in self._uses}
        return turned | {name: False for name in after if name not in before}

    def _follow_pools(
        self, leases: Mapping[LeaseId, Lease], touched: Iterable[LeaseId], pools: NodePools | None
    ) -> dict[LeaseId, None]:
        """Follow each node pool; which leases are to be looked at in all projects together."""
        found = dict.fromkeys(touched)
        if pools is not self._of_pools:
            self._pools, self._of_pools = {}, pools
            found |= dict.fromkeys(self._uses)
        for name, accounts in pools.together() if pools else ():
            inside = {one: leases[one] for one in found if one in leases and leases[one].pool == name}
            found |= dict.fromkeys(self.in_pool(name).follow(accounts, inside, found))
        return found

    def owns(self, lease: Lease) -> bool:
        """Whether a lease is within what its project is guaranteed in its node pool."""
        pool = self._pools.get(lease.pool)
        if pool is None or lease.id not in pool._uses:
            return False
        return all(lease.id not in borrowed for borrowed in pool._borrowed.values())

    def _project(self, project: ProjectId) -> _CoveredProject:
        if project not in self._projects:
            self._projects[project] = _CoveredProject([])
        return self._projects[project]

    def _place(self, accounts: Accounts, name: LeaseId, lease: Lease | None, changed: dict[ProjectId, None]) -> None:
        """Note that a lease is in use, or is not. What costs nothing is in nobody's way."""
        is_used = lease is not None and lease.phase in USING and lease.cost > 0
        known = self._uses.get(name)
        if known is not None:
            project, use = known
            precedence = None if lease is None else self._precedence(accounts, lease)
            if (
                lease is not None
                and is_used
                and (project, *use[:1], use.cost) == (lease.project, precedence, lease.cost)
            ):
                return
            own = self._project(project).own
            del own[bisect_left(own, use)]
            del self._uses[name]
            changed[project] = None
        if lease is not None and is_used:
            if known is None:
                self._seq += 1
                since_ms, seq = lease.began_ms, self._seq
            else:  # it counts in another way now, and has begun when it did
                since_ms, seq = known[1].since_ms, known[1].seq
            use = _Use(self._precedence(accounts, lease), since_ms, seq, name, lease.cost)
            self._uses[name] = lease.project, use
            insort(self._project(lease.project).own, use)
            changed[lease.project] = None

    def _precedence(self, accounts: Accounts, lease: Lease) -> int:
        if self._pools and self.owns(lease):
            return 0
        qos = accounts.qos.get(lease.qos)
        return 1 if qos is not None and (qos.must_be_in_quota or qos.preemption is Preemption.NEVER) else _OTHERS

    def _cover(self, accounts: list[Account]) -> list[Account]:
        """Cover anew in these projects, then in those that they are in. The topmost ones."""
        by_depth: dict[int, dict[ProjectId, Account]] = {}
        for account in accounts:
            path = list(account.path)
            for depth, at in enumerate(reversed(path)):
                by_depth.setdefault(depth, {})[at.project.id] = at
        for depth in sorted(by_depth, reverse=True):
            for account in by_depth[depth].values():
                self._cover_one(account)
        return list(by_depth.get(0, {}).values())

    def _cover_one(self, account: Account) -> None:
        project = self._project(account.project.id)
        inside = [self._projects[child] for child in account.children if child in self._projects]
        users_part = account.guaranteed - sum(child.guaranteed for child in account.children.values())
        covered_inside, wanted = sum(one.covered for one in inside), [use for one in inside for use in one.rest]
        larger = (
            _larger(project.own, users_part, wanted, account.guaranteed - covered_inside) if account.children else []
        )
        by_all = sum(use.cost for use in larger)
        own = [use for use in project.own if use not in larger] if larger else project.own
        by_users, rest = self._cover_for(account, own, users_part, larger)
        project.borrowed_by_users = frozenset(use.lease for use in (*rest, *larger))
        covered_inside += by_users + by_all
        if account.children:
            more, rest = self._cover_for(account, sorted([*rest, *wanted]), account.guaranteed - covered_inside)
            covered_inside += more
        project.covered, project.rest = covered_inside, rest
        project.borrowed = frozenset(use.lease for use in rest)

    def _cover_for(
        self, account: Account, uses: list[_Use], room: int, larger: Sequence[_Use] = ()
    ) -> tuple[int, list[_Use]]:
        """Cover uses in their order by what a project, or its users' side, is guaranteed: how much, and what is left.

        Of a project whose `larger` ones another side covers the others have nothing of this one: it uses more than that
        already. So it is with those that do not fit what is guaranteed in class hours alone: what it is in pays for
        them.
        """
        is_in_hours = account.usual == 0 and account.guaranteed > 0 and account.parent is not None
        if not larger and not is_in_hours:
            return _cover_in_order(uses, room)
        covered, rest = _cover_in_order([use for use in uses if use.precedence < _OTHERS], room)
        beyond = {self._uses[use.lease][0] for use in (*larger, *(rest if is_in_hours else ()))}
        others = [use for use in uses if use.precedence >= _OTHERS]
        inside = [use for use in others if self._uses[use.lease][0] not in beyond]
        more, borrowed = _cover_in_order(inside, room - covered)
        outside = [use for use in others if self._uses[use.lease][0] in beyond]
        return covered + more, [*rest, *borrowed, *outside]


def never_borrows(accounts: Accounts, qos: str) -> bool:
    """Whether a class of service is one whose cells must be in quota."""
    return qos in accounts.qos and accounts.qos[qos].must_be_in_quota


def _larger(own: list[_Use], users_part: int, wanted: list[_Use], room: int) -> list[_Use]:
    """Select those that come before others, and that not the users' part of a guarantee covers, but all of it does.

    `wanted` are those inside that may come before them, and `room` what is left of the whole guarantee for both.
    """
    covered, rest = _cover_in_order([use for use in own if use.precedence < _OTHERS], users_part)
    if not rest:
        return []
    firm = sorted([*rest, *(use for use in wanted if use.precedence < _OTHERS)])
    _, borrowed = _cover_in_order(firm, room - covered)
    return [use for use in rest if use not in borrowed]


def _cover_in_order(uses: Iterable[_Use], room: int) -> tuple[int, list[_Use]]:
    """Cover those that fit `room`, one after the other: how much is covered, and those that are not."""
    covered, rest = 0, list[_Use]()
    for use in uses:
        if covered + use.cost <= room:
            covered += use.cost
        else:
            rest.append(use)
    return covered, rest


def _top(account: Account) -> Account:
    return account if account.parent is None else _top(account.parent)
