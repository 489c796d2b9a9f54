"""What of a guarantee is kept for whoever waits, in a class that never borrows, for what goes for them.

Others of its project that begin meanwhile would be in its way: once that has gone it could not start, and would take
from those who have just begun, again and again, or wait until they end.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from gpu_worker.scheduler.accounts.branches import quota_sides
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.placement.caps import full_quota
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
        account, mine = state.accounts.of(other.project), state.accounts.of(request.project)
        if not any(side.account is at for side in quota_sides(account) for at in mine.path):
            return False
        if mine is account and state.qos[request.qos].priority > state.qos[other.qos].priority:
            return False  # a higher class of its project does not wait for it
        with _without(state, other, pool):
            if full_quota(state, account, other.entry.shape):
                return False
            owner = request.project, request.user, request.qos, request.entry.shape.cost
            state.accounts.use(*owner, +1, is_awaited=True)  # of a lower class of its project it borrows from then on
            is_full = bool(full_quota(state, account, other.entry.shape))
            state.accounts.use(*owner, -1, is_awaited=True)
        return is_full


@contextmanager
def _without(state: State, request: Request, pool: str) -> Iterator[None]:
    """Take out what a request is to have that is taken for granted, for a while."""
    owner = request.project, request.user, request.qos, request.entry.shape.cost
    state.accounts.use(*owner, -1, is_awaited=True)
    state.pools.use(pool, *owner, -1)
    try:
        yield
    finally:
        state.accounts.use(*owner, +1, is_awaited=True)
        state.pools.use(pool, *owner, +1)
