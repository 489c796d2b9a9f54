"""Promise 13: who has waited for their share has it also where a limit or a guarantee is full, and no node.

Judged where nothing else can be in the way: a GPU is free, nobody lends less than they have, no budget is set, and all
who wait are of one class in one project, and not late. Among projects, where nobody is guaranteed anything: else
credits have a say.
"""

from collections.abc import Iterator, Sequence

from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.projects import GPU_MILLI, Preemption, Project
from tests.scheduler.promises.books import Tenancy, Waiting
from tests.scheduler.promises.guarantee_rule import is_simple
from tests.scheduler.promises.reclaim_time import ReclaimTime
from tests.scheduler.promises.shared_again import may_share
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Report, Rule, seconds


class ShareRule(Rule):
    """Keeps since when somebody could have a share, and until when they must have it."""

    def __init__(self, report: Report, times: ReclaimTime) -> None:
        super().__init__(report)
        self.times = times
        self._clock: tuple[int, int, str] | None = None

    def restart(self) -> None:
        """Begin the clock anew."""
        self._clock = None

    def elapse(self, now_ms: int) -> None:
        """Judge whoever has waited for longer."""
        if self._clock is not None and self._clock[1] < now_ms:
            since_ms, _, facts = self._clock
            self.report(13, "a share of what is full does not come", f"for {seconds(now_ms - since_ms)}: {facts}")
            self._clock = None

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Take in whether somebody could have a share now."""
        if any(isinstance(action, act.Grant) for action in actions):
            self._clock = None
        able = [(one, lease) for one in _held_by_quotas(view) for lease in _running(view) if _may_go(view, one, lease)]
        if not able:
            self._clock = None
        elif self._clock is None:
            until_ms = self.times.until(view, [lease for _, lease in able]) + view.tree.settings.share_every_ms
            self._clock = view.now_ms, until_ms, f"{able[0][0]} could have it of {able[0][1]}"


def _held_by_quotas(view: View) -> list[Waiting]:
    """List those who have waited for a share, if all who wait are alike and only quotas are in their way."""
    waiting, projects = list(view.books.waiting.values()), view.tree.projects.values()
    if len({(one.event.project, one.event.qos) for one in waiting}) != 1:
        return []
    qos = view.tree.qos.get(waiting[0].event.qos)
    if any(one.lending_limit_milli is not None or one.budget is not None for one in projects) or qos is None:
        return []
    if any(lease.is_asked or lease.is_over or lease.is_hot for lease in view.books.leases.values()):
        return []
    late_ms = view.now_ms - qos.patience_ms
    if any(not is_simple(view, one) or view.books.is_put_first(one) or one.since_ms <= late_ms for one in waiting):
        return []
    if qos.running_per_user is not None or any(one.user_limit_milli is not None for one in projects):
        return []
    return [
        one
        for one in waiting
        if view.now_ms - one.since_ms >= qos.share_after_ms
        and view.covered(one) is None
        and view.what_holds(one) not in {None, "it is held"}
        and any(view.place(one, machine, (), None) is not None for machine in view.machines())
    ]


def _running(view: View) -> Iterator[Tenancy]:
    """List cells that may be taken back."""
    for lease in view.books.leases.values():
        qos = view.tree.qos.get(lease.qos)
        is_whole = lease.cell is not None and lease.cost == GPU_MILLI
        if is_whole and qos is not None and qos.preemption is not Preemption.NEVER and may_share(view.books, lease):
            yield lease


def _may_go(view: View, request: Waiting, lease: Tenancy) -> bool:
    """Whether a request could run once this cell has been given back, and may have that for its share."""
    at, tree = request.event, view.tree
    asked, its = tree.qos[at.qos], tree.qos[lease.qos]
    gone = tree.chain(lease.project)
    for side in _chain(view, at.project):
        limit = tree.limit(side, view.guaranteed)
        if limit is not None and view.used.get(side, 0) + GPU_MILLI - (lease.cost if side in gone else 0) > limit:
            return False
    if asked.must_be_in_quota:
        payer = tree.chain(at.project)[0]
        left = view.guaranteed.get(payer, 0) - view.used.get(payer, 0)
        if not its.must_be_in_quota or payer not in gone or left + lease.cost < GPU_MILLI:
            return False
    if lease.project == at.project:
        return its.priority == asked.priority and view.why_taken(lease, request, None) == "fair part"
    return not asked.must_be_in_quota and its.priority <= asked.priority and _has_more(view, request, lease)


def _has_more(view: View, request: Waiting, lease: Tenancy) -> bool:
    """Whether, where two paths part, the side of a cell has more of the surplus for its weight than the request's."""
    tree = view.tree
    if any(view.nominal.values()) or any(project.windows for project in tree.projects.values()):
        return False
    mine, others = tree.chain(request.event.project), tree.chain(lease.project)
    side = next((one for one in reversed(mine) if one not in others), None)
    other = next((one for one in reversed(others) if one not in mine), None)
    if side is None or other is None:
        return False
    one, two = _project(view, side), _project(view, other)
    if (one is None or two is None) or one.priority != two.priority:
        return False
    has = (view.used.get(side, 0) + GPU_MILLI) * two.weight
    return has <= (view.used.get(other, 0) - lease.cost) * one.weight


def _project(view: View, side: Side) -> Project | None:
    """Find the settings of a project; those of its own users beside projects inside it are nowhere written."""
    return None if side.own_users else view.tree.projects.get(side.project)


def _chain(view: View, project: str) -> list[Side]:
    """List the projects that somebody of this one is in, of those that are configured."""
    chain = view.tree.chain(project)  # type: ignore[arg-type]
    return [side for side in chain if not side.own_users and side.project in view.tree.projects]
