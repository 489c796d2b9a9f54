"""Which running cells may be reclaimed now, and which are borrowed, seen from a project."""

from collections.abc import Iterable, Iterator

from bulletin.ids import LeaseId
from bulletin.units import MINUTE_MS
from gpu_worker.scheduler.accounts.account import Account, User
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.coverage import Coverage
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import Lane
from gpu_worker.scheduler.policy.projects import Preemption
from gpu_worker.scheduler.state import State

#: A cell goes for shares again and again: how long it runs between two times, at most.
_LONGEST_MS = 30 * MINUTE_MS
#: After so many times it is that for any `min_runtime` that is not 0.
_MOST_TIMES = 24


def borrowed_in_pools(state: State, account: Account, pools: Iterable[str]) -> Iterator[frozenset[LeaseId]]:
    """List what others have of these node pools beyond what they are guaranteed there."""
    for name in pools:
        accounts = state.pools.by_name[name].accounts
        yield from _sides(state.coverage.in_pool(name), accounts, accounts.of(account.project.id))


def borrowed_beside(state: State, account: Account) -> Iterator[frozenset[LeaseId]]:
    """List what is borrowed, seen from where the path of others parts from a project's: side by side."""
    yield from _sides(state.coverage, state.accounts, account)


def _sides(coverage: Coverage, accounts: Accounts, account: Account) -> Iterator[frozenset[LeaseId]]:
    siblings = list(account.children.values())
    for at in account.path:
        for side in siblings:
            yield coverage.borrowed_in(side)
        above = at.parent
        beside = accounts.top if above is None else above.children
        siblings = [one for one in beside.values() if one is not at]
        if above is not None:
            yield coverage.borrowed_in(above, by_users=True)
    for side in siblings:
        yield coverage.borrowed_in(side)


def reclaimable(state: State, lane: Lane) -> set[LeaseId]:
    """Select the running cells that their class lets be reclaimed now.

    Of younger ones the state notes when that will be. It is worked out once in a step, and anew when a cell began.
    """
    if lane not in state.reclaimable:
        running = [lease for lease in state.leases.values() if lease.lane == lane and lease.phase is Phase.BUSY]
        from_ms = {
            lease.id: lease.began_ms + qos.min_runtime_ms
            for lease in running
            if (qos := state.qos.get(lease.qos)) is not None and qos.preemption is not Preemption.NEVER
        }
        now_ms = state.accounts.now_ms
        young = [at_ms for at_ms in from_ms.values() if at_ms > now_ms]
        if young:
            state.wakeups.note(min(young))
        state.reclaimable[lane] = {lease for lease, at_ms in from_ms.items() if at_ms <= now_ms}
    return state.reclaimable[lane]


def spared(state: State) -> list[Lease]:
    """List the cells that went for a share before, and have not run for long enough since to go for one again.

    That is twice their `min_runtime`, and twice as long again each time. Of these the state notes when to look again;
    but of one that is about to begin.
    """
    now_ms, found = state.accounts.now_ms, list[Lease]()
    for lease in state.leases.values():
        if lease.age is None or not lease.age.shared or lease.qos not in state.qos:
            continue
        if lease.phase is Phase.GRANTED:
            found.append(lease)
        if lease.phase is not Phase.BUSY:
            continue
        min_ms = state.qos[lease.qos].min_runtime_ms
        from_ms = lease.began_ms + max(min_ms, min(_LONGEST_MS, min_ms << min(lease.age.shared, _MOST_TIMES)))
        if from_ms > now_ms:
            state.wakeups.note(from_ms)
            found.append(lease)
    return found


def has_beside_going(user: User) -> int:
    """Compute what a user has, beside what is going and what their requests ahead are to have."""
    return user.used - user.going - user.awaited
