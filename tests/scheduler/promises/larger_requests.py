"""A node on which a larger request waits for running cells: who may use it meanwhile."""

from collections.abc import Iterable

from gpu_worker.scheduler.policy.projects import Preemption
from tests.scheduler.promises.books import Machine, Tenancy, Waiting
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View, once

_MINUTE = 60_000
#: Walltimes count in steps where somebody is to be over before a larger request starts.
_STEPS = [minutes * _MINUTE for minutes in (1, 2, 3, 5, 10, 15, 20, 30, 45)] + [
    hours * 60 * _MINUTE for hours in (1, 2, 3, 4, 6, 8, 12, 24, 48, 96, 168, 336, 672)
]


def is_wanted_by_larger(view: View, request: Waiting, machine: Machine, leaving: Iterable[Tenancy] = ()) -> bool:
    """Whether the node may be kept for a larger request, since this one could be over too late for it.

    It begins when those who leave for it have had their grace.
    """
    others = view.books.waiting.values()
    larger = [other for other in others if other.event.gpus > 1 or other.event.cpus or other.event.memory_bytes]
    return any(other is not request and _keeps(view, other, request, machine, leaving) for other in larger)


def is_wanted_by_late(view: View, request: Waiting, machine: Machine) -> bool:
    """Whether that is so of one that is covered and has waited for its patience: so it stands before all others (6)."""
    others = view.books.waiting.values()
    late = [other for other in others if is_late(view, other) and view.may_be_covered(other) is not None]
    return any(other is not request and _keeps(view, other, request, machine) for other in late)


def is_left_to_late(view: View, request: Waiting, machine: Machine, leaving: Iterable[Tenancy]) -> bool:
    """Whether one that has waited for its patience could begin there sooner than this is over, once these have left.

    It stands before, and is not passed (6): so they would leave for nothing (2).
    """
    gone = tuple(leaving)
    classes = (view.tree.qos.get(lease.qos) for lease in gone)
    grace_ms = max((qos.grace_ms for qos in classes if qos is not None), default=0)
    over_ms = view.now_ms + grace_ms + _MINUTE + _round_up(request.walltime_ms)
    return any(
        _starts_ms(view, other, machine, gone) < over_ms
        for other in view.books.waiting.values()
        if other is not request
        and is_late(view, other)
        and _could_ever_hold(view, other, machine)
        and view.what_holds(other, surely=True) is None
    )


def _keeps(view: View, other: Waiting, request: Waiting, machine: Machine, leaving: Iterable[Tenancy] = ()) -> bool:
    if not _could_ever_hold(view, other, machine):
        return False
    if view.what_holds(other, surely=True) is not None:
        return False
    if any(lease.is_asked for lease in view.on_node(machine.agent)):
        return True
    classes = (view.tree.qos.get(lease.qos) for lease in leaving if not lease.is_hot)
    grace_ms = max((qos.grace_ms for qos in classes if qos is not None), default=0)
    over_ms = view.now_ms + grace_ms + _MINUTE + _stays_ms(view, request, other)
    return over_ms > _starts_ms(view, other, machine)


def is_late(view: View, request: Waiting) -> bool:
    """Whether a request has waited for the patience of its class."""
    qos = view.tree.qos.get(request.event.qos)
    return qos is not None and view.now_ms - request.since_ms >= qos.patience_ms


def stays_longer(view: View, request: Waiting, lease: Tenancy) -> bool:
    """Whether a cell would surely be on its GPU for longer than a request that had it in its place."""
    qos = view.tree.qos.get(lease.qos)
    grace_ms = qos.grace_ms if qos is not None else 0
    return view.now_ms + grace_ms + _MINUTE + _round_up(request.walltime_ms) <= lease.began_ms + lease.walltime_ms


def is_limit_wanted(view: View, request: Waiting) -> bool:
    """Whether what a limit leaves may be kept inside the project: for who is impatient, or for whom room is made.

    For a class that never borrows a guarantee is such a limit.
    """
    asked = view.tree.qos.get(request.event.qos)
    never_borrows = asked is not None and asked.must_be_in_quota
    limited = {
        side
        for side in view.tree.chain(request.event.project)
        if view.tree.limit(side, view.guaranteed) is not None
        or (never_borrows and view.guaranteed.get(side, 0) > 0)
        or (side.project in view.tree.projects and view.tree.projects[side.project].user_limit_milli is not None)
    }
    is_room_made = any(lease.is_reclaimed for lease in view.books.leases.values())
    for other in view.books.waiting.values():
        is_alike = (other.event.user, other.event.qos) == (request.event.user, request.event.qos)
        if (
            is_alike
            and other is not request
            and is_room_made
            and asked is not None
            and asked.running_per_user is not None
        ):
            return True
        is_inside = other is not request and not limited.isdisjoint(view.tree.chain(other.event.project))
        is_before = is_late(view, other) or view.books.is_put_first(other)
        if is_inside and (is_room_made or is_before or _is_freed_elsewhere(view, request, other)):
            return True
    return False


