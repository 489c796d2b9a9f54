"""For whom what is left of a guarantee is kept inside a project: who is late, or whom an admin wants first (6, 18)."""

from tests.scheduler.promises.books import Waiting
from tests.scheduler.promises.larger_requests import is_late
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View


def claimed(view: View, request: Waiting) -> Side | None:
    """Find the innermost guarantee that could cover the request alone, if that may be kept for it; None where none."""
    if not (is_late(view, request) or view.books.is_put_first(request)):
        return None
    cost = view.books.most_cost(request.event)
    sides = view.tree.chain(request.event.project)
    return next((side for side in sides if 0 < cost <= view.guaranteed.get(side, 0)), None)


def is_guarantee_kept(view: View, request: Waiting) -> bool:
    """Whether no guarantee may cover the request beside another one, for which that is kept."""
    cost, chain = view.books.most_cost(request.event), view.tree.chain(request.event.project)
    claims: dict[Side, list[int]] = {}
    for other in view.books.waiting.values():
        side = claimed(view, other) if other is not request else None
        if side is not None and side in chain:
            claims.setdefault(side, []).append(view.books.most_cost(other.event))
    lefts = {side: view.guaranteed.get(side, 0) - view.used.get(side, 0) - cost for side in chain}
    covering = [side for side, left in lefts.items() if left >= 0]
    return bool(claims) and not any(lefts[side] >= max(claims.get(side, [0])) for side in covering)
