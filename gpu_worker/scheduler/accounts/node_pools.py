"""Who has what of a node pool: what projects are guaranteed on some slots, beside what they are anywhere.

Each pool has accounts of its own, in the same tree, of what runs on its slots alone. What a project is guaranteed in a
pool is part of its whole guarantee. It is given back there by whoever has more of the pool than is guaranteed to them
there, also if another guarantee covers them: that one is of any GPU, so they find another.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from bulletin.ids import AgentId, ProjectId, UserName
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.branches import Branch, has_room, is_covered
from gpu_worker.scheduler.accounts.held_amounts import commits, count_replaced
from gpu_worker.scheduler.accounts.pool_accounts import PoolAccounts
from gpu_worker.scheduler.accounts.quota_places import (
    Once,
    holds_too_much_elsewhere,
    lacks_in_places,
    never_there,
    quota_places,
)
from gpu_worker.scheduler.events import Slot
from gpu_worker.scheduler.leases.leases import USING, Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import SlotKind, lane_of
from gpu_worker.scheduler.leases.shapes import QueueEntry, Shape
from gpu_worker.scheduler.policy.projects import NodePool, Project, QoS

#: How far from home a node of no pool is: behind whatever a department has.
_NO_POOL = 1_000


class NodePools:
    """All pools of the settings. Without any, nothing here costs more than to ask whether there are some."""

    def __init__(
        self, pools: Sequence[NodePool], projects: Iterable[Project], qos: Iterable[QoS], now_ms: int = 0
    ) -> None:
        projects, qos = tuple(projects), tuple(qos)
        self.by_name = {
            pool.name: PoolAccounts(pool, Accounts([_inside(one, pool.name) for one in projects], qos, now_ms))
            for pool in pools
        }

    def __bool__(self) -> bool:
        return bool(self.by_name)

    # --- what is in them

    def begin_step(self, now_ms: int) -> None:
        """Note the time of the step."""
        for one in self.by_name.values():
            one.accounts.now_ms = now_ms

    def offer(self, agent: AgentId, node: str, slots: Iterable[Slot], projects: Accounts) -> None:
        """Note what a node offers from now on: nothing where it is gone or drained.

        What a pool cannot keep of its guarantees, because nodes of it are missing, is taken off its projects alone.
        """
        if not self.by_name:
            return
        slots = tuple(slots)
        inside: dict[str, list[Slot]] = {name: [] for name in self.by_name}
        for slot in slots:
            name = self._find_one(node, slot)
            if name:
                inside[name].append(slot)
        for name, some in inside.items():
            self.by_name[name].offer(agent, tuple(some), len(slots) - len(some))
        projects.lose(self._missing())

    def _missing(self) -> dict[ProjectId, int]:
        """Compute what of each project's guarantees its pools cannot keep now."""
        missing: dict[ProjectId, int] = {}
        for one in self.by_name.values():
            total = sum(account.promised for account in one.accounts.top.values())
            lost = max(0, total - one.accounts.capacity)
            for project, account in one.accounts.by_id.items() if lost else ():
                missing[project] = missing.get(project, 0) + account.promised * lost // total
        return missing

    def _find_one(self, node: str, slot: Slot) -> str:
        """Find the pool of a slot, the first of the file that it fits; empty where it is in none."""
        return next((name for name, one in self.by_name.items() if _is_in(one.pool, node, slot)), "")

    def find(self, node: str, slots: Iterable[Slot]) -> str:
        """Find the pool that all these slots of a node are in; empty where there is none."""
        names = {self._find_one(node, slot) for slot in slots} if self.by_name else {""}
        return names.pop() if len(names) == 1 else ""

    def of(self, agent: AgentId, shape: Shape) -> str:
        """Find the pool in which such a request would be on a node; empty where it is in none."""
        found = (name for name, one in self.by_name.items() if agent in one.slots and one.serves(shape))
        return next(found, "")

    def use(self, pool: str, project: ProjectId, user: UserName, qos: str, cost: int, sign: Literal[1, -1]) -> None:
        """Count so much more, or less, as in use in a pool."""
        if pool in self.by_name:
            self.by_name[pool].accounts.use(project, user, qos, cost, sign)

    def count(self, accounts: Accounts, lease: Lease, sign: Literal[1, -1]) -> None:
        """Count what a lease uses or keeps, more or less, and for whom it goes, in the pool that it is in."""
        if lease.pool not in self.by_name:
            return
        if lease.phase is Phase.HOT and commits(accounts, lease):
            hot = self.by_name[lease.pool].hot_in_quota
            for at in accounts.of(lease.project).path:
                hot[at.project.id] = hot.get(at.project.id, 0) + sign * lease.cost
        if lease.phase in USING:
            self.use(lease.pool, lease.project, lease.user, lease.qos, lease.cost, sign)
            count_replaced(self.by_name[lease.pool].accounts, lease, sign)

    # --- whom they cover

    def serving(self, shape: Shape) -> tuple[str, ...]:
        """List the pools in which such a request could run."""
        return tuple(name for name, one in self.by_name.items() if one.serves(shape)) if self.by_name else ()

    def covering(self, account: Account, shape: Shape, entry: QueueEntry | None = None) -> tuple[str, ...]:
        """List the pools in which a request of a project is within what is guaranteed there.

        An entry of that shape is within it beside what is kept for others of its project.
        """
        return tuple(name for name in self.serving(shape) if self._covers_shape(name, account, shape, entry))

    def _covers_shape(self, pool: str, account: Account, shape: Shape, entry: QueueEntry | None) -> bool:
        """Whether such a request of a project is within what is guaranteed in a pool."""
        accounts = self.by_name[pool].accounts
        there, kept = accounts.of(account.project.id), 0 if entry is None else self.kept_from(pool, account, entry)
        return is_covered(there, accounts.quota_cost(there, shape) + kept)

    def kept_from(self, pool: str, account: Account, entry: QueueEntry) -> int:
        """Find what is kept of a pool, for others of its project or of one that it is in, from a request."""
        one = self.by_name[pool]
        return max(at.kept_there(entry, one.accounts.of(at.project.id).guaranteed, one.serves) for at in account.path)

    def cover_at(self, at: Account, account: Account, shape: Shape) -> bool:
        """Whether such a request of a project is within what it, or one that it is in, is guaranteed in some pool."""
        for name in self.serving(shape):
            accounts = self.by_name[name].accounts
            if accounts.of(at.project.id).covers(accounts.quota_cost(accounts.of(account.project.id), shape)):
                return True
        return False

    def quota_places(
        self,
        accounts: Accounts,
        account: Account,
        shape: Shape,
        *,
        is_in_whole: bool,
        once: Once = Once.NOW,
        with_hot: bool = False,
    ) -> tuple[str, ...]:
        """List where such a request may start as far as its class never borrows."""
        pools = self.by_name
        return quota_places(pools, accounts, account, shape, is_in_whole=is_in_whole, once=once, with_hot=with_hot)

    def may_place(self, accounts: Accounts, account: Account, shape: Shape, *, is_in_whole: bool, parts: int) -> bool:
        """Whether such a request may start anywhere, as far as its class never borrows, once others made way."""
        pools, once = self.by_name, Once.ENDED
        return bool(quota_places(pools, accounts, account, shape, is_in_whole=is_in_whole, once=once, parts=parts))

    def lacks_in_places(
        self, accounts: Accounts, account: Account, shape: Shape
    ) -> Iterator[tuple[str, Account, int, tuple[str, ...]]]:
        """List where cells must leave before such a request starts, beside those that go, as its class never borrows.

        Each is the place, a project that pays, how much, and in which places its cells would do.
        """
        return lacks_in_places(self.by_name, accounts, account, shape)

    def homes_of(self, account: Account) -> tuple[str, ...]:
        """List the pools of which a project is guaranteed something, as the settings say."""
        return tuple(name for name, one in self.by_name.items() if one.accounts.of(account.project.id).promised)

    def never_there(self, account: Account, shape: Shape) -> tuple[int, tuple[str, ...]] | None:
        """Tell what of a project's guarantee is beside which pools, where a request could start in neither."""
        return never_there(self.by_name, account, shape)

    def lack_elsewhere(self, accounts: Accounts, lease: Lease) -> bool:
        """Whether a hot lease of a class that never borrows is not at home, and all such are more than may be there."""
        path = list(accounts.of(lease.project).payer.path)
        if lease.pool in self.by_name:
            there = self.by_name[lease.pool].accounts
            path = [at for at in path if not there.of(at.project.id).promised]
        return any(holds_too_much_elsewhere(self.by_name, accounts, at) for at in path)

    def cover(self, account: Account, shape: Shape, entry: QueueEntry | None = None) -> bool:
        """Whether such a request of a project, or this one, is within what is guaranteed in some pool."""
        return bool(self.by_name) and bool(self.covering(account, shape, entry))

    def covers(self, pool: str, account: Account, cost: int) -> bool:
        """Whether so much more of a pool is within what a project is guaranteed there."""
        return pool in self.by_name and bool(cost) and self._covers(pool, account.project.id, cost)

    def _covers(self, pool: str, project: ProjectId, cost: int) -> bool:
        return is_covered(self.by_name[pool].accounts.of(project), cost)

    def cover_branch(self, branch: Branch, entry: QueueEntry) -> bool:
        """Whether a request of one side of the tree is within what that side is guaranteed in some pool."""
        if not self.by_name:
            return False
        shape = entry.shape
        project = branch.account.project.id
        for name in self.serving(shape):
            there = self.by_name[name].accounts.of(project)
            kept = branch.account.kept_there(entry, there.guaranteed, self.by_name[name].serves)
            if Branch(there, branch.is_members).covers(shape.cost + kept):
                return True
        return False

    def have_room(self, account: Account) -> bool:
        """Whether anything is left of what a project is guaranteed in any pool."""
        return any(has_room(one.accounts.of(account.project.id)) for one in self.by_name.values())

    def agents(self, pools: Iterable[str]) -> frozenset[AgentId]:
        """List the nodes that have slots in one of these pools."""
        return frozenset(agent for name in pools for agent in self.by_name[name].slots)

    def distance(self, account: Account, agent: AgentId, shape: Shape) -> int:
        """Rank a node for a request: one where it is guaranteed pool slots first, then of no pool, then of others'.

        Of those first ones where it is its own project that is, then the one that it is in.
        """
        if not self.by_name:
            return 0
        pool = self.of(agent, shape)
        if not pool:
            return _NO_POOL
        accounts = self.by_name[pool].accounts
        there = accounts.of(account.project.id)
        cost = accounts.quota_cost(there, shape)
        return next((depth for depth, at in enumerate(there.path) if at.covers(cost)), _NO_POOL + 1)

    def together(self) -> Iterator[tuple[str, Accounts]]:
        """List each pool's name and accounts."""
        return ((name, one.accounts) for name, one in self.by_name.items())


def _is_in(pool: NodePool, node: str, slot: Slot) -> bool:
    """Whether a slot is in a pool. What costs nothing beside GPUs, a CPU slot or a user's own, is in none."""
    if lane_of(slot) != "gpu":
        return False
    return node in pool.nodes or (bool(pool.words) and SlotKind(pool.words, is_slice=slot.kind == "mig").serves(slot))


def _inside(project: Project, pool: str) -> Project:
    """Make the project that a pool's accounts have: with what it is guaranteed and lends there, and no other rule."""
    guaranteed: Mapping[str, int] = dict(project.pool_guarantees)
    bare = Project(id=project.id, parent=project.parent, weight=project.weight, priority=project.priority)
    return msgspec.structs.replace(
        bare, guaranteed_milli=guaranteed.get(pool, 0), lending_limit_milli=project.lending_limit_milli
    )
