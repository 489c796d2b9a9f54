"""Where a cell of a class that never borrows may start, as far as guarantees go: in which node pools, or in none.

What a project is guaranteed of a node pool is there for all its cells, whatever it uses elsewhere. So what it uses in
such a class elsewhere is within what it is guaranteed beyond its node pools: else it would use more than its guarantee
as soon as others of its cells are at home, too, and whoever is owed that could not take it back.
"""

from collections.abc import Mapping

from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.branches import all_inside, lacks_of_quota
from gpu_worker.scheduler.accounts.pool_accounts import PoolAccounts
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.policy.projects import Preemption

#: The place of all that is in no node pool.
ELSEWHERE = ""

Pools = Mapping[str, PoolAccounts]


def quota_places(
    pools: Pools, accounts: Accounts, account: Account, shape: Shape, *, is_in_whole: bool, with_hot: bool = False
) -> tuple[str, ...]:
    """List the node pools, and `ELSEWHERE`, where such a request may start as far as its class never borrows.

    `is_in_whole` says whether it is within the whole guarantee; at home it may be without: what others of the project
    use elsewhere borrows from then on. `with_hot` counts what hot leases of such classes keep.
    """
    serving = [name for name, one in pools.items() if one.serves(shape)]
    if not is_in_whole:
        serving = [name for name in serving if _is_home(pools, accounts, account, shape, name, with_hot=with_hot)]
    places = [ELSEWHERE, *serving] if is_in_whole else serving
    return tuple(
        name
        for name in places
        if all(not _is_too_much(pools, accounts, at, shape, name, with_hot=with_hot) for at in account.payer.path)
    )


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
    return _used_elsewhere(pools, accounts, account, with_hot=True) > beyond_homes(pools, account)


def _is_home(pools: Pools, accounts: Accounts, account: Account, shape: Shape, name: str, *, with_hot: bool) -> bool:
    """Whether a request is within what its payer is guaranteed of a pool, with all of such classes that it has."""
    payer, there = account.payer, pools[name].accounts.of(account.project.id)
    # What is guaranteed in pools is there, however much more is guaranteed elsewhere than there is.
    at_home = sum(one.accounts.of(payer.project.id).guaranteed for one in pools.values())
    whole = max(payer.guaranteed, at_home)
    in_all = _used(accounts, payer) + (payer.committed if with_hot else 0)
    if there.payer.project.id != payer.project.id or in_all + shape.cost > whole:
        return False
    hot = pools[name].hot_in_quota.get(payer.project.id, 0) if with_hot else 0
    below = there.used_below(accounts.qos, accounts.qos[shape.qos].priority, may_borrow=True)
    return lacks_of_quota(there, shape.cost + hot, below=below) <= 0


def _is_too_much(pools: Pools, accounts: Accounts, at: Account, shape: Shape, name: str, *, with_hot: bool) -> bool:
    """Whether a request in a place would use more of what a project is guaranteed beside its pools than there is."""
    if not any(one.accounts.of(at.project.id).promised for one in pools.values()):
        return False
    before = _used_elsewhere(pools, accounts, at, shape, with_hot=with_hot)
    after = _used_elsewhere(pools, accounts, at, shape, name, with_hot=with_hot)
    return after > max(before, beyond_homes(pools, at))


def _used_elsewhere(
    pools: Pools,
    accounts: Accounts,
    at: Account,
    shape: Shape | None = None,
    place: str | None = None,
    *,
    with_hot: bool,
) -> int:
    """Sum up what a project uses in classes that never borrow beside what is guaranteed to it in pools.

    With a request in a place, where that is named. Cells of a lower class than that of `shape` may be ended for it.
    """
    more = shape.cost if shape is not None else 0
    inside = 0
    for name, one in pools.items():
        there = one.accounts.of(at.project.id)
        used = _used(one.accounts, there, shape) + (one.hot_in_quota.get(at.project.id, 0) if with_hot else 0)
        inside += min(used + (more if name == place else 0), there.guaranteed)
    used = _used(accounts, at, shape) + (at.committed if with_hot else 0)
    return used + (more if place is not None else 0) - inside


def _used(accounts: Accounts, account: Account, shape: Shape | None = None) -> int:
    """Sum up what is used in a project, and inside it, in classes that never borrow and need not make way for one."""
    total = 0
    for one in all_inside(account):
        for name, used in one.by_qos.items():
            qos = accounts.qos.get(name)
            if qos is not None and qos.must_be_in_quota:
                asked = accounts.qos[shape.qos] if shape is not None else qos
                is_below = qos.priority < asked.priority and qos.preemption is not Preemption.NEVER
                total += 0 if is_below else used
    return total
