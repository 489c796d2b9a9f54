"""For whom somebody may have to leave, where nothing is free: seen from the books of projects, without their requests.

Most of those who wait are covered by no guarantee, and have no limit that something hot could fill. Nobody leaves for
them, whatever they ask for. So while nothing is free, a walk need not look at their requests one by one, nor into a
part of the tree where there are only such projects. What is answered holds until the books of the tree change.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from bulletin.ids import ProjectId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.branches import has_room
from gpu_worker.scheduler.accounts.headroom import HeadroomAbove
from gpu_worker.scheduler.accounts.node_pools import NodePools
from gpu_worker.scheduler.leases.shapes import QueueEntry
from gpu_worker.scheduler.queue.basis import Bases, Basis


class Prospects(Protocol):
    """Who might find a running cell to take."""

    @property
    def are_for_shares(self) -> bool:
        """Whether those who borrow might, too, in this step."""

    are_for_borrowers: bool  #: whether cells are still given back for those who borrow, other than in what is full

    def has_waited(self, entry: QueueEntry) -> bool:
        """Whether a request has waited for as long as its class asks before it takes for a share."""

    def has(self, account: Account, entry: QueueEntry, *, is_covered: bool) -> bool:
        """Whether there may be a cell for a request of this project."""

    def may_share(self, account: Account) -> bool:
        """Whether there may be a cell for the share of somebody in a project, or in one inside it, in this step."""

    def may_share_own(self, account: Account) -> bool:
        """Whether there may be one for the share of a project's own users."""

    def part(self, account: Account, entry: QueueEntry) -> int:
        """Compute what a request that has waited may take of one user of its project for its own user's part."""

    def parts_beside(self, account: Account, entry: QueueEntry) -> Mapping[ProjectId | None, int]:
        """Compute what projects beside its own may give up for a request, by each project that both are in."""

    def has_beside(self, account: Account) -> bool:
        """Whether there may be a cell of somebody else for some request of this project that a guarantee covers."""

    def has_own(self, account: Account) -> bool:
        """Whether there may be a cell of the project's own users for some request of theirs of a higher class."""

    def has_borrowed(self) -> bool:
        """Whether there may be a borrowed cell for anybody."""


class Takers(NamedTuple):
    """By what right somebody may have to leave for users of a project, or in it."""

    basis: Basis
    by_guarantee: bool = False  #: something is left of one, so that what others borrow may be taken back
    by_class: bool = False  #: cells of a lower class of their own run
    by_limit: bool = False  #: a limit, budget or guarantee may be full with what is hot


class TakerBook:
    """What is known of each project, and of all that is inside it, with when that was found."""

    def __init__(self, accounts: Accounts, pools: NodePools, bases: Bases) -> None:
        self._accounts, self._pools, self._bases = accounts, pools, bases
        self._own_cache: dict[ProjectId, Takers] = {}
        self._inside_cache: dict[ProjectId, Takers] = {}

    def forget(self, account: Account) -> None:
        """Look anew at a project, and at those that it is in: its line has changed."""
        self._own_cache.pop(account.project.id, None)
        for at in account.path:
            self._inside_cache.pop(at.project.id, None)

    def may_take(self, account: Account, basis: Basis, prospects: Prospects | None) -> bool:
        """Whether somebody may have to leave for some request of a project's own users."""
        if prospects is None:
            return True
        own = self._of_own(account, basis)
        if not prospects.are_for_borrowers:
            return own.by_limit or own.by_guarantee or self._accounts.has_lenders
        return (
            own.by_limit
            or (own.by_guarantee and prospects.has_beside(account))
            or (own.by_class and prospects.has_own(account))
            or prospects.may_share_own(account)
        )

    def may_take_inside(
        self, account: Account, basis: Basis, above: HeadroomAbove, prospects: Prospects | None
    ) -> bool:
        """Whether somebody may have to leave for some request in a project, or in one inside it."""
        if prospects is None:
            return True
        inside = self._of_inside(account, basis, above)
        if not prospects.are_for_borrowers:
            return inside.by_limit or inside.by_guarantee or self._accounts.has_lenders
        by_right = inside.by_limit or inside.by_class or (inside.by_guarantee and prospects.has_borrowed())
        return by_right or prospects.may_share(account)

    def _of_inside(self, account: Account, basis: Basis, above: HeadroomAbove) -> Takers:
        known = self._inside_cache.get(account.project.id)
        if known is None or known.basis != basis:
            every, inside = [self._of_own(account, basis)], self._bases.above_inside(account, above)
            waiting = (child for child in account.children.values() if child.waiting)
            every += [self._of_inside(child, self._bases.of(child, inside), inside) for child in waiting]
            rights = (any(rights) for rights in zip(*(one[1:] for one in every), strict=True))
            known = self._inside_cache[account.project.id] = Takers(basis, *rights)
        return known

    def _of_own(self, account: Account, basis: Basis) -> Takers:
        known = self._own_cache.get(account.project.id)
        if known is None or known.basis != basis:
            known = self._own_cache[account.project.id] = self._find(account, basis)
        return known

    def _find(self, account: Account, basis: Basis) -> Takers:
        if not account.heads:
            return Takers(basis)
        classes = self._accounts.qos
        asked = {(shape.qos, shape.cost) for shape in account.heads}
        of_class = [classes[name] for name in {name: None for name, _ in asked}]
        return Takers(
            basis,
            by_guarantee=bool(account.children) or has_room(account) or self._pools.have_room(account),
            by_class=any(account.used_below(classes, one.priority) for one in of_class) if account.by_qos else False,
            by_limit=account.project.user_limit_milli is not None
            or any(one.running_per_user is not None or one.must_be_in_quota for one in of_class)
            or self.may_be_full(account, max(cost for _, cost in asked)),
        )

    @staticmethod
    def may_be_full(account: Account, cost: int) -> bool:
        """Whether a project's limit or budget may have too little left for a request, with what is hot."""
        return any(
            at.project.budget is not None or (at.limit is not None and at.held + cost > at.limit) for at in account.path
        )
