"""Which slots of a node those have who are to have some there: whoever can use the fewest of them first."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bulletin.ids import SlotId
from gpu_worker.scheduler.leases.leases import LEAVING
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node, Supply
from gpu_worker.scheduler.state import State


class Seats(NamedTuple):
    """What requests are to have, and of how many slots there are too few for each."""

    slots: frozenset[SlotId]
    short: dict[Shape, int]


def supplies(state: State, node: Node) -> tuple[Supply, Supply]:
    """Sum up what is free or leaves at once, and that with what leaves when cells have had their grace."""
    if node.supplies is not None:
        return node.supplies
    soon = {slot for slot, tenant in node.tenants.items() if tenant is None}
    later, cpus, memory_bytes = set[SlotId](), [node.free_cpus] * 2, [node.free_memory_bytes] * 2
    for lease in map(state.leases.__getitem__, node.leases):
        if lease.phase in LEAVING:
            is_later = lease.phase is Phase.RECLAIMING
            (later if is_later else soon).update(lease.slots)
            for at in range(is_later, 2):
                cpus[at] += lease.cpus
                memory_bytes[at] += lease.memory_bytes
    node.supplies = (
        Supply(frozenset(soon), cpus[0], memory_bytes[0]),
        Supply(frozenset(soon | later), cpus[1], memory_bytes[1]),
    )
    return node.supplies


def seat(
    node: Node,
    shapes: Iterable[Shape],
    slots: Sequence[SlotId],
    owed: Iterable[Shape] = (),
    soon: frozenset[SlotId] = frozenset(),
) -> Seats:
    """Give requests their slots out of these, of those that serve one the first ones first.

    Those who are `owed` theirs have what is there `soon` before other slots of these.
    """
    taken: set[SlotId] = set()
    short: dict[Shape, int] = {}
    every = [*((one, False) for one in shapes), *((one, True) for one in owed)]
    for one, is_owed in sorted(every, key=lambda each: len(node.serving(each[0].lane, each[0].wants.kind))):
        serving = node.serving(one.lane, one.wants.kind)
        mine = [slot for slot in slots if slot in serving and slot not in taken]
        if is_owed:
            mine.sort(key=lambda slot: slot not in soon)
        del mine[one.need :]
        taken.update(mine)
        if len(mine) < one.need:
            short[one] = short.get(one, 0) + one.need - len(mine)
    return Seats(frozenset(taken), short)


def lack_slots(node: Node, shapes: Iterable[Shape], supply: Supply) -> int:
    """Count the slots that requests lack of this."""
    return sum(seat(node, shapes, [slot for slot in node.slots if slot in supply.slots]).short.values())


def lack_rest(shapes: Sequence[Shape], supply: Supply, beside: Shape | None = None) -> bool:
    """Whether requests lack CPUs or memory of this; with `beside` only what such a request would take of it, too."""
    cpus, memory_bytes = sum(one.wants.cpus for one in shapes), sum(one.wants.memory_bytes for one in shapes)
    takes_cpus = beside is None or beside.wants.cpus > 0
    takes_memory = beside is None or beside.wants.memory_bytes > 0
    return (takes_cpus and cpus > supply.cpus) or (takes_memory and memory_bytes > supply.memory_bytes)


def choose_slots(
    node: Node, shape: Shape, is_harmless: Callable[[tuple[SlotId, ...]], bool], promised: Sequence[Shape] = ()
) -> tuple[SlotId, ...] | None:
    """Choose the free slots that a request is given: those that cost and have least, of those that do no harm.

    What fewer of those can use to whom the node is `promised` comes before: they may have the rest at once.
    """
    free = node.free_slots(shape)
    if node.kind.is_one_type(shape.lane, shape.wants.kind):
        slots = free[: shape.need]
        return slots if is_harmless(slots) else None
    chosen: tuple[SlotId, ...] = ()
    wanted = [node.serving(one.lane, one.wants.kind) for one in promised]
    for slot in sorted(free, key=lambda slot: sum(slot in serving for serving in wanted)):
        if is_harmless((*chosen, slot)):
            chosen += (slot,)
            if len(chosen) == shape.need:
                return chosen
    return None
