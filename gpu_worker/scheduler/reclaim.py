"""Who must give back a GPU that somebody else has more right to: questions only, answered on counts.

A request that its project's guarantee covers may take running cells of projects that use more than their guarantee,
down to that and not below it. The two are compared where their paths in the tree of projects part. Whoever has taken so
is within a guarantee, and whoever has lost is above it by less than a GPU: neither can take it back.

A request that borrows, and has waited for a while, may take running cells from who has more of the surplus for its
weight, as long as it has no more than the other afterwards: each such step makes the division more even, so taking ends
where everybody has a share by weight. One share is compared with another, so nobody need know who wants how much. What
was taken for a share is not taken back for one, whatever happens next. So no two requests ever preempt each other.
"""

import msgspec

from gpu_worker.scheduler.account import Account
from gpu_worker.scheduler.accounts import Accounts
from gpu_worker.scheduler.credits import Trader
from gpu_worker.scheduler.leases import Lease, Request
from gpu_worker.scheduler.life import Phase
from gpu_worker.scheduler.nodes import Node
from gpu_worker.scheduler.projects import GPU_MILLI, Preemption
from gpu_worker.scheduler.resources import Lane
from gpu_worker.scheduler.state import State


class Branch(msgspec.Struct, frozen=True):
    """One side of where two paths part: a project, or those users of one that are in no project inside it."""

    account: Account
    is_members: bool = False

    @property
    def name(self) -> tuple[str, bool]:
        """What no other side is called."""
        return self.account.project.id, self.is_members

    @property
    def weight(self) -> int:
        """By which it shares the surplus with those beside it."""
        return 1 if self.is_members else self.account.project.weight

    @property
    def priority(self) -> int:
        """Who has more of it shares in the surplus first."""
        return 0 if self.is_members else self.account.project.priority

    @property
    def trader(self) -> Trader:
        """Its credits: the project's own, or those of the users that are in no project inside it."""
        return self.account.members if self.is_members else self.account.trader

    @property
    def guaranteed(self) -> int:
        """Of its guarantee what no project inside it has."""
        inside = sum(child.guaranteed for child in self.account.children.values()) if self.is_members else 0
        return self.account.guaranteed - inside

    def covers(self, cost: int) -> bool:
        """Whether so much more would be within its guarantee."""
        return self.used + cost <= self.guaranteed

    @property
    def used(self) -> int:
        """What it uses, also what it was asked to give back."""
        inside = sum(child.used for child in self.account.children.values()) if self.is_members else 0
        return self.account.used - inside

    @property
    def kept(self) -> int:
        """What it uses and was not asked to give back."""
        inside = self.account.children.values() if self.is_members else ()
        return self.account.used - self.account.going - sum(child.used - child.going for child in inside)

    @property
    def has(self) -> int:
        """What it uses and was not asked to give back, without requests that are only taken for granted in this walk.

        It adds up what is hot: its time grows with the number of hot leases.
        """
        has = self.account.held - self.account.leaving - sum(self.account.hot.values())
        inside = self.account.children.values() if self.is_members else ()
        return has - sum(child.held - child.leaving - sum(child.hot.values()) for child in inside)


def is_covered(account: Account, cost: int) -> bool:
    """Whether the users of a project, it, or one that it is in, would be within its guarantee with so much more."""
    return any(branch.covers(cost) for branch in _downwards(account))


def parting(one: Account, other: Account) -> tuple[list[Branch], list[Branch]]:
    """Below the last account that both are in: the branches of each, from the outside in; none of the same account."""
    mine, others = _downwards(one), _downwards(other)
    while mine and others and mine[0].account is others[0].account and mine[0].is_members == others[0].is_members:
        del mine[0], others[0]
    return mine, others


def _downwards(account: Account) -> list[Branch]:
    path = [Branch(at) for at in reversed(list(account.path))]
    return [*path, Branch(account, is_members=True)] if account.children else path


