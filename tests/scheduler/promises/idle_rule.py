"""Promise 5: nothing idles that somebody may use; and 11, what costs nothing waits for no quota."""

from collections.abc import Sequence

from gpu_worker.scheduler import actions as act, events as ev
from tests.scheduler.promises.books import Machine, Waiting
from tests.scheduler.promises.lending import kept_from, room_for
from tests.scheduler.promises.reclaim_time import ReclaimTime
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Report, Rule, seconds

_MINUTE = 60_000
#: Walltimes count in steps where somebody is to be over before a larger request starts.
_STEPS = [minutes * _MINUTE for minutes in (1, 2, 3, 5, 10, 15, 20, 30, 45)] + [
    hours * 60 * _MINUTE for hours in (1, 2, 3, 4, 6, 8, 12, 24, 48, 96, 168, 336, 672)
]


class IdleRule(Rule):
    """Keeps since when each slot idles, and since when each request may have those of a node."""

    def __init__(self, report: Report, times: ReclaimTime) -> None:
        super().__init__(report)
        self.times = times
        self.idle: dict[tuple[str, str], int] = {}
        self.may: dict[tuple[str, str], int] = {}
        self._seen: tuple[View, list[Waiting]] | None = None
        self._told: set[str] = set()

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
                    facts = f"{', '.join(slots)} of {machine.agent} for more than {seconds(self.times.hot_ms)}; {request}"
                    promise = 11 if view.books.most_cost(request.event) == 0 else 5
                    self.report(promise, "a GPU idles that a request may have", facts)

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Take in how things stand."""
        idle: dict[tuple[str, str], int] = {}
        for machine in view.machines():
            taken = {
                slot
                for lease in view.books.on_node(machine.agent)
                if lease.is_using or lease.is_over
                for slot in lease.slots
            }
            for slot in machine.slots:
                if slot not in taken:
                    idle[machine.agent, slot] = self.idle.get((machine.agent, slot), view.now_ms)
        self.idle = idle
        requests = [request for request in view.books.waiting.values() if view.what_holds(request) is None]
        may: dict[tuple[str, str], int] = {}
        for request in requests:
            if self._is_kept_from(view, request) or self._has_another_lease(view, request):
                continue
            for machine in view.machines():
                key = (request.event.request, machine.agent)
                if _fits(view, request, machine) and not self._is_wanted_by_larger(view, request, machine, requests):
                    may[key] = self.may.get(key, view.now_ms)
        self.may = may
        self._seen = (view, requests)

    def _is_kept_from(self, view: View, request: Waiting) -> bool:
        """Whether a lending limit may keep from the request what idles."""
        covers, cost = view.covered(request), view.books.most_cost(request.event)
        kept = kept_from(view, request.event.project, covers)
        if not kept or not cost:
            return False
        names = {slot.name for machine in view.machines() for slot in machine.slots.values()}
        return len(names) > 1 or room_for(view, request.event.project, covers) - cost < kept

    def _has_another_lease(self, view: View, request: Waiting) -> bool:
        return any(lease.session == request.event.session for lease in view.books.leases.values())

    def _is_wanted_by_larger(
        self, view: View, request: Waiting, machine: Machine, requests: Sequence[Waiting]
    ) -> bool:
        """Whether the node may be kept for a larger request, since this one could be over too late for it."""
        for other in requests:
            at = other.event
            is_larger = at.gpus > 1 or at.cpus or at.memory_bytes
            if other is request or not is_larger or not _could_ever_hold(view, other, machine):
                continue
            if any(lease.is_asked for lease in view.books.on_node(machine.agent)):
                return True
            over_ms = view.now_ms + _MINUTE + _round_up(request.walltime_ms)
            if over_ms > _starts_ms(view, other, machine):
                return True
        return False


def _fits(view: View, request: Waiting, machine: Machine) -> bool:
    """Whether the request fits into what is free or hot on a node."""
    return view.place(request, machine, ("leaves",), None) is not None


def _could_ever_hold(view: View, request: Waiting, machine: Machine) -> bool:
    slots = [slot for slot in machine.slots.values() if view.books.matches(request.event, slot)]
    return len(slots) >= view.books.number(request.event)


def _starts_ms(view: View, request: Waiting, machine: Machine) -> int:
    """Find when a request could start on a node, if every cell there takes its whole walltime."""
    at = request.event
    staying = [lease for lease in view.books.on_node(machine.agent) if lease.is_using or lease.is_over]

    def ends(lease: object) -> int:
        return lease.walltime_ms + (lease.began_ms if lease.cell else lease.granted_ms)  # type: ignore[attr-defined,no-any-return]

    staying.sort(key=ends)
    at_ms = view.now_ms
    while True:
        taken = {slot for lease in staying for slot in lease.slots}
        free = [
            name for name, slot in machine.slots.items() if name not in taken and view.books.matches(at, slot)
        ]
        cpus = machine.cpus - sum(lease.cpus for lease in staying) >= at.cpus
        memory = machine.memory_bytes - sum(lease.memory_bytes for lease in staying) >= at.memory_bytes
        if (len(free) >= view.books.number(at) and cpus and memory) or not staying:
            return at_ms
        at_ms = max(at_ms, ends(staying.pop(0)))


def _round_up(walltime_ms: int) -> int:
    return next((step for step in _STEPS if walltime_ms <= step), walltime_ms)
