"""Promise 1: what is guaranteed comes within the reclaim time; and 12 and 13, the same inside a project.

Of each side the GPUs that it is owed are counted, by requests that any GPU serves: each has its own clock, and what
comes pays the oldest. Requests that want more than that, or that take from their own project, have a clock each.
"""

import dataclasses
from collections.abc import Sequence

from bulletin.ids import RequestId
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.projects import GPU_MILLI, show_gpus
from tests.scheduler.promises.books import Tenancy, Waiting
from tests.scheduler.promises.coverage import is_borrowed_for
from tests.scheduler.promises.kept_guarantee import is_guarantee_kept
from tests.scheduler.promises.larger_requests import (
    is_behind_late,
    is_left_to_late,
    is_limit_kept,
    is_wanted_by_larger,
    is_wanted_by_late,
    stays_longer,
)
from tests.scheduler.promises.lending import kept_from, room_for
from tests.scheduler.promises.reclaim_time import ReclaimTime
from tests.scheduler.promises.served_first import is_behind_served
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import Place, View
from tests.scheduler.promises.violations import Report, Rule, seconds


@dataclasses.dataclass(slots=True)
class Clock:
    """Since when something is owed, and until when it has to be there."""

    since_ms: int
    until_ms: int
    promise: int
    facts: str
    known: frozenset[str] = frozenset()  #: leases that could go when it began
    covers: Side | None = None  #: whose guarantee covers it
    has_left_over: bool = False  #: it waits for what a cell leaves that goes for somebody else


def is_simple(view: View, request: Waiting) -> bool:
    """Whether any GPU of the pool serves the request."""
    at = request.event
    kinds = {(slot.kind, slot.milli) for machine in view.books.machines.values() for slot in machine.slots.values()}
    asks = at.gpu_type or at.gpu_memory_bytes or at.cpus or at.memory_bytes or at.is_exclusive
    return at.gpus == 1 and not asks and not any(kind == "mig" for kind, _ in kinds)


