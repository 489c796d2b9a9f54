"""Who would have the places of cells that go for a request, because a guarantee covers them then and it not."""

from collections.abc import Iterator, Sequence

from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.branches import all_inside
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.shapes import QueueEntry
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.gone_cells import without_cells
from gpu_worker.scheduler.state import State


def has_heir(state: State, request: Request, node: Node, gone: Sequence[Lease]) -> bool:
    """Whether somebody of another project would have what goes for a larger request, on its node or of a limit.

    The guarantee that covered these cells covers that one from then on, and not the request, which is for more.
    """
    account, cost = state.accounts.of(request.project), request.entry.shape.cost
    if not gone or state.is_covered(request):
        return False
    lefts = [(at, _left(state, at, gone)) for at in account.path]
    kept = account.kept_of_guarantee(request.entry, by_users=True) if account.children else 0
    for at, left in lefts:
        kept = max(kept, at.kept_of_guarantee(request.entry))
        if left >= cost + kept:
            return False
    able = {entry.id: (its, entry) for at, left in lefts if left > 0 for its, entry in _waiting(at, account, left)}
    heirs = [(its, entry) for its, entry in able.values() if not state.accounts.is_covered(its, entry)]
    if not heirs:
        return False
    with without_cells(state, gone):
        if state.pools.cover(account, request.entry.shape, request.entry):
            return False
        return any(
            state.accounts.is_covered(its, entry)
            and state.accounts.is_allowed(its, entry)
            and (_is_rival(node, request, entry) or _fills_limit(account, its, cost, entry))
            for its, entry in heirs
        )


def _left(state: State, at: Account, gone: Sequence[Lease]) -> int:
    """Compute what is left of a project's guarantee once these cells have gone; thousandths of a GPU."""
    inside = (lease.cost for lease in gone if any(one is at for one in state.accounts.of(lease.project).path))
    return at.guaranteed - at.used + at.replaced + sum(inside)


def _waiting(at: Account, but: Account, most: int) -> Iterator[tuple[Account, QueueEntry]]:
    """List the first requests of users in a project and inside it, of another project than one, that cost so much."""
    for account in all_inside(at):
        if account is not but:
            for _, name, shape in account.firsts:
                if 0 < shape.cost <= most:
                    yield account, account.users[name].lines[shape][0][1]


def _is_rival(node: Node, request: Request, entry: QueueEntry) -> bool:
    """Whether somebody could have on the request's node what that is to have."""
    return node.holds(entry.shape) and node.kind.are_rivals(request.entry.shape, entry.shape)


def _fills_limit(account: Account, its: Account, cost: int, entry: QueueEntry) -> bool:
    """Whether a limit of a project that both are in would not let both through."""
    both = {at.project.id for at in its.path}
    limits = [(at, at.limit) for at in account.path if at.project.id in both]
    wanted = cost + entry.shape.cost
    return any(limit is not None and at.used - at.going + wanted > limit for at, limit in limits)
