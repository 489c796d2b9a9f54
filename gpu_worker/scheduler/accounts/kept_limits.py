"""For whom a limit is kept: the request that is late for the longest time, of those that could start then.

One that something else holds back, whatever the limit keeps, would have others wait for nothing: its user has as much
as one may have, or runs as many cells of its class; a limit inside is full with cells that stay; no budget reaches for
it; or no node could hold it before it is drained. A limit further out holds it back no less, but is kept for it, too.

Whom a limit inside holds back has the ones further out as soon as that one lets it through: they are kept from whoever
could not be over by then, so that it does not wait for one limit after the other.
"""

from typing import Protocol

from bulletin.ids import ProjectId, RequestId, UserName
from gpu_worker.scheduler.accounts.account import Account, UsageTotals
from gpu_worker.scheduler.accounts.late_lines import LateRequest
from gpu_worker.scheduler.leases.shapes import QueueEntry, Shape
from gpu_worker.scheduler.policy.allowances import Allowances
from gpu_worker.scheduler.policy.projects import QoS


class HoldingKind(Protocol):
    """What nodes that are alike could hold."""

    @property
    def longest_ms(self) -> int | None:
        """The longest walltime of what is over before such a node is to be drained; None where it is not."""

    def holds(self, shape: Shape) -> bool:
        """Whether such a node could hold such a request, if nothing ran there."""


class AllLimits(Protocol):
    """All that may hold a request back, beside the limits of the projects that it is in."""

    now_ms: int
    changes: int
    uses: int
    qos: dict[str, QoS]
    runs: dict[tuple[UserName, str], UsageTotals]
    by_id: dict[ProjectId, Account]
    allowances: Allowances
    kinds: tuple[HoldingKind, ...]  #: of nodes that are not drained


def first_late(accounts: AllLimits, at: Account) -> RequestId | None:
    """Find for whom a project's limit is kept, if for anybody; once for as long as nothing changes."""
    if not at.late:
        return None
    as_of = accounts.now_ms, accounts.changes, accounts.uses, at.top.changes, accounts.kinds
    if at.first_late_cache is None or at.first_late_cache[0] != as_of:
        at.first_late_cache = as_of, _find(accounts, at)
    return at.first_late_cache[1]


def kept_for_late(accounts: AllLimits, at: Account, account: Account, entry: QueueEntry) -> int:
    """Find what a project's limit keeps from a request of an account in it for others: late, or put first by hand.

    While somebody was put first, others inside lose nothing of what is kept for those who are late.
    """
    by_hand = kept_by_hand(accounts, at, entry) if at is account else 0
    return max(by_hand, _kept_for_those_late(accounts, at, account, entry))


def _kept_for_those_late(accounts: AllLimits, at: Account, account: Account, entry: QueueEntry) -> int:
    first, held = first_late(accounts, at), at.held_inside
    is_before = first is None or _goes_before(at, account, entry, first) or _is_over_before(accounts, at, entry, first)
    kept = 0 if first is None or is_before else at.late[first]
    if held is None or not at.late.get(held.request) or _goes_before(at, account, entry, held.request):
        return kept
    return kept + (held.kept if accounts.now_ms + entry.key.walltime_ms > held.until_ms else 0)


def kept_by_hand(accounts: AllLimits, at: Account, entry: QueueEntry) -> int:
    """Find what a project's limit keeps from a request of its own users for one that an admin put first."""
    first, foremost = at.first_by_hand, at.foremost
    if first is None or foremost is None or foremost.id != first.request or entry.id == first.request:
        return 0
    return 0 if accounts.now_ms + entry.key.walltime_ms <= first.until_ms else first.cost


def may_start_by_hand(accounts: AllLimits, at: Account) -> bool:
    """Whether the request that stands before all others of a project could start if the limit is kept for it."""
    foremost = at.foremost
    if foremost is None or at.limit is None or not foremost.shape.cost:
        return False
    late = LateRequest(at.project.id, foremost.user, foremost.key.walltime_ms, foremost.shape, 0, foremost.key.turn)
    return _Starting(accounts, at).may_start(late)


def kept_for_own_late(accounts: AllLimits, at: Account, account: Account, entry: QueueEntry) -> int:
    """Find what a limit keeps for one of its own project from a request that a guarantee inside the limit covers.

    It stands behind that one, and has others in the limit give back what they borrow.
    """
    first = first_late(accounts, at)
    if first is None or at.late_lines.requests[first].project != account.project.id:
        return 0
    return 0 if _goes_before(at, account, entry, first) else at.late[first]