def has_waited(state: State, request: Request) -> bool:
    """Whether the request may take for its share in this step. If it cannot yet, the state notes when to look again."""
    qos, now_ms = state.qos[request.qos], state.accounts.now_ms
    from_ms = request.since_ms + qos.share_after_ms
    if from_ms <= now_ms:
        if state.looks.looks_at_shares():
            return True
        from_ms = now_ms + state.settings.share_every_ms
    state.looks.note(from_ms)
    return False


class VictimSelection:
    """Which running cells a request may take, one after the other; what was chosen counts for those that follow."""

    def __init__(self, state: State, accounts: Accounts, request: Request, *, is_for_share: bool) -> None:
        self._state, self._accounts, self._request, self._is_for_share = state, accounts, request, is_for_share
        self._account, self._cost = accounts.of(request.project), request.entry.shape.cost
        self._taken: dict[tuple[str, bool], int] = {}
        self._has: dict[tuple[str, bool], int] = {}

    def begin(self) -> None:
        """Forget what was chosen: another node is tried."""
        self._taken.clear()

    def takes(self, victim: Lease) -> bool:
        """Whether it may take this one too. If so, it is taken."""
        if not self._cost or not victim.cost:
            return False
        mine, others = parting(self._account, self._accounts.of(victim.project))
        if not mine or not others or mine[0].covers(self._cost) == self._is_for_share:
            return False
        whole = min(GPU_MILLI, victim.cost)  # of a slice nothing is taken from who is within a guarantee
        if any(self._kept(branch) - victim.cost <= branch.guaranteed - whole for branch in others):
            return False
        if self._is_for_share and not self._has_less(mine[0], others[0], victim):
            return False
        for branch in others:
            self._taken[branch.name] = self._taken.get(branch.name, 0) + victim.cost
        return True

    def _has_less(self, mine: Branch, other: Branch, victim: Lease) -> bool:
        """Whether it comes before the victim among those who borrow, and has no more of the surplus than that one then.

        Of the other side only what it has is counted, and not what its requests ahead are to have.
        """
        state, now_ms = self._state, self._state.accounts.now_ms
        if self._request.session in victim.took:
            return False
        if state.qos[self._request.qos].priority < state.qos[victim.qos].priority:
            return False
        if other.name not in self._has:
            self._has[other.name] = other.has
        its = self._has[other.name] - self._taken.get(other.name, 0) - victim.cost - max(0, other.guaranteed)
        if its < 0 or mine.priority != other.priority:
            return its >= 0 and mine.priority > other.priority
        if mine.trader.standing_at(now_ms) < other.trader.standing_at(now_ms):
            return False
        return (mine.used + self._cost - max(0, mine.guaranteed)) * other.weight <= its * mine.weight

    def _kept(self, branch: Branch) -> int:
        return branch.kept - self._taken.get(branch.name, 0)


def takeable(state: State, node: Node, lane: Lane) -> list[Lease]:
    """List running cells of a node that may be reclaimed from somebody, the one that costs least to interrupt first.

    Of those that are too young the state notes when to look again.
    """
    now_ms = state.accounts.now_ms
    able: list[Lease] = []
    for lease in map(state.leases.__getitem__, node.leases):
        from_ms = _reclaimable_ms(state, lease) if lease.phase is Phase.BUSY and lease.lane == lane else None
        if from_ms is not None and from_ms <= now_ms:
            able.append(lease)
        elif from_ms is not None:
            state.looks.note(from_ms)
    return sorted(able, key=lambda one: ((now_ms - one.since_ms) * len(one.slots), one.id))


def _reclaimable_ms(state: State, lease: Lease) -> int | None:
    """From when a running cell may be reclaimed, by its QoS; None is never."""
    qos = state.qos.get(lease.qos)
    return None if qos is None or qos.preemption is Preemption.NEVER else lease.since_ms + qos.min_runtime_ms
