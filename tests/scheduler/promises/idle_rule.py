"""Promise 5: nothing idles that somebody may use; and 11, what costs nothing waits for no quota."""

from collections.abc import Sequence

from gpu_worker.scheduler import actions as act, events as ev
from tests.scheduler.promises.books import Machine, Waiting
from tests.scheduler.promises.kept_with_limit import is_kept_with_limit
from tests.scheduler.promises.larger_requests import is_limit_wanted, is_wanted_by_larger
from tests.scheduler.promises.lending import is_lent, kept_from
from tests.scheduler.promises.never_borrows import is_quota_kept
from tests.scheduler.promises.reclaim_time import ReclaimTime
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Report, Rule, seconds


class IdleRule(Rule):
    """Keeps since when each slot idles, and since when each request may have those of a node."""

    def __init__(self, report: Report, times: ReclaimTime) -> None:
        super().__init__(report)
        self.times = times
        self.idle: dict[tuple[str, str], int] = {}
        self.may: dict[tuple[str, str], int] = {}
        self._seen: tuple[View, list[Waiting]] | None = None
        self._told: set[str] = set()
        self._came: dict[str, int] = {}  #: since when each request may be given something, beside its session's lease
        self._freed: set[tuple[str, str]] = (
            set()
        )  #: slots that are being freed, or free beside these, as of the last step

    def restart(self) -> None:
        """Begin all clocks anew."""
        self.idle, self.may = {}, {}

    def elapse(self, now_ms: int) -> None:
        """Judge what has been idle until now, as things stood."""
        if self._seen is None:
            return
        view, requests = self._seen
        since = now_ms - self.times.hot_ms
        for request in requests:
            name = request.event.request
            for machine in view.machines():
                if self.may.get((name, machine.agent), now_ms) > since or name in self._told:
                    continue
                slots = [
                    slot
                    for slot, kind in machine.slots.items()
                    if self.idle.get((machine.agent, slot), now_ms) <= since and view.books.matches(request.event, kind)
                ]
                if len(slots) >= view.books.number(request.event):
                    self._told.add(name)
                    facts = (
                        f"{', '.join(slots)} of {machine.agent} for more than {seconds(self.times.hot_ms)}; {request}"
                    )
                    promise = 11 if view.books.most_cost(request.event) == 0 else 5
                    self.report(promise, "a GPU idles that a request may have", facts)

    def action(self, action: act.Action, view: View) -> None:
        """Give whoever waits as much time again where somebody who came later is given what is being freed."""
        if isinstance(action, act.Grant) and action.request in view.books.waiting:
            came_ms = self._came.get(action.request, view.now_ms)
            if any((action.agent, slot) in self._freed for slot in action.slots):
                self.may = {key: view.now_ms if at_ms < came_ms else at_ms for key, at_ms in self.may.items()}

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Take in how things stand."""
        sessions = {lease.session for lease in view.books.leases.values()}
        came = [one for one in view.books.waiting.values() if one.event.session not in sessions]
        self._came = {one.event.request: self._came.get(one.event.request, view.now_ms) for one in came}
        idle: dict[tuple[str, str], int] = {}
        for machine in view.machines():
            taken = {
                slot
                for lease in view.on_node(machine.agent)
                if lease.is_using or lease.is_over or lease.lease in view.kept
                for slot in lease.slots
            }
            for slot in machine.slots:
                if slot not in taken:
                    idle[machine.agent, slot] = self.idle.get((machine.agent, slot), view.now_ms)
        self.idle = idle
        asked = [lease for lease in view.books.leases.values() if lease.is_asked]
        self._freed = {(lease.agent, slot) for lease in asked for slot in lease.slots}
        taken = {(lease.agent, slot) for lease in view.books.leases.values() for slot in lease.slots}
        making_room = {lease.agent for lease in asked}
        free = {(one.agent, slot) for one in view.machines() if one.agent in making_room for slot in one.slots}
        self._freed |= free - taken
        requests = [request for request in view.books.waiting.values() if view.what_holds(request) is None]
        is_full = sum(lease.is_hot for lease in asked) >= view.tree.settings.look_ahead
        may: dict[tuple[str, str], int] = {}
        for request in requests:
            fitting = [machine for machine in view.machines() if _fits(view, request, machine)]
            if not fitting:
                continue
            if self._is_kept_from(view, request) or is_limit_wanted(view, request) or is_quota_kept(view, request):
                continue
            if is_full and view.covered(request) is None:
                continue  # as many leave as do at a time for those who borrow
            for machine in fitting:
                key = (request.event.request, machine.agent)
                if not is_wanted_by_larger(view, request, machine) and not is_kept_with_limit(view, request, machine):
                    may[key] = self.may.get(key, view.now_ms)
        self.may = may
        self._seen = (view, requests)

    def _is_kept_from(self, view: View, request: Waiting) -> bool:
        """Whether a lending limit may keep from the request what idles.

        Somebody else may be about to have what is freed now: then so much less is left, also of what covers it.
        """
        covers, cost = view.covered(request), view.books.most_cost(request.event)
        is_room_made = any(lease.is_reclaimed for lease in view.books.leases.values())
        others = [other for other in view.books.waiting.values() if is_room_made and other is not request]
        theirs = (view.books.most_cost(one.event) for one in others if covers in view.tree.chain(one.event.project))
        most = max(theirs, default=0)
        if covers is not None and view.used.get(covers, 0) + cost + most > view.guaranteed.get(covers, 0):
            covers = None
        kept = kept_from(view, request.event.project, covers)
        if not kept or not cost:
            return False
        names = {slot.name for machine in view.machines() for slot in machine.slots.values()}
        cost += max((view.books.most_cost(other.event) for other in others), default=0)
        return len(names) > 1 or not is_lent(view, request.event.project, cost, covers, soon=False)


def _fits(view: View, request: Waiting, machine: Machine) -> bool:
    """Whether the request fits into what is free or hot on a node."""
    return view.place(request, machine, ("hot",), None) is not None
