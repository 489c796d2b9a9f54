"""Who waits for another one of their project, or of one inside it, for whom a cell goes already.

A limit, or a guarantee, is not for both.
"""

from collections.abc import Sequence

from tests.scheduler.promises.books import Tenancy, Waiting
from tests.scheduler.promises.kept_guarantee import claimed
from tests.scheduler.promises.view import View


def is_behind_served(view: View, request: Waiting) -> bool:
    """Whether a limit, or what covers it, is not for it and one of its project, or inside, for whom a cell goes (1)."""
    going = [lease for lease in view.books.leases.values() if lease.is_reclaimed and lease.is_using]
    if not going:
        return False
    others = (one for one in view.books.waiting.values() if _is_in(view, one, request.event.project))
    return any(
        _fills_limit(view, request, other, going) or _fills_guarantee(view, request, other)
        for other in others
        if other is not request and view.covered_soon(other) is not None and not _is_kept_from(view, other, request)
    )


def _is_in(view: View, request: Waiting, project: str) -> bool:
    """Whether a request is of a project, or of one inside it, whose own guarantee comes first."""
    return any(side.project == project for side in view.tree.chain(request.event.project))


def _is_kept_from(view: View, other: Waiting, request: Waiting) -> bool:
    """Whether the other one came when the guarantee was kept for the request alone already, which is late (6)."""
    qos, its = view.tree.qos.get(request.event.qos), view.tree.qos.get(other.event.qos)
    if qos is None or its is None or its.must_be_in_quota:
        return False
    claims = [one for one in view.books.waiting.values() if claimed(view, one) is not None]
    return claims == [request] and other.since_ms > request.since_ms + qos.patience_ms


def _fills_limit(view: View, request: Waiting, other: Waiting, going: Sequence[Tenancy]) -> bool:
    """Whether a limit lets the other one through once these cells have gone, and not before, and not both."""
    its, cost = view.books.most_cost(other.event), view.books.most_cost(request.event)
    for side in view.tree.chain(request.event.project):
        limit, used = view.tree.limit(side, view.guaranteed), view.used.get(side, 0)
        gone = sum(lease.cost for lease in going if side in view.tree.chain(lease.project))
        if limit is not None and used - gone + its <= limit < min(used + its, used - gone + its + cost):
            return True
    return False


def _fills_guarantee(view: View, request: Waiting, other: Waiting) -> bool:
    """Whether the same guarantee covers either and not both, and only the other one can have what a cell leaves."""
    covers = view.covered(request)
    if covers is None or covers != view.covered(other) or view.what_holds(other) is not None:
        return False
    both = view.books.most_cost(other.event) + view.books.most_cost(request.event)
    if view.used.get(covers, 0) + both <= view.guaranteed.get(covers, 0):
        return False
    for machine in view.machines():
        place = view.place(other, machine, ("leaves",), covers)
        if place is not None and any(lease.is_using for lease in place.leaving):
            return view.place(request, machine, ("leaves",), covers) is None
    return False