def _is_freed_elsewhere(view: View, request: Waiting, other: Waiting) -> bool:
    """Whether a hot session leaves for another one, who has nothing free, and a limit of both has room for one."""
    leaving = [lease for lease in view.books.leases.values() if lease.is_asked and lease.is_hot]
    slots = [view.books.machines[lease.agent].slots.get(name) for lease in leaving for name in lease.slots]
    if not any(slot is not None and view.books.matches(other.event, slot) for slot in slots):
        return False
    if any(view.place(other, machine, (), None) is not None for machine in view.machines()):
        return False
    both = view.books.most_cost(request.event) + view.books.most_cost(other.event)
    shared = set(view.tree.chain(request.event.project)) & set(view.tree.chain(other.event.project))
    limits = ((side, view.tree.limit(side, view.guaranteed)) for side in shared)
    return any(limit is not None and view.used.get(side, 0) + both > limit for side, limit in limits)


def is_behind_late(view: View, request: Waiting) -> bool:
    """Whether another request has waited for its patience (6): it waits only for what runs already."""
    others = (other for other in view.books.waiting.values() if other is not request and is_late(view, other))
    return any(view.what_holds(other, surely=True) is None for other in others)


def is_limit_kept(view: View, request: Waiting) -> bool:
    """Whether a limit that the request is in is kept for another one, which is impatient (6), or was put first (18)."""
    for side in view.tree.chain(request.event.project):
        limit = view.tree.limit(side, view.guaranteed)
        if limit is None:
            continue
        left = limit - view.used.get(side, 0) - view.books.most_cost(request.event)
        for other in view.books.waiting.values():
            if other is request or side not in view.tree.chain(other.event.project):
                continue
            is_kept = is_late(view, other) or _is_first_there(view, other, side)
            if is_kept and left < view.books.most_cost(other.event):
                return True
    return False


def _is_first_there(view: View, request: Waiting, side: Side) -> bool:
    """Whether an admin put a request of that project first: its own limit is kept for it."""
    return view.books.is_put_first(request) and side.project == request.event.project


@once
def _could_ever_hold(view: View, request: Waiting, machine: Machine) -> bool:
    if not view.books.is_of_size(request.event, machine):
        return False
    slots = [slot for slot in machine.slots.values() if view.books.matches(request.event, slot)]
    return len(slots) >= view.books.number(request.event)


@once
def _starts_ms(view: View, request: Waiting, machine: Machine, gone: tuple[Tenancy, ...] = ()) -> int:
    """Find when a request could start on a node, if cells there take their whole walltime, or are taken back.

    Those that are `gone` are not there. That may be for it, or for somebody else who could run there: then they are
    over by their walltime first.
    """
    at = request.event
    others = [one for one in view.books.waiting.values() if one is request or _could_ever_hold(view, one, machine)]
    takers = [(one, view.may_be_covered(one), 0 if one is request else one.walltime_ms) for one in others]
    there = [lease for lease in view.on_node(machine.agent) if lease.is_using or lease.is_over]
    staying = [lease for lease in there if lease not in gone]

    def ends(lease: Tenancy) -> int:
        begin_ms = lease.began_ms if lease.cell else lease.granted_ms
        end_ms = begin_ms + lease.walltime_ms + lease.more_ms
        qos = view.tree.qos.get(lease.qos)
        rights = ("borrowed", "lower class")
        stays_ms = [more_ms for one, covers, more_ms in takers if view.why_taken(lease, one, covers) in rights]
        if qos is None or not stays_ms:
            return end_ms
        return min(end_ms, max(view.now_ms, begin_ms + qos.min_runtime_ms) + qos.grace_ms + min(stays_ms))

    staying.sort(key=ends)
    at_ms = view.now_ms
    while True:
        taken = {slot for lease in staying for slot in lease.slots}
        free = [name for name, slot in machine.slots.items() if name not in taken and view.books.matches(at, slot)]
        cpus = machine.cpus - sum(lease.cpus for lease in staying) >= at.cpus
        memory = machine.memory_bytes - sum(lease.memory_bytes for lease in staying) >= at.memory_bytes
        if (len(free) >= view.books.number(at) and cpus and memory) or not staying:
            return at_ms
        at_ms = max(at_ms, ends(staying.pop(0)))


def _stays_ms(view: View, request: Waiting, other: Waiting) -> int:
    """Find for how long a request may be where another one waits: until it is over, or taken back for that one."""
    stays_ms, qos = _round_up(request.walltime_ms), view.tree.qos.get(request.event.qos)
    covers, inside = view.covered_soon(other), view.tree.chain(request.event.project)
    if covers is not None and _is_given_to_others(view, other, covers):
        return stays_ms
    if qos is None or qos.preemption is Preemption.NEVER or covers is None or covers in inside:
        return stays_ms
    is_borrowed = view.covered(request) is None
    return min(stays_ms, qos.min_runtime_ms + qos.grace_ms) if is_borrowed else stays_ms


def _is_given_to_others(view: View, request: Waiting, covers: Side) -> bool:
    """Whether room is made for somebody, with whom the guarantee may have too little left for the request."""
    if not any(lease.is_reclaimed for lease in view.books.leases.values()):
        return False
    others = [other for other in view.books.waiting.values() if other is not request]
    most = max(
        (view.books.most_cost(one.event) for one in others if covers in view.tree.chain(one.event.project)), default=0
    )
    return view.used.get(covers, 0) + view.books.most_cost(request.event) + most > view.guaranteed.get(covers, 0)


def _round_up(walltime_ms: int) -> int:
    return next((step for step in _STEPS if walltime_ms <= step), walltime_ms)
