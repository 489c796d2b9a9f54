"""Promise 1 of nodes with GPUs of several types: whoever can use any of them leaves one to who is owed its type."""

from bulletin.ids import SlotId
from gpu_worker.scheduler import actions as act
from tests.scheduler.promises.books import Machine, Waiting
from tests.scheduler.promises.larger_requests import is_limit_kept
from tests.scheduler.promises.lending import is_lent
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Rule


class TypeRule(Rule):
    """Judges on which GPUs of a node a request starts."""

    def action(self, action: act.Action, view: View) -> None:
        """Judge a decision before it is written down."""
        if not isinstance(action, act.Grant) or action.request not in view.books.waiting:
            return
        request, machine = view.books.waiting[action.request], view.books.machines[action.agent]
        if not any(one is request for one in view.may_run_together):
            return  # a limit lets it through, and others only where it does not start
        for other in view.may_run_together:
            slots = _serving(view, other, machine)
            if other is request or not slots < _serving(view, request, machine) or not _is_owed(view, other, request):
                continue
            if is_limit_kept(view, other):
                continue
            rest = _spare(view, request, machine)
            has_another = _has_what_leaves(view, other, request, machine, slots.difference(action.slots))
            if slots.intersection(action.slots) and len(rest) >= len(action.slots) and not has_another:
                place = view.place(other, machine, ("leaves",), view.covered(other))
                number = view.books.number(other.event)
                if place is not None and len(set(place.slots).difference(action.slots)) < number:
                    had = f"{', '.join(action.slots)} of {machine.agent}"
                    facts = f"{request} has {had}, while {', '.join(sorted(rest))} are free; {other}"
                    self.report(1, "who can use any type has the one that somebody is owed", facts)


def _serving(view: View, request: Waiting, machine: Machine) -> frozenset[SlotId]:
    return frozenset(name for name, slot in machine.slots.items() if view.books.matches(request.event, slot))


def _spare(view: View, request: Waiting, machine: Machine) -> frozenset[SlotId]:
    """Find the free slots of a node that serve a request, and nobody who can use fewer of them than it."""
    taken = {slot for lease in view.books.on_node(machine.agent) for slot in lease.slots}
    mine = _serving(view, request, machine)
    others = (_serving(view, other, machine) for other in view.books.waiting.values() if other is not request)
    asked = {slot for slots in others if slots < mine for slot in slots}
    return mine - taken - asked


def _has_what_leaves(
    view: View, other: Waiting, request: Waiting, machine: Machine, serving: frozenset[SlotId]
) -> bool:
    """Whether another request waits for a session to leave its limit, and what leaves until then is as good for it."""
    leaving = {
        slot
        for lease in view.books.on_node(machine.agent)
        if lease.is_hot and lease.is_asked
        for slot in serving.intersection(lease.slots)
    }
    cost = view.books.most_cost(other.event) + view.books.most_cost(request.event)
    return len(leaving) >= view.books.number(other.event) and any(
        (limit := view.tree.limit(side, view.guaranteed)) is not None and _held(view, side) + cost > limit
        for side in view.tree.chain(other.event.project)
        if side in view.tree.chain(request.event.project)
    )


def _held(view: View, side: Side) -> int:
    """Count what those of a project hold, with the sessions that are kept without a cell."""
    leases = view.books.leases.values()
    return sum(lease.cost for lease in leases if not lease.is_over and side in view.tree.chain(lease.project))


def _is_owed(view: View, other: Waiting, request: Waiting) -> bool:
    """Whether a guarantee covers another request beside this one, and what others keep is left beside both."""
    at = other.event
    cost = view.books.most_cost(at) + view.books.most_cost(request.event)
    covers = view.covered(other)
    is_alone = at.project != request.event.project and at.cpus == 0 and at.memory_bytes == 0
    if covers is None or not is_alone or view.used.get(covers, 0) + cost > view.guaranteed.get(covers, 0):
        return False
    return is_lent(view, at.project, cost, covers, soon=False)