def _goes_before(at: Account, account: Account, entry: QueueEntry, late: RequestId) -> bool:
    """Whether nothing is kept from a request for a late one: it is that one, or goes before it in its project.

    That is since an admin put it first, or boosted its user, or both are late and alike, and it is first in line.
    """
    if entry.id == late:
        return True
    its = at.late_lines.requests[late]
    if its.project != account.project.id:
        return False
    mine = entry.key.turn, not _is_boosted(account, entry.user)
    others = its.turn, not _is_boosted(account, its.user)
    return mine < others or (mine == others and at.late_lines.is_alike_before(entry, late))


def _is_over_before(accounts: AllLimits, at: Account, entry: QueueEntry, late: RequestId) -> bool:
    """Whether a request would be over, by its walltime, before the project's limit lets a late one through."""
    until = at.late_until
    return until is not None and until[0] == late and accounts.now_ms + entry.key.walltime_ms <= until[1]


def _is_boosted(account: Account, name: UserName) -> bool:
    user = account.users.get(name)
    return user is not None and user.is_boosted


def first_held_inside(accounts: AllLimits, at: Account) -> RequestId | None:
    """Find the request that is late for the longest time if only limits inside a project hold it back, for now."""
    if not at.late or not at.children:
        return None
    first = _find(accounts, at, is_beside_all=False)
    if first is None or first in at.late_lines.placed or first == first_late(accounts, at):
        return None
    return first


def _find(accounts: AllLimits, at: Account, *, is_beside_all: bool = True) -> RequestId | None:
    """Find the first late request that could start: inside the project only beside what runs if it `is_beside_all`."""
    starting = _Starting(accounts, at, is_beside_all=is_beside_all)

    def is_held(shape: Shape) -> bool:
        return any(kind.holds(shape) for kind in accounts.kinds)

    return at.late_lines.foremost(is_held, starting.lets_through, starting.has_left)


class _Starting:
    """Whether limits and budgets, and what is its user's, let a request start that a project's limit is kept for."""

    def __init__(self, accounts: AllLimits, at: Account, *, is_beside_all: bool = True) -> None:
        self._accounts, self._at, self._is_beside_all = accounts, at, is_beside_all
        self._budgets = _BudgetReach(accounts)

    def lets_through(self, shape: Shape, project: ProjectId) -> bool:
        account = self._accounts.by_id[project]
        is_within = _is_within_limits(self._accounts, self._at, account, shape, is_beside_all=self._is_beside_all)
        return is_within and self._budgets.longest_ms(account, shape) > 0

    def has_left(self, late: LateRequest) -> bool:
        account = self._accounts.by_id[late.project]
        is_in_time = late.walltime_ms <= self._budgets.longest_ms(account, late.shape)
        return is_in_time and _is_within_limits_of_user(self._accounts, account, late)

    def may_start(self, late: LateRequest) -> bool:
        return self.lets_through(late.shape, late.project) and self.has_left(late)


def _is_within_limits(accounts: AllLimits, at: Account, account: Account, shape: Shape, *, is_beside_all: bool) -> bool:
    """Whether a request is within limits inside a project, and no limit is less than it needs.

    That is beside what runs there and is not going, nor of a lower class of its own project.
    """
    below, is_inside = account.used_below(accounts.qos, accounts.qos[shape.qos].priority), is_beside_all
    for one in account.path:
        is_inside = is_inside and one is not at
        stays = one.used - one.going - below if is_inside else 0
        if one.limit is not None and stays + shape.cost > one.limit:
            return False
    return True


def _is_within_limits_of_user(accounts: AllLimits, account: Account, late: LateRequest) -> bool:
    """Whether a request is within what its user may use of the project, and run of its class."""
    cost, qos = late.shape.cost, accounts.qos[late.shape.qos]
    runs = accounts.runs.get((late.user, qos.name)) if qos.running_per_user is not None else None
    if qos.running_per_user is not None and runs is not None and runs.used >= qos.running_per_user:
        return False
    limit = accounts.allowances.user_limit_milli(account.project, late.user)
    return not (limit is not None and account.users[late.user].used + cost > limit)


class _BudgetReach:
    """For how long budgets reach once what is hot there has left, asked once of each project and price."""

    def __init__(self, accounts: AllLimits) -> None:
        self._accounts = accounts
        self._longest_cache: dict[tuple[ProjectId, int], float] = {}

    def longest_ms(self, account: Account, shape: Shape) -> float:
        """Compute the longest walltime for which all budgets that a request counts in reach; infinity is no budget."""
        key = account.project.id, shape.charged
        if key not in self._longest_cache:
            lefts = (one.spendable(self._accounts.now_ms, without_hot=True) for one in account.path)
            times = [left // shape.charged for left in lefts if left is not None] if shape.charged else []
            self._longest_cache[key] = min(times, default=float("inf"))
        return self._longest_cache[key]
