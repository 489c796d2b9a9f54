"""What of a guarantee is kept for whoever waits, in a class that never borrows, for what goes for them.

Others of its project that begin meanwhile would be in its way: once that has gone it could not start, and would take
from those who have just begun, again and again, or wait until they end. A hot session begins without asking: it leaves.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal

from bulletin.ids import LeaseId
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
            return self._is_full_with([request], other)

    def hot_in_way(self, request: Request, pool: str) -> tuple[Lease, ...]:
        """List hot leases that would begin cells with what a guarantee has for a request for which cells go.

        It is not counted yet. Those used last stay where not all need to leave. In a busy project that is asked for
        each request, and most find nobody in their way: what is hot is counted together wherever that tells enough.
        """
        state, shape = self._state, request.entry.shape
        if not shape.cost or not state.qos[request.qos].must_be_in_quota:
            return ()
        account = state.accounts.of(request.project)
        every = sum(account.payer.hot.values())
        if not every or full_quota(state, account, shape):
            return ()
        with _counted(state, request, +1, cost=every):  # as if all of it were its own project's, and none lower
            if not full_quota(state, account, shape):
                return ()
        in_way = self._may_be_hot_in_way(request)
        asked = [lease for lease in in_way if not is_kept_from(state, lease, account, shape.cost)]
        leaving = self._leaving(asked, request, pool)
        return tuple(lease for lease in reversed(asked) if lease.id in leaving)

    def _may_be_hot_in_way(self, request: Request) -> Iterator[Lease]:
        """List hot leases that could have something of what a request is guaranteed, those used last at first."""
        state = self._state
        known: dict[tuple[str, str], bool] = {}
        for name in reversed(state.accounts.of(request.project).payer.hot):
            lease = state.leases[name]
            key = lease.project, lease.qos
            if lease.cost and key not in known:
                known[key] = _may_borrow(state, lease) and _may_be_in_way(state, lease, request)
            if lease.cost and known[key]:
                yield lease

    def _leaving(self, rest: list[Lease], request: Request, pool: str) -> set[LeaseId]:
        """Choose who leaves, of hot leases that are in order: whoever is like one that leaves does, too."""
        leaving = set[LeaseId]()
        is_full = False  #: those who stay have too much already
        with ExitStack() as staying:
            while rest and (is_full or self._is_full_with(rest, request)):
                if not is_full:  # those before the first with whom it is full stay
                    counts = range(1, len(rest) + 1)
                    fits = bisect_left(counts, True, key=lambda count: self._is_full_with(rest[:count], request))
                    _count_all(self._state, rest[:fits], staying)
                    rest = rest[fits:]
                if self._borrows_beside(rest[0], request, pool):
                    like = _likeness(rest[0])
                    leaving |= {lease.id for lease in rest if _likeness(lease) == like}
                    rest = [lease for lease in rest if _likeness(lease) != like]
                    continue
                covered = {} if is_full else self._covered_beside_all(rest, request, pool)
                covered.setdefault(rest[0].id, rest[0])
                _count_all(self._state, list(covered.values()), staying)
                rest, is_full = [lease for lease in rest if lease.id not in covered], True
        return leaving

    def _covered_beside_all(self, leases: list[Lease], request: Request, pool: str) -> dict[LeaseId, Lease]:
        """Find those whose next cells are covered even if all of these begin one, and the request has its own."""
        state, known = self._state, dict[str, bool]()
        with ExitStack() as beginning:
            _count_all(state, leases, beginning)
            beginning.enter_context(_counted(state, request, +1, pool))
            for name in {lease.project for lease in leases}:
                known[name] = is_covered(state.accounts.of(name), 0)
        return {lease.id: lease for lease in leases if known[lease.project]}

    def _borrows_beside(self, lease: Lease, request: Request, pool: str) -> bool:
        """Whether no guarantee would cover the next cell of a hot lease once a request has what it is to have."""
        with _counted(self._state, request, +1, pool):
            return not is_covered(self._state.accounts.of(lease.project), lease.cost)

    def _is_full_with(self, several: Sequence[Lease | Request], request: Request) -> bool:
        """Whether a guarantee has too little for a request once these began; lower classes of its project borrow."""
        state, account = self._state, self._state.accounts.of(request.project)
        path = {at.project.id for at in account.path}

        def counts_in(one: Lease | Request) -> Hashable:  # whose, whether inside that, and of its own in which class
            mine = state.accounts.of(one.project)
            at = next(at for at in mine.path if at.project.id in path)
            return at.project.id, at is mine, one.qos if at is mine else ""

        with ExitStack() as beginning:
            _count_all(state, several, beginning, counts_in)
            return bool(full_quota(state, account, request.entry.shape))


def _likeness(lease: Lease) -> tuple[str, str, int]:
    return lease.project, lease.qos, lease.cost


def _count_all(
    state: State,
    several: Sequence[Lease | Request],
    counted: ExitStack,
    counts_in: Callable[[Lease | Request], Hashable] | None = None,
) -> None:
    """Count all of these as used for a while: at once what is of one project and class, or counts in the same."""
    known: dict[tuple[str, str], Hashable] = {}
    alike: dict[Hashable, tuple[Lease | Request, int]] = {}
    for one in several:
        key = one.project, one.qos
        if key not in known:
            known[key] = key if counts_in is None else counts_in(one)
        first, cost = alike.get(known[key], (one, 0))
        alike[known[key]] = first, cost + _cost(one)
    for first, cost in alike.values():
        counted.enter_context(_counted(state, first, +1, cost=cost))


def _cost(one: Lease | Request) -> int:
    return one.cost if isinstance(one, Lease) else one.entry.shape.cost


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
def _counted(
    state: State, one: Lease | Request, sign: Literal[1, -1], pool: str | None = None, *, cost: int | None = None
) -> Iterator[None]:
    """Count for a while what a request or a hot lease is to have as used; or, with -1, as not; in a node pool, too.

    With a cost it is that much, for others that are alike.
    """
    owner = one.project, one.user, one.qos, _cost(one) if cost is None else cost
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