class GuaranteeRule(Rule):
    """Keeps the clocks, and judges those that have run out."""

    def __init__(self, report: Report, times: ReclaimTime) -> None:
        super().__init__(report)
        self.times = times
        self.debts: dict[Side, list[Clock]] = {}
        self.clocks: dict[tuple[str, int], Clock] = {}
        self._asked: set[str] = set()
        self._moved: dict[str, tuple[Side, ...]] = {}  #: cells that somebody else of these sides takes back

    def restart(self) -> None:
        """Begin all clocks anew."""
        self.debts, self.clocks = {}, {}

    def elapse(self, now_ms: int) -> None:
        """Judge what is still owed."""
        for side, debts in self.debts.items():
            if debts and debts[0].until_ms < now_ms:
                waited = seconds(now_ms - debts[0].since_ms)
                self.report(
                    1, "a guarantee does not come", f"{side} has been owed a GPU for {waited}; {debts[0].facts}"
                )
                debts[0].until_ms = 1 << 62
        for (request, promise), clock in self.clocks.items():
            if clock.until_ms < now_ms:
                waited = seconds(now_ms - clock.since_ms)
                what = {
                    1: "a covered request does not get its GPUs",
                    12: "a higher class waits for a lower one of its project",
                    13: "a user waits for another one's part of their project",
                }[promise]
                self.report(promise, what, f"{request} for {waited}; {clock.facts}")
                clock.until_ms = 1 << 62

    def event(self, event: ev.Event, view: View) -> None:
        """Give more time where somebody who was asked to leave began a cell instead."""
        if isinstance(event, ev.CellStarted) and event.lease in self._asked:
            until = view.now_ms + self.times.longest_ms(view)
            for clock in [*self.clocks.values(), *(clock for debts in self.debts.values() for clock in debts)]:
                clock.until_ms = max(clock.until_ms, until)

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Take in what is owed now."""
        self._asked = {lease.lease for lease in view.books.leases.values() if lease.is_asked}
        for name in [name for name in self._moved if name not in view.books.leases]:
            for side in self._moved.pop(name):  # who had that GPU asks for another one from now on
                del self.debts.get(side, [])[:1]
        granted = [action for action in actions if isinstance(action, act.Grant)]
        self._pay(view, granted)
        given = [view.books.leases[one.lease] for one in granted if one.lease in view.books.leases]
        may_run = [
            request
            for request in view.may_run_together
            if not is_limit_kept(view, request)
            and not is_guarantee_kept(view, request)
            and not is_behind_served(view, request)
        ]
        self._count_debts(view, may_run)
        names = [action.lease for action in actions if isinstance(action, act.Reclaim | act.Pause)]
        given_back = [view.books.leases[name] for name in names if name in view.books.leases]
        self._note_moved(view, given_back)
        self._note_taken_later(view, given_back)
        running: dict[tuple[str, int], Clock] = {}
        for request in may_run:
            for promise, place, covers in self._places(view, request):
                key = (request.event.request, promise)
                clock = self.clocks.get(key)
                if clock is None or any(_is_served_with(view, request, lease) for lease in given):
                    leaving = "; ".join(map(str, place.leaving)) or "nobody has to leave"
                    facts = f"{request}, covered by {covers or 'nothing'}, could have {place.agent}: {leaving}"
                    until_ms = self.times.until(view, place.leaving, together=not is_simple(view, request))
                    if promise == 13:  # shares are looked at every so often
                        until_ms += view.tree.settings.share_every_ms
                    clock = Clock(view.now_ms, until_ms, promise, facts, covers=covers)
                if promise != 1:  # what is taken back already may have a longer grace
                    taken = [lease for lease in given_back if lease.project == request.event.project]
                    _extend(clock, self.times, view, taken)
                running[key] = clock
        self.clocks = running

    def _places(self, view: View, request: Waiting) -> list[tuple[int, Place, Side | None]]:
        covers = view.covered(request)
        found: list[tuple[int, Place, Side | None]] = []
        wanted: list[tuple[int, tuple[str, ...]]] = []
        costs = view.books.most_cost(request.event) > 0  # a guarantee is one of GPUs
        if covers is not None and costs and not kept_from(view, request.event.project, covers):
            wanted.append((1, ("hot", "leaves", "borrowed")))
        others = [other for other in view.books.waiting.values() if other.event.project == request.event.project]
        is_open = not any(map(view.books.is_put_first, others))  # else whoever is first waits for whatever it does
        is_alone = covers is not None or view.is_one_project
        lends_all = all(one.lending_limit_milli is None for one in view.tree.projects.values())
        if is_open and is_simple(view, request) and (is_alone or lends_all):
            wanted += [(12, ("lower class",)), *([(13, ("fair part",))] if is_alone else ())]
        for promise, ways in wanted:
            if promise != 1 and found and found[0][0] == 1:
                break  # what is covered for it elsewhere comes first
            found_places = [
                (machine, place)
                for machine in view.machines()
                if (place := view.place(request, machine, ways, covers)) is not None
            ]
            there = [
                place
                for machine, place in found_places
                if (promise == 1 and not is_wanted_by_late(view, request, machine))
                or (promise != 1 and place.leaving and not is_wanted_by_larger(view, request, machine, place.leaving))
            ]
            if promise != 1:
                there = [place for place in there if not _is_lenders(view, request, promise, place, covers)]
            if promise == 12:
                there = [
                    place
                    for machine, place in found_places
                    if place in there and not is_left_to_late(view, request, machine, place.leaving)
                ]
            if promise != 1 and (not is_alone or is_behind_late(view, request)):  # who could have the place sooner
                there = [place for place in there if all(stays_longer(view, request, one) for one in place.leaving)]
            if there:
                every = [lease for place in there for lease in place.leaving]
                every += [lease for lease in view.books.leases.values() if lease.is_reclaimed]
                found.append((promise, there[0]._replace(leaving=tuple(every)), covers))
        return found

    def _note_taken_later(self, view: View, given_back: Sequence[Tenancy]) -> None:
        """Give more time where a cell is taken back that ran already, and is borrowed only from a later time on.

        And where one is that whoever is owed something by the same guarantee has to yield: to one inside, or to a
        higher class of its project (12). And once to one request where one is that leaves a GPU for it beside what
        somebody else needs: whoever is to have that has nobody else go (2).
        """
        for side, debts in self.debts.items():
            yielded = [lease for lease in given_back if side in self._moved.get(lease.lease, ())]
            for debt in debts:
                ran = [one for one in given_back if one.lease not in debt.known and one.began_ms <= debt.since_ms]
                could_serve = [one for one in ran if one.cost and _is_for(view, one, side)]
                _extend(debt, self.times, view, [*could_serve, *yielded])
        for (name, _), clock in self.clocks.items():
            yielded = [lease for lease in given_back if clock.covers in self._moved.get(lease.lease, ())]
            ran = [one for one in given_back if clock.promise == 1 and one.began_ms <= clock.since_ms]
            request = view.books.waiting.get(RequestId(name))
            left_over = [one for one in ran if request is not None and _leaves_over(view, one, request)]
            _extend(clock, self.times, view, yielded if clock.has_left_over else [*yielded, *left_over])
            clock.has_left_over |= bool(left_over)

    def _note_moved(self, view: View, given_back: Sequence[Tenancy]) -> None:
        """Note which cells are taken back that only a side covers, for one inside it; or for a higher class of it."""
        nearer = [side for one in view.books.waiting.values() if (side := view.covered(one)) is not None]
        inside = {above for side in nearer for above in view.tree.chain(side.project) if above != side}
        for lease in given_back:
            by = view.covers.get(lease.lease)
            if _is_for_higher(view, lease):
                self._moved[lease.lease] = view.tree.chain(lease.project)
            elif by is not None and by in inside:
                self._moved[lease.lease] = (by,)

    def _pay(self, view: View, granted: Sequence[act.Grant]) -> None:
        """Take what has come from the oldest of what was owed: others may be owed something from now on."""
        for lease in [view.books.leases[grant.lease] for grant in granted if grant.lease in view.books.leases]:
            for side in view.tree.chain(lease.project):
                del self.debts.get(side, [])[: lease.cost // GPU_MILLI]

    def _count_debts(self, view: View, may_run: Sequence[Waiting]) -> None:
        simple = [request for request in may_run if is_simple(view, request) and view.covered(request) is not None]
        wanted = dict(view.used)
        for request in simple:
            for side in view.tree.chain(request.event.project):
                wanted[side] = wanted.get(side, 0) + GPU_MILLI
        owed = {
            side: count
            for side in wanted
            if (count := (min(wanted[side], view.guaranteed.get(side, 0)) - view.used.get(side, 0)) // GPU_MILLI) > 0
        }
        self.debts = {side: debts for side, debts in self.debts.items() if side in owed}
        for side, count in owed.items():
            claimant = next(request for request in reversed(simple) if side in view.tree.chain(request.event.project))
            ways = ("hot", "leaves", "borrowed")
            one = [view.slots_for(claimant, machine, ways, side) for machine in view.machines()]
            slots, leaving = sum(len(slots) for slots, _ in one), [lease for _, going in one for lease in going]
            if slots < view.demand(may_run) or kept_from(view, claimant.event.project, side):
                self.debts.pop(side, None)
                continue
            debts = self.debts.setdefault(side, [])
            del debts[: max(0, len(debts) - count)]
            while len(debts) < count:
                uses = f"it uses {show_gpus(view.used.get(side, 0))} of {show_gpus(view.guaranteed[side])}"
                going = "; ".join(map(str, leaving)) or "GPUs were free"
                facts = f"{uses}; {claimant} waited; could go: {going}"
                known = frozenset(lease.lease for lease in leaving)
                debts.append(Clock(view.now_ms, self.times.until(view, leaving), 1, facts, known))


def _is_for(view: View, lease: Tenancy, side: Side) -> bool:
    """Whether a cell that is taken back is borrowed, seen from a side that is owed something, or leaves that a GPU."""
    if is_borrowed_for(view.tree, lease, view.covers.get(lease.lease), side.project, side):
        return True
    inside = (one for one in view.books.waiting.values() if side in view.tree.chain(one.event.project))
    return any(_leaves_over(view, lease, one) for one in inside)


def _extend(clock: Clock, times: ReclaimTime, view: View, leaving: Sequence[Tenancy]) -> None:
    """Give so much more time that all of these can have left."""
    if leaving:
        clock.until_ms = max(clock.until_ms, times.until(view, leaving))


def _leaves_over(view: View, lease: Tenancy, request: Waiting) -> bool:
    """Whether a cell that goes leaves a GPU that serves a request, beside what somebody needs for whom it may go."""
    books, there = view.books, view.books.machines[lease.agent]
    if not books.is_of_size(request.event, there):
        return False
    slots = [there.slots[name] for name in lease.slots]
    for other in books.waiting.values():
        theirs = [slot for slot in slots if books.matches(other.event, slot)]
        is_right = view.covered(other) is not None or other.event.project == lease.project
        if other is request or not is_right or not theirs or not books.is_of_size(other.event, there):
            continue
        besides = [slot for slot in theirs if not books.matches(request.event, slot)]
        taken = max(0, books.number(other.event) - len(besides))
        if sum(books.matches(request.event, slot) for slot in slots) > taken:
            return True
    return False


def _is_served_with(view: View, request: Waiting, lease: Tenancy) -> bool:
    """Whether what was granted is of the request's own sides, or is something that it could have had."""
    sides = view.tree.chain(request.event.project)
    there = view.books.machines[lease.agent].slots
    could_have = any(view.books.matches(request.event, there[name]) for name in lease.slots)
    return could_have or not set(sides).isdisjoint(view.tree.chain(lease.project))


def _is_for_higher(view: View, lease: Tenancy) -> bool:
    """Whether a request of a higher class of a cell's own project waits."""
    own, waiting = view.tree.qos.get(lease.qos), (request.event for request in view.books.waiting.values())
    classes = (view.tree.qos.get(at.qos) for at in waiting if at.project == lease.project)
    return own is not None and any(one is not None and one.priority > own.priority for one in classes)


def _is_lenders(view: View, request: Waiting, promise: int, place: Place, covers: Side | None) -> bool:
    """Whether a lending limit keeps what a request would take in its own project, also once those there have left.

    For its part of a user's it takes no more than one cell.
    """
    kept = kept_from(view, request.event.project, covers)
    costs = [lease.cost for lease in place.leaving if lease.is_using]
    given_back = max(costs, default=0) if promise == 13 else sum(costs)
    room = room_for(view, request.event.project, covers, soon=False) + given_back
    return kept > 0 and room - view.books.most_cost(request.event) < kept
