"""What of a guarantee is kept for whoever waits, in a class that never borrows, for what goes for them.

Others of its project that begin meanwhile would be in its way: once that has gone it could not start, and would take
from those who have just begun, again and again, or wait until they end. A hot session begins without asking: it leaves.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

from gpu_worker.scheduler.accounts.branches import is_covered, quota_sides
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.placement.caps import full_quota
from gpu_worker.scheduler.placement.keep_time import is_kept_from
from gpu_worker.scheduler.state import State


class KeptQuota:
    """Those for whom room is made in this walk, of classes that never borrow."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._served: list[tuple[Request, str]] = []  #: each with the node pool in which it is to run

    def note(self, request: Request, pool: str) -> None:
        """Room is made for a request."""
        if request.entry.shape.cost and self._state.qos[request.qos].must_be_in_quota:
            self._served.append((request, pool))

    def is_kept_from(self, request: Request) -> bool:
        """Whether a request would have, beside what covers it, what one of these needs of a guarantee."""
        state, shape = self._state, request.entry.shape
        if not self._served or not shape.cost or state.is_covered(request):
            return False
        if state.qos[request.qos].must_be_in_quota:  # it finds no room in the guarantee beside them
            return False
        return any(self._is_in_way(request, one, pool) for one, pool in self._served)

    def _is_in_way(self, request: Request, other: Request, pool: str) -> bool:
        state = self._state
        if not _may_be_in_way(state, request, other):
            return False
        with _counted(state, other, -1, pool):
            if full_quota(state, state.accounts.of(other.project), other.entry.shape):
                return False
            return self._is_full_with(request, other)

    def hot_in_way(self, request: Request, pool: str) -> tuple[Lease, ...]:
        """List hot leases that would begin cells with what a guarantee has for a request for which cells go.

        It is not counted yet. Those used last stay where not all need to leave.
        """
        state, shape = self._state, request.entry.shape
        if not shape.cost or not state.qos[request.qos].must_be_in_quota:
            return ()
        account = state.accounts.of(request.project)
        hot = [state.leases[name] for name in account.payer.hot]
        in_way = [one for one in hot if _may_borrow(state, one) and _may_be_in_way(state, one, request)]
        if not in_way or full_quota(state, account, shape):
            return ()
        leaving: list[Lease] = []
        alike: set[tuple[str, str, int]] = set()  #: whoever is like one that leaves does, too
        with ExitStack() as staying:
            for lease in reversed(in_way):
                if is_kept_from(state, lease, account, shape.cost):
                    continue
                like = lease.project, lease.qos, lease.cost
                if like in alike or (self._borrows_beside(lease, request, pool) and self._is_full_with(lease, request)):
                    leaving.append(lease)
                    alike.add(like)
                else:
                    staying.enter_context(_counted(state, lease, +1))
        return tuple(reversed(leaving))

    def _borrows_beside(self, lease: Lease, request: Request, pool: str) -> bool:
        """Whether no guarantee would cover the next cell of a hot lease once a request has what it is to have."""
        with _counted(self._state, request, +1, pool):
            return not is_covered(self._state.accounts.of(lease.project), lease.cost)

    def _is_full_with(self, one: Lease | Request, request: Request) -> bool:
        """Whether a guarantee has too little for a request once this one began; lower classes of its project borrow."""
        with _counted(self._state, one, +1):
            return bool(full_quota(self._state, self._state.accounts.of(request.project), request.entry.shape))


def _may_borrow(state: State, lease: Lease) -> bool:
    """Whether the next cell of a hot lease may borrow, and costs something."""
    qos = state.qos.get(lease.qos)
    return qos is not None and not qos.must_be_in_quota and bool(lease.cost)


def _may_be_in_way(state: State, one: Lease | Request, other: Request) -> bool:
    """Whether a cell would use something of what a request of a class that never borrows is guaranteed.

    A higher class of its project does not wait for it.
    """
    account, mine = state.accounts.of(other.project), state.accounts.of(one.project)
    if not any(side.account is at for side in quota_sides(account) for at in mine.path):
        return False
    return mine is not account or state.qos[one.qos].priority <= state.qos[other.qos].priority


@contextmanager
def _counted(state: State, one: Lease | Request, sign: Literal[1, -1], pool: str | None = None) -> Iterator[None]:
    """Count for a while what a request or a hot lease is to have as used; or, with -1, as not; in a node pool, too."""
    owner = one.project, one.user, one.qos, one.cost if isinstance(one, Lease) else one.entry.shape.cost
    back: Literal[1, -1] = -1 if sign > 0 else 1
    state.accounts.use(*owner, sign, is_awaited=True)
    if pool is not None:
        state.pools.use(pool, *owner, sign)
    try:
        yield
    finally:
        state.accounts.use(*owner, back, is_awaited=True)
        if pool is not None:
            state.pools.use(pool, *owner, back)
