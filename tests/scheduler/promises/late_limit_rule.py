"""Promise 6 at limits: who has waited for their patience waits there only for what runs already.

By walltimes it is known when the limits that a late request is in let it through. Nobody begins by whom that is later,
but who stands before it: who is late, too, or put first, or covered by a guarantee that is not of both.

Judged for one late request at a time: of a user who has no other one in line and was granted nothing lately, and where
nothing but limits is in the way: it fits what is free or hot on a node.
"""

from collections.abc import Iterable, Sequence

from gpu_worker.scheduler import actions as act, events as ev
from tests.scheduler.promises.books import Tenancy, Waiting
from tests.scheduler.promises.larger_requests import is_late
from tests.scheduler.promises.reclaim_time import ReclaimTime
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Report, Rule, seconds


class LateLimitRule(Rule):
    """Keeps when limits let each late request through, by the walltimes of what runs."""

    def __init__(self, report: Report, times: ReclaimTime) -> None:
        super().__init__(report)
        self.times = times
        self._hot: set[str] = set()
        self._granted: dict[tuple[str, str], int] = {}  #: when a user of a project was granted something last
        self._open: dict[str, int] = {}  #: since when limits let each late request through

    def restart(self) -> None:
        """Begin the clocks anew."""
        self._open = {}

    def event(self, event: ev.Event, view: View) -> None:
        """Judge a hot session that begins a cell by itself."""
        lease = view.books.leases.get(event.lease) if isinstance(event, ev.CellStarted) else None
        if lease is None or lease.lease not in self._hot or not lease.cost:
            return
        covers = view.covers.get(lease.lease)
        for late in _late(view, self._granted):
            if late.event.user != lease.user and not _stands_before(view, lease.project, covers, late):
                self._judge(
                    view,
                    late,
                    [one for one in _using(view) if one is not lease],
                    lease.project,
                    lease.cost,
                    lease.walltime_ms,
                    f"{lease} begins a cell",
                )

    def action(self, action: act.Action, view: View) -> None:
        """Judge a grant before it is written down."""
        if not isinstance(action, act.Grant) or action.request not in view.books.waiting:
            return
        request = view.books.waiting[action.request]
        slots = view.books.machines[action.agent].slots
        cost = view.books.cost(slots[name] for name in action.slots if name in slots)
        own = (request.event.project, request.event.user)
        if cost and not is_late(view, request) and not view.books.is_put_first(request):
            covers = view.covered(request) or view.covered_soon(request)
            for late in _late(view, self._granted):
                if late is not request and not _stands_before(view, request.event.project, covers, late):
                    self._judge(
                        view,
                        late,
                        list(_using(view)),
                        request.event.project,
                        cost,
                        action.walltime_ms + view.tree.settings.start_ms,
                        f"{request} is granted",
                    )
        self._granted[own] = view.now_ms

    def _judge(
        self, view: View, late: Waiting, running: Sequence[Tenancy], project: str, cost: int, stays_ms: int, what: str
    ) -> None:
        before = _lets_through_ms(view, late, running)
        after = _lets_through_ms(view, late, running, (project, cost, view.now_ms + stays_ms))
        if after > before:
            facts = f"{what}, and {late}, which waits for {seconds(view.now_ms - late.since_ms)}, "
            facts += f"is let through in {seconds(after - view.now_ms)} instead of {seconds(before - view.now_ms)}"
            self.report(6, "somebody is passed at a limit who has waited for their patience", facts)

    def elapse(self, now_ms: int) -> None:
        """Judge who could have begun for long."""
        for name, since_ms in list(self._open.items()):
            if since_ms + 2 * self.times.hot_ms < now_ms:
                self.report(
                    6, "whom limits let through who is late does not begin", f"{name} for {seconds(now_ms - since_ms)}"
                )
                del self._open[name]

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Take in which sessions are hot, and whom limits let through."""
        self._hot = {lease.lease for lease in view.books.leases.values() if lease.is_hot and not lease.is_asked}
        late = [
            one for one in _late(view, self._granted) if _lets_through_ms(view, one, list(_using(view))) <= view.now_ms
        ]
        if len(late) > 1 or any(lease.is_reclaimed for lease in view.books.leases.values()):
            late = []  # for whom it is kept is another question
        self._open = {str(one): self._open.get(str(one), view.now_ms) for one in late}


def _using(view: View) -> Iterable[Tenancy]:
    return (lease for lease in view.books.leases.values() if lease.is_using and lease.cost)


def _late(view: View, granted: dict[tuple[str, str], int]) -> list[Waiting]:
    """List the late requests of which it is clear that they stand before others, and only limits hold them back."""
    found = []
    waiting = [one for one in view.books.waiting.values() if view.books.most_cost(one.event)]
    for request in waiting:
        at, qos = request.event, view.tree.qos[request.event.qos]
        if not is_late(view, request) or at.request in view.books.on_hold or qos.must_be_in_quota:
            continue
        others = [one for one in waiting if one is not request and one.event.user == at.user]
        has_passed = any(user == at.user and view.now_ms - ms < qos.patience_ms for (_, user), ms in granted.items())
        if others or has_passed or any(lease.user == at.user for lease in view.books.leases.values()):
            continue
        if view.what_holds(request, surely=True) is not None or _has_late_beside(view, request, waiting, granted):
            continue
        if any(view.place(request, machine, ("hot",), None) for machine in view.machines()):
            found.append(request)
    return found


def _has_late_beside(
    view: View, request: Waiting, waiting: Sequence[Waiting], granted: dict[tuple[str, str], int]
) -> bool:
    """Whether another one that is late, or put first, is in a limit with it: then it is not clear who is next."""
    return any(
        other is not request
        and (is_late(view, other) or view.books.is_put_first(other))
        and not set(_limits(view, request.event.project)).isdisjoint(_limits(view, other.event.project))
        for other in waiting
    )


def _limits(view: View, project: str) -> list[Side]:
    return [side for side in view.tree.chain(project) if view.tree.limit(side, view.guaranteed) is not None]  # type: ignore[arg-type]


def _stands_before(view: View, project: str, covers: Side | None, late: Waiting) -> bool:
    """Whether a guarantee covers who begins that the late one is not in, or that covers not the late one."""
    if project == late.event.project or covers is None:
        return False
    return covers not in view.tree.chain(late.event.project) or view.covered(late) is None  # type: ignore[arg-type]


def _lets_through_ms(
    view: View, late: Waiting, running: Sequence[Tenancy], more: tuple[str, int, int] | None = None
) -> int:
    """Find when all limits let a request through, if all that runs takes its walltime and nobody else begins."""
    cost, at_ms = view.books.most_cost(late.event), view.now_ms
    for side in _limits(view, late.event.project):
        limit = view.tree.limit(side, view.guaranteed)
        assert limit is not None
        ends = [(_end_ms(view, one), one.cost) for one in running if side in view.tree.chain(one.project)]
        if more is not None and side in view.tree.chain(more[0]):  # type: ignore[arg-type]
            ends.append((more[2], more[1]))
        used = sum(one for _, one in ends)
        for end_ms, one in sorted(ends):
            if used + cost <= limit:
                break
            used, at_ms = used - one, max(at_ms, end_ms)
    return at_ms


def _end_ms(view: View, lease: Tenancy) -> int:
    if lease.is_reclaimed:
        return max(view.now_ms, lease.asked_ms + lease.grace_ms)
    begin_ms = lease.began_ms if lease.cell is not None else lease.granted_ms + view.tree.settings.start_ms
    return max(view.now_ms, begin_ms + lease.walltime_ms + lease.more_ms)
