"""Where a cell of a class that never borrows may start, as far as guarantees go: in which node pools, or in none.

What a project is guaranteed of a node pool is there for all its cells, whatever it uses elsewhere. So what it uses in
such a class elsewhere is within what it is guaranteed beyond its node pools: else it would use more than its guarantee
as soon as others of its cells are at home, too, and whoever is owed that could not take it back.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.branches import all_inside, lacks_of_quota
from gpu_worker.scheduler.accounts.pool_accounts import PoolAccounts
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.policy.projects import Preemption

#: The place of all that is in no node pool.
ELSEWHERE = ""

Pools = Mapping[str, PoolAccounts]


class Once(Enum):
    """As of when it is asked where a request may start: what other cells of classes that never borrow have left."""

    NOW = "nothing"
    GONE = "what goes of its project, as far as that is for such a request"
    ENDED = "what a lower class has, which may be ended for it"
    SHARED = "that, and what its own class has, which may be ended for a share"


def quota_places(
    pools: Pools,
    accounts: Accounts,
    account: Account,
    shape: Shape,
    *,
    is_in_whole: bool,
    with_hot: bool = False,
    once: Once = Once.NOW,
    parts: int = 0,
) -> tuple[str, ...]:
    """List the node pools, and `ELSEWHERE`, where such a request may start as far as its class never borrows.

    `is_in_whole` says whether it is within the whole guarantee; at home it may be without: what others of the project
    use elsewhere borrows from then on. `with_hot` counts what hot leases of such classes keep; so much of what others
    have does not count as they may give up as `parts`.
    """
    serving = [name for name, one in pools.items() if one.serves(shape)]
    if not is_in_whole:
        serving = [name for name in serving if _is_home(pools, accounts, account, shape, name, once, with_hot=with_hot)]
    places = [ELSEWHERE, *serving] if is_in_whole else serving
    books = _Books(pools, accounts, account, shape, once, with_hot=with_hot)
    return tuple(name for name in places if all(books.lacks(at, name) <= parts for at in account.payer.path))


def lacks_in_places(
    pools: Pools, accounts: Accounts, account: Account, shape: Shape
) -> Iterator[tuple[str, Account, int, tuple[str, ...]]]:
    """List for each place how much of a project's cells must leave before a request starts there, and of which places.

    That is beside what goes: the place, a project that pays, thousandths of a GPU, and where else its cells would do.
    """
    books = _Books(pools, accounts, account, shape, Once.GONE)
    for place in (ELSEWHERE, *(name for name, one in pools.items() if one.serves(shape))):
        for at in account.payer.path:
            lacks = books.lacks(at, place)
            if lacks > 0:
                yield place, at, lacks, tuple(books.over_in(at, place))


def beyond_homes(pools: Pools, account: Account) -> int:
    """Compute what a project is guaranteed beside its node pools; thousandths of a GPU."""
    return max(0, account.guaranteed - sum(one.accounts.of(account.project.id).guaranteed for one in pools.values()))


def never_there(pools: Pools, account: Account, shape: Shape) -> tuple[int, tuple[str, ...]] | None:
    """Tell whether no place of a project would ever do for a request, as it is neither at home nor within the rest.

    That is how much of the guarantee is beside its node pools, at most, and which these are; None where it could start.
    """
    homes = {name: one.accounts.of(account.project.id).promised for name, one in pools.items()}
    homes = {name: promised for name, promised in homes.items() if promised}
    beside = max(0, account.most - sum(homes.values()))
    needs = (max(0, shape.cost - promised) for name, promised in homes.items() if pools[name].could_serve(shape))
    if not homes or min(needs, default=shape.cost) <= beside:
        return None
    return beside, tuple(homes)


def holds_too_much_elsewhere(pools: Pools, accounts: Accounts, account: Account) -> bool:
    """Tell whether a project has more in classes that never borrow, hot leases included, than beside its pools."""
    if not any(one.accounts.of(account.project.id).promised for one in pools.values()):
        return False
    return _used_elsewhere(pools, accounts, account) > beyond_homes(pools, account)


def _is_home(
    pools: Pools, accounts: Accounts, account: Account, shape: Shape, name: str, once: Once, *, with_hot: bool
) -> bool:
    """Whether a request is within what its payer is guaranteed of a pool, with all of such classes that it has."""
    payer, there = account.payer, pools[name].accounts.of(account.project.id)
    # What is guaranteed in pools is there, however much more is guaranteed elsewhere than there is.
    at_home = sum(one.accounts.of(payer.project.id).guaranteed for one in pools.values())
    whole = max(payer.guaranteed, at_home)
    priority = accounts.qos[shape.qos].priority
    in_all = _used(accounts, payer) + (payer.committed if with_hot else 0)
    in_all -= account.leaves_to(accounts.qos, priority, firm_alone=True) if once is Once.GONE else 0
    if there.payer.project.id != payer.project.id or in_all + shape.cost > whole:
        return False
    hot = pools[name].hot_in_quota.get(payer.project.id, 0) if with_hot else 0
    below = there.used_below(accounts.qos, priority, may_borrow=True)
    below += there.leaves_to(accounts.qos, priority) if once is Once.GONE else 0
    return lacks_of_quota(there, shape.cost + hot, below=below) <= 0


class _Books:
    """What is used in classes that never borrow, seen by one request: in all, and in each node pool."""

    def __init__(
        self, pools: Pools, accounts: Accounts, account: Account, shape: Shape, once: Once, *, with_hot: bool = False
    ) -> None:
        self._pools, self._accounts, self._account, self._shape = pools, accounts, account, shape
        self._once, self._with_hot = once, with_hot

    def lacks(self, at: Account, place: str) -> int:
        """Compute how much more the request in a place would use beside a project's pools than is guaranteed there.

        Nothing where that is no more than before.
        """
        if not any(one.accounts.of(at.project.id).promised for one in self._pools.values()):
            return 0
        after = self._elsewhere(at, place)
        return 0 if after <= self._elsewhere(at) else max(0, after - beyond_homes(self._pools, at))

    def over_in(self, at: Account, place: str) -> Iterator[str]:
        """List the places where cells of a project count as beside its pools, with the request in a place."""
        yield ELSEWHERE
        for name, one in self._pools.items():
            there = one.accounts.of(at.project.id)
            if self._in_pool(at, name) + (self._shape.cost if name == place else 0) > there.guaranteed:
                yield name

    def _elsewhere(self, at: Account, place: str | None = None) -> int:
        """Sum up what a project uses beside what is guaranteed to it in pools, with the request in a place, if any."""
        more = self._shape.cost
        inside = 0
        for name, one in self._pools.items():
            used = self._in_pool(at, name) + (more if name == place else 0)
            inside += min(used, one.accounts.of(at.project.id).guaranteed)
        used = self._used(self._accounts, at) + (at.committed if self._with_hot else 0)
        return used + (more if place is not None else 0) - inside

    def _in_pool(self, at: Account, name: str) -> int:
        one = self._pools[name]
        hot = one.hot_in_quota.get(at.project.id, 0) if self._with_hot else 0
        return self._used(one.accounts, one.accounts.of(at.project.id)) + hot

    def _used(self, accounts: Accounts, account: Account) -> int:
        """Sum up what is used in a project, and inside it, beside what will have left by then."""
        priority = self._accounts.qos[self._shape.qos].priority
        below = {Once.ENDED: priority, Once.SHARED: priority + 1}.get(self._once)
        total = _used(accounts, account, below)
        if self._once is Once.GONE:
            own = accounts.of(self._account.project.id)
            total -= own.leaves_to(self._accounts.qos, priority, firm_alone=True)
        return total


def _used(accounts: Accounts, account: Account, below: int | None = None) -> int:
    """Sum up what is used in a project, and inside it, in classes that never borrow.

    With a priority it is without that of classes below it which may be ended.
    """
    total = 0
    for one in all_inside(account):
        for name, used in one.by_qos.items():
            qos = accounts.qos.get(name)
            if qos is not None and qos.must_be_in_quota:
                is_below = below is not None and qos.priority < below
                total += 0 if is_below and qos.preemption is not Preemption.NEVER else used
    return total


def _used_elsewhere(pools: Pools, accounts: Accounts, at: Account) -> int:
    """Sum up what a project uses in such classes, hot leases included, beside what is guaranteed to it in pools."""
    inside = 0
    for one in pools.values():
        there = one.accounts.of(at.project.id)
        inside += min(_used(one.accounts, there) + one.hot_in_quota.get(at.project.id, 0), there.guaranteed)
    return _used(accounts, at) + at.committed - inside
