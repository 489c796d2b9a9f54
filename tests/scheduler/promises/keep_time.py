"""Which hot sessions keep their GPUs from those who borrow: the exception of promise 5 that `keep_hot` makes."""

from typing import TYPE_CHECKING

from bulletin.ids import LeaseId
from tests.scheduler.promises.budget_book import budgets_of

if TYPE_CHECKING:
    from tests.scheduler.promises.books import Tenancy, Waiting
    from tests.scheduler.promises.view import View


def kept_sessions(view: "View") -> frozenset[LeaseId]:
    """Find, of each project, those used last within its keep time that its guarantee has room for beside its cells."""
    kept = []
    room: dict[str, int] = {}
    hot = [lease for lease in view.books.leases.values() if lease.is_hot and lease.has_begun and lease.cost]
    never_borrow = [lease for lease in hot if _never_borrows(view, lease)]
    for lease in sorted(hot, key=lambda one: (one.hot_ms, one.order), reverse=True):
        keep_ms = view.tree.rule_of_cells(lease.project, "keep_hot_ms") or 0
        if lease.is_asked or lease.hot_ms + keep_ms <= view.now_ms:
            continue
        side = view.tree.chain(lease.project)[0]
        if lease.project not in room:
            theirs = sum(one.cost for one in never_borrow if one.project == lease.project)
            room[lease.project] = view.guaranteed.get(side, 0) - view.used.get(side, 0) - theirs
        if lease not in never_borrow and lease.cost <= room[lease.project]:
            room[lease.project] -= lease.cost
            kept.append(lease.lease)
    return frozenset(kept)


def is_kept_from(view: "View", victim: "Tenancy", request: "Waiting") -> bool:
    """Whether the session is kept from a request: of another project, and nothing that only that is in covers it."""
    if victim.lease not in view.kept or victim.project == request.event.project:
        return False
    cost, theirs = view.books.most_cost(request.event), view.tree.chain(victim.project)
    mine = [side for side in view.tree.chain(request.event.project) if side not in theirs]
    return cost > 0 and not any(view.used.get(side, 0) + cost <= view.guaranteed.get(side, 0) for side in mine)


def has_other_reasons(view: "View", victim: "Tenancy") -> bool:
    """Whether it may have to leave for something else: a drain, its session, a limit, a rule of cells, a budget."""
    projects = view.tree.projects.values()
    return (
        victim.agent in view.books.drained
        or victim.agent in view.books.planned
        or any(request.event.session == victim.session for request in view.books.waiting.values())
        or is_beyond_rules(view, victim)
        or any(one.limit_milli is not None or not one.can_borrow for one in projects)
        or any(one.lending_limit_milli is not None or one.user_limit_milli is not None for one in projects)
        or any(True for _ in budgets_of(view.tree))
        or any(one.running_per_user is not None for one in view.tree.qos.values())
    )


def is_beyond_rules(view: "View", lease: "Tenancy") -> bool:
    """Whether another cell on it would be more than its project, or its class of service, lets a cell have (8)."""
    tree, qos = view.tree, view.tree.qos.get(lease.qos)
    if qos is None:
        return False
    own, longest_ms = tree.rule_of_cells(lease.project, "qos"), tree.rule_of_cells(lease.project, "walltime_ms")
    most = [tree.rule_of_cells(lease.project, "gpus_per_cell"), qos.gpus_per_cell] if lease.cost else []
    allowed = view.books.allowed(lease.project, lease.user, "gpus")
    allowed_ms = view.books.allowed(lease.project, lease.user, "walltime_ms")
    return (
        (own is not None and lease.qos not in own)
        or any(one is not None and len(lease.slots) > max(one, allowed) for one in most)
        or any(one is not None and lease.walltime_ms > max(one, allowed_ms) for one in (longest_ms, qos.walltime_ms))
    )


def _never_borrows(view: "View", lease: "Tenancy") -> bool:
    qos = view.tree.qos.get(lease.qos)
    return qos is not None and qos.must_be_in_quota
