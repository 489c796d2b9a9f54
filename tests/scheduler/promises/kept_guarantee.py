"""For whom what is left of a guarantee is kept inside a project: who is late, or whom an admin wants first (6, 18)."""

from tests.scheduler.promises.books import Waiting
from tests.scheduler.promises.larger_requests import is_late
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View, once


def claimed(view: View, request: Waiting) -> Side | None:
    """Find the innermost guarantee that could cover the request alone, if that may be kept for it; None where none."""
    if not (is_late(view, request) or view.books.is_put_first(request)):
        return None
    cost = view.books.most_cost(request.event)
    sides = view.tree.chain(request.event.project)
    return next((side for side in sides if 0 < cost <= view.guaranteed.get(side, 0)), None)


@once
def _claims(view: View) -> list[tuple[Waiting, Side]]:
    return [(one, side) for one in view.books.waiting.values() if (side := claimed(view, one)) is not None]


def is_guarantee_kept(view: View, request: Waiting) -> bool:
    """Whether no guarantee may cover the request beside another one, for which that is kept."""
    cost, chain = view.books.most_cost(request.event), view.tree.chain(request.event.project)
    claims: dict[Side, int] = {}
    for other, side in _claims(view):
        if other is not request:
            claims[side] = max(claims.get(side, 0), view.books.most_cost(other.event))
    kept = 0  #: inside, and so from what a guarantee further out covers, too
    for side in chain:
        kept = max(kept, claims.get(side, 0))
        if view.used.get(side, 0) + cost + kept <= view.guaranteed.get(side, 0):
            return False
    return kept > 0
