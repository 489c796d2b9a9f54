"""Promise 6: who has waited for their patience has what their project is guaranteed within one walltime.

Judged where nothing else can be in the way: one node, one request that is late or put first, no class that never
borrows or is never taken back, no lending limit and no node pool. Whoever is covered by then is judged by promise 1.
"""

from collections.abc import Sequence

from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.projects import Preemption
from tests.scheduler.promises.books import Waiting
from tests.scheduler.promises.kept_guarantee import claimed
from tests.scheduler.promises.reclaim_time import ReclaimTime
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Report, Rule, seconds


class PatienceRule(Rule):
    """Keeps since when a guarantee is kept for somebody, and until when it must cover them."""

    def __init__(self, report: Report, times: ReclaimTime) -> None:
        super().__init__(report)
        self.times = times
        self._clock: tuple[str, int, int, str] | None = None

    def restart(self) -> None:
        """Begin the clock anew."""
        self._clock = None

    def elapse(self, now_ms: int) -> None:
        """Judge whoever has waited for longer."""
        if self._clock is not None and self._clock[2] < now_ms:
            _, since_ms, _, facts = self._clock
            self.report(6, "others of the project have what is kept", f"for {seconds(now_ms - since_ms)}: {facts}")
            self._clock = None

    def event(self, event: ev.Event, view: View) -> None:
        """Begin anew where running cells were given more time, or whoever was put first may be another one."""
        if isinstance(event, ev.CellExtended | ev.RequestPutFirst | ev.UserBoosted | ev.RequestHeld):
            self._clock = None

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Take in for whom a guarantee is kept now."""
        found = _kept_for(view)
        if found is None:
            self._clock = None
            return
        request, side = found
        if self._clock is None or self._clock[0] != request.event.request:
            inside = [one for one in view.books.leases.values() if side in view.tree.chain(one.project)]
            asking = [one for one in view.books.waiting.values() if side in view.tree.chain(one.event.project)]
            longest_ms = max(one.walltime_ms for one in [*inside, *asking])
            longest_ms += max((one.more_ms for one in inside), default=0) + view.tree.settings.start_ms
            until_ms = view.now_ms + longest_ms + 2 * self.times.longest_ms(view)
            self._clock = request.event.request, view.now_ms, until_ms, f"{request} could have it of {side}"


def _kept_for(view: View) -> tuple[Waiting, Side] | None:
    """Find the one request for which a guarantee is kept that does not cover it yet, if that is clear."""
    if len(view.machines()) != 1 or len(view.books.machines) != 1 or view.tree.settings.node_pools:
        return None
    if any(one.lending_limit_milli is not None for one in view.tree.projects.values()) or view.books.planned:
        return None
    waiting = [one for one in view.books.waiting.values() if view.books.most_cost(one.event)]
    names = {one.event.qos for one in waiting} | {one.qos for one in view.books.leases.values()}
    classes = [view.tree.qos.get(name) for name in names]
    if any(qos is None or qos.must_be_in_quota or qos.preemption is Preemption.NEVER for qos in classes):
        return None
    late = [(one, claimed(view, one)) for one in waiting]
    sides = [(one, side) for one, side in late if side is not None]
    if len(sides) != 1:
        return None
    request, side = sides[0]
    same_user = [one for one in waiting if one.event.user == request.event.user]
    has_passed = any(one.user == request.event.user for one in view.books.leases.values())
    is_clear = len(same_user) == 1 and not has_passed and view.what_holds(request) is None
    machine = view.machines()[0]
    serving = [slot for slot in machine.slots.values() if view.books.matches(request.event, slot)]
    is_plain = len(serving) == len(machine.slots) and not request.event.cpus and not request.event.memory_bytes
    return (request, side) if is_clear and is_plain and view.covered(request) is None else None
