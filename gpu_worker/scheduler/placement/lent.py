"""What lenders keep from a request: how much of it must be given back first, and whether that would do."""

from collections.abc import Iterable

from bulletin.ids import LeaseId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.lending import lent_to
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.placement.gone_cells import without_cells
from gpu_worker.scheduler.state import State


def lacks_of_lent(state: State, account: Account, shape: Shape) -> int | None:
    """Compute how much must be given back before what lenders keep is free beside a request; None where it is."""
    if not shape.cost or not state.accounts.has_lenders or state.pools.cover(account, shape):
        return None
    lent = lent_to(state.accounts, account, shape.cost)
    lacks = max(lent.lacks, lent.lacks_in_pool)
    if lent.kept <= 0 or lacks <= 0:
        return None
    return lacks - sum(at.going for at in state.accounts.top.values())


def kept_by_lenders(state: State, account: Account) -> frozenset[LeaseId]:
    """Select the cells of lenders that would keep something of what these gave back, beside what a project is in."""
    kept: list[LeaseId] = []
    inside = {at.project.id for at in account.path}
    beside = (at for name, at in state.accounts.by_id.items() if name not in inside)
    for at in beside:
        limit = at.project.lending_limit_milli
        if limit is not None:
            names = state.coverage.uses_in(at)
            kept += [name for name in names if at.used - state.leases[name].cost < at.guaranteed - limit]
    return frozenset(kept)


def would_be_lent(state: State, request: Request, gone: Iterable[Lease]) -> bool:
    """Whether lenders keep nothing from a request once these cells have been given back.

    A lender that uses less keeps more: what it gave back would be free, and its own again at once. But where the
    request is at home they keep nothing from it.
    """
    account, shape, gone = state.accounts.of(request.project), request.entry.shape, list(gone)
    is_home = bool(gone) and all(state.pools.covers(one.pool, account, shape.cost) for one in gone)
    if is_home or not state.accounts.has_lenders:
        return True
    with without_cells(state, gone):
        lacks = lacks_of_lent(state, account, shape)
    return lacks is None or lacks <= 0
