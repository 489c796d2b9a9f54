"""Places on nodes that wait for somebody for whom room in a limit is being freed, or in a guarantee: both at once."""

import itertools
from collections.abc import Sequence

from tests.scheduler.promises.books import Machine, Tenancy, Waiting
from tests.scheduler.promises.lending import kept_from
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View


def is_kept_with_limit(view: View, request: Waiting, machine: Machine) -> bool:
    """Whether what idles there may be kept for others, for whose limit cells or hot sessions elsewhere leave.

    Each of these cells is for one request, or for several that cost no more, and it is not known for which: so for
    those that need most of the node.
    """
    leaving = [lease for lease in view.books.leases.values() if lease.is_asked or _goes_soon(view, lease)]
    if not leaving:
        return False
    others = [
        other.event
        for other in view.books.waiting.values()
        if other is not request
        and _is_limited(view, leaving, other)
        and view.what_holds(other, surely=True, soon=True) is None
        and view.place(other, machine, ("hot",), None) is not None
    ]
    costs = itertools.accumulate(sorted(map(view.books.most_cost, others)))
    together = sum(cost <= sum(lease.cost for lease in leaving) for cost in costs)
    kept = sorted(map(view.books.number, others), reverse=True)[: max(together, len(leaving))]
    slots, _ = view.slots_for(request, machine, ("hot",), None)
    return len(slots) - sum(kept) < view.books.number(request.event)


def _goes_soon(view: View, lease: Tenancy) -> bool:
    """Whether a young cell is one for which somebody may wait who is covered, so that none goes that is covered (2)."""
    qos = view.tree.qos.get(lease.qos)
    if lease.cell is None or qos is None or view.covers.get(lease.lease) is not None:
        return False
    longest_ms = max(one.grace_ms for one in view.tree.qos.values())
    return 0 < lease.began_ms + qos.min_runtime_ms - view.now_ms <= longest_ms


def _is_limited(view: View, leaving: Sequence[Tenancy], request: Waiting) -> bool:
    """Whether one of these cells counts for a limit of a project that it is in; or a guarantee, if it never borrows.

    And any cell that is given back counts for what others lend, where they keep something from the request.
    """
    qos = view.tree.qos.get(request.event.qos)
    never_borrows = qos is not None and qos.must_be_in_quota
    mine = view.tree.chain(request.event.project)
    limits = {side for side in mine if _has_limit(view, side) or (never_borrows and view.guaranteed.get(side, 0) > 0)}
    if limits and any(not limits.isdisjoint(view.tree.chain(lease.project)) for lease in leaving):
        return True
    is_given_back = any(lease.is_reclaimed and lease.cost for lease in leaving)
    return is_given_back and kept_from(view, request.event.project, None) > 0


def _has_limit(view: View, side: Side) -> bool:
    return view.tree.limit(side, view.guaranteed) is not None
