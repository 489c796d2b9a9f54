"""What a request lacks on a node: questions only, answered on counts."""

from collections.abc import Mapping, Sequence

from bulletin.ids import AgentId, SlotId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.resources import LANES, Amount, Lane, SlotKind
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.keep_time import is_kept_from, kept_until_ms
from gpu_worker.scheduler.placement.seats import lack_rest, lack_slots, seat, supplies
from gpu_worker.scheduler.state import State

#: What requests ahead are to have on a node.
Claims = Mapping[AgentId, list[Shape]]


def needed(shape: Shape) -> Amount:
    """Sum up what such a request takes of a node."""
    return Amount(shape.need, shape.wants.cpus, shape.wants.memory_bytes)


def missing(
    state: State,
    node: Node,
    shape: Shape,
    claims: Claims,
    *,
    at_once: bool = False,
    slow: Sequence[Shape] = (),
    but: frozenset[SlotId] = frozenset(),
    owed: Sequence[Shape] = (),
) -> Amount:
    """Compute what such a request lacks there beside what `left_there` says is left."""
    left = left_there(state, node, shape, claims, at_once=at_once, slow=slow, but=but, owed=owed)
    return needed(shape).less(left)


def left_there(
    state: State,
    node: Node,
    shape: Shape,
    claims: Claims,
    *,
    at_once: bool = False,
    slow: Sequence[Shape] = (),
    but: frozenset[SlotId] = frozenset(),
    owed: Sequence[Shape] = (),
) -> Amount:
    """Compute what there is for such a request once all that leaves has left, and those ahead have what they claim.

    It is the same for all that use the same (`uses_of`), however much they need; below 0 is what those ahead lack.
    CPUs and memory are counted for who needs any. `at_once` leaves out cells that have a grace: those ahead that are
    `slow` have their places first, and others have what is free or leaves without one. Slots in `but` are not for it,
    and those who are `owed` theirs have what is free.
    """
    claimed = claims.get(node.agent, ())
    split = _split(claimed, slow if at_once else None, shape)
    slots = _slots_left(state, node, shape, split, owed, at_once=at_once, but=but)
    if not shape.wants.is_more:
        return Amount(slots)
    cpus, memory_bytes = supplies(state, node)[not at_once][1:]
    for one in (*claimed, *owed):
        cpus -= one.wants.cpus
        memory_bytes -= one.wants.memory_bytes
    return Amount(slots, cpus, memory_bytes)


#: What a request uses of a node: slots of a lane and kind, and whether CPUs and memory.
Uses = tuple[Lane, SlotKind, bool, bool]


def uses_of(shape: Shape) -> Uses:
    """Tell what such a request uses of a node: to those that use the same as much is left."""
    return shape.lane, shape.wants.kind, shape.wants.cpus > 0, shape.wants.memory_bytes > 0


def _split(
    claims: Sequence[Shape], slow: Sequence[Shape] | None, shape: Shape
) -> tuple[Sequence[Shape], Sequence[Shape]]:
    """Split those in the lane of such a request into those that may wait for a grace, and others; None is all may."""
    claimed = [one for one in claims if one.lane == shape.lane]
    if slow is None or not claimed:
        return claimed, ()
    left, patient, others = list(slow), list[Shape](), list[Shape]()
    for one in claimed:
        if one in left:
            left.remove(one)
            patient.append(one)
        else:
            others.append(one)
    return patient, others


def _slots_left(
    state: State,
    node: Node,
    shape: Shape,
    claims: tuple[Sequence[Shape], Sequence[Shape]],
    owed: Sequence[Shape],
    *,
    at_once: bool,
    but: frozenset[SlotId],
) -> int:
    """Count the slots that such a request has there beside these; below 0 is what those lack of the same."""
    (slow, others), counts = claims, node.lanes[shape.lane]
    serving = node.serving(shape.lane, shape.wants.kind)
    are_alike = not owed and (not (slow or others) or node.kind.is_one_type(shape.lane))
    if are_alike and not but and len(serving) == counts.capacity:
        number = sum(one.need for one in slow)
        number = max(number, counts.reclaiming) if at_once else number
        return counts.free + counts.leaving - number - sum(one.need for one in others)
    soon, later = supplies(state, node)
    mine = soon if at_once else later
    if not slow and not others and not owed:
        return sum(slot in mine.slots and slot not in but for slot in serving)
    every = sorted(
        (slot for slot in node.slots if slot in later.slots), key=lambda one: (one in serving, one in soon.slots)
    )
    taken = seat(node, slow, every, [*others, *owed], soon.slots)
    short = sum(number for one, number in taken.short.items() if node.kind.are_rivals(one, shape))
    return sum(slot in mine.slots and slot not in taken.slots and slot not in but for slot in serving) - short


def is_spare(
    state: State,
    node: Node,
    shape: Shape,
    slots: Sequence[SlotId],
    promised: Sequence[Shape],
    slow: Sequence[Shape] = (),
) -> bool:
    """Whether those to whom a node is promised have it no later although such a request takes these slots of it.

    That is: what leaves is enough for them, and those who need not wait for a grace wait for none. Those of them that
    are `slow` wait for a grace whatever is free.
    """
    if not promised:
        return True
    soon, later = supplies(state, node)
    then = later.without(slots, shape)
    if lack_slots(node, promised, then) > lack_slots(node, promised, later) or lack_rest(promised, then, shape):
        return False
    left, in_time = list(slow), list[Shape]()
    for one in promised:
        if one in left:
            left.remove(one)
        elif not lack_slots(node, [*in_time, one], soon) and not lack_rest([*in_time, one], soon):
            in_time.append(one)
    then = soon.without(slots, shape)
    return not lack_slots(node, in_time, then) and not lack_rest(in_time, then, shape)


def hot_leases(state: State, node: Node, shape: Shape, account: Account | None = None) -> list[Lease]:
    """Hot leases of the node that such a request may have the place of, least recently used first.

    With `account`, that of the request's project, without those that are kept from it, and other kept ones last.
    """
    leases = [state.leases[hot] for lane in LANES for hot in node.lanes[lane].hot_leases]
    if not shape.wants.is_more:
        leases = [lease for lease in leases if lease.lane == shape.lane]
    else:
        leases.sort(key=lambda lease: lease.used)
    if account is None or not state.accounts.keeps_hot:
        return leases
    leases = [lease for lease in leases if not is_kept_from(state, lease, account, shape.cost)]
    return sorted(leases, key=lambda lease: kept_until_ms(state, lease) is not None)
