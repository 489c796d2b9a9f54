"""A node: what a connected agent offers, and what of it is free, leaving or hot."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from bulletin.ids import AgentId, LeaseId, SlotId, UserName
from gpu_worker.scheduler.events import NOBODY, Slot
from gpu_worker.scheduler.leases.leases import LEAVING, USING, Lease, insert_hot
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import PLAIN, Amount, Lane, SlotKind, lane_of
from gpu_worker.scheduler.leases.shapes import Shape


class Counts(msgspec.Struct):
    """One lane of one node, in slots. Index over the node's tenants."""

    capacity: int = 0
    free: int = 0
    leaving: int = 0  #: of leases that are reclaiming, evicting or ending
    reclaiming: int = 0  #: of those, in use by cells that have their grace
    hot: int = 0
    hot_leases: dict[LeaseId, None] = msgspec.field(default_factory=dict)  #: least recently used first
    ends_ms: list[int] | None = None  #: what `State.ends_ms` says, once it was asked for


class Supply(NamedTuple):
    """What of a node is free, or on its way out."""

    slots: frozenset[SlotId]
    cpus: int
    memory_bytes: int

    def without(self, slots: Iterable[SlotId], shape: Shape) -> "Supply":
        """Take what such a request has there, on these slots."""
        wants = shape.wants
        return Supply(self.slots.difference(slots), self.cpus - wants.cpus, self.memory_bytes - wants.memory_bytes)


class NodeKind(msgspec.Struct, frozen=True, eq=False):
    """What nodes with alike slots, CPUs and memory could hold if nothing ran there. There is one for all of them.

    What follows from that never changes, and is remembered once it was asked for.
    """

    offered: dict[Lane, tuple[Slot, ...]]  #: by lane, without their names on the node
    cpus: int
    memory_bytes: int
    #: The longest walltime of what is over before such a node is to be drained; None where it is not.
    longest_ms: int | None = None
    _serving_cache: dict[tuple[Lane, SlotKind], frozenset[int]] = msgspec.field(default_factory=dict)
    _holds_cache: dict[Shape, bool] = msgspec.field(default_factory=dict)
    _is_all_cache: dict[Shape, bool] = msgspec.field(default_factory=dict)
    _shares_cache: dict[tuple[Lane, SlotKind, SlotKind], bool] = msgspec.field(default_factory=dict)
    _is_one_type_cache: dict[tuple[Lane, SlotKind], bool] = msgspec.field(default_factory=dict)

    def _of_kind(self, lane: Lane, kind: SlotKind) -> frozenset[int]:
        """Select the slots of a lane that are of a kind, by their places."""
        if (lane, kind) not in self._serving_cache:
            slots = enumerate(self.offered[lane])
            self._serving_cache[lane, kind] = frozenset(place for place, slot in slots if kind.serves(slot))
        return self._serving_cache[lane, kind]

    def holds(self, shape: Shape) -> bool:
        """Whether such a node could hold such a request, until it is over, if nothing ran there."""
        if shape not in self._holds_cache:
            wants = shape.wants
            enough = len(self._of_kind(shape.lane, wants.kind)) >= shape.need
            enough = enough and (not wants.is_exclusive or self._is_whole(shape))
            enough = enough and (self.longest_ms is None or shape.walltime_ms <= self.longest_ms)
            self._holds_cache[shape] = enough and wants.cpus <= self.cpus and wants.memory_bytes <= self.memory_bytes
        return self._holds_cache[shape]

    def _is_whole(self, shape: Shape) -> bool:
        """Whether the slots that such a request has are all of such a node."""
        there = sum(len(slots) for slots in self.offered.values())
        return shape.need == there == len(self._of_kind(shape.lane, shape.wants.kind))

    def over_within(self, longest_ms: int | None) -> "NodeKind":
        """Make the same kind of a node that is drained so soon that no cell may run longer; None is: it is not."""
        return msgspec.structs.replace(self, longest_ms=longest_ms, _holds_cache={})

    def is_all(self, shape: Shape) -> bool:
        """Whether all slots of the lane serve such a request, and slots are all that it needs."""
        if shape not in self._is_all_cache:
            serving = self._of_kind(shape.lane, shape.wants.kind)
            self._is_all_cache[shape] = not shape.wants.is_more and len(serving) == len(self.offered[shape.lane])
        return self._is_all_cache[shape]

    def is_one_type(self, lane: Lane, kind: SlotKind = PLAIN.kind) -> bool:
        """Whether all slots of a lane that are of a kind are alike."""
        if (lane, kind) not in self._is_one_type_cache:
            found = {self.offered[lane][place] for place in self._of_kind(lane, kind)}
            self._is_one_type_cache[lane, kind] = len(found) <= 1
        return self._is_one_type_cache[lane, kind]

    def leaves_some(self, one: Shape, other: Shape) -> bool:
        """Whether the first serves itself of slots of a lane, and the other could use some more of them."""
        mine, its = self._of_kind(one.lane, one.wants.kind), self._of_kind(other.lane, other.wants.kind)
        return one.lane == other.lane and bool(mine) and not its <= mine

    def are_rivals(self, one: Shape, other: Shape) -> bool:
        """Whether two requests could use the same slot, CPU or memory of such a node."""
        mine, its = one.wants, other.wants
        if one.lane == other.lane:
            if mine.kind == its.kind:
                return True
            asked = one.lane, mine.kind, its.kind
            if asked not in self._shares_cache:
                slots = self._of_kind(one.lane, mine.kind)
                self._shares_cache[asked] = not slots.isdisjoint(self._of_kind(other.lane, its.kind))
            if self._shares_cache[asked]:
                return True
        return bool((mine.cpus and its.cpus) or (mine.memory_bytes and its.memory_bytes))

    def stands_for(self, one: Shape, other: Shape) -> bool:
        """Whether whoever is a rival of the other is one of this one too."""
        mine, its = one.wants, other.wants
        if one.lane != other.lane or (its.cpus and not mine.cpus) or (its.memory_bytes and not mine.memory_bytes):
            return False
        return mine.kind == its.kind or self._of_kind(one.lane, mine.kind) >= self._of_kind(one.lane, its.kind)


class Node(msgspec.Struct):
    """A connected agent and what it offers."""

    agent: AgentId
    name: str
    seq: int
    kind: NodeKind
    slots: dict[SlotId, Slot]
    tenants: dict[SlotId, LeaseId | None]
    leases: dict[LeaseId, None]
    lanes: dict[Lane, Counts]
    owner: UserName = NOBODY  #: who has brought it for themselves; empty is the pool's
    is_drained: bool = False  #: it is given nothing more
    whole_kind: NodeKind | None = None  #: what it is of when it is not to be drained, where it is
    cpus: int = 0
    memory_bytes: int = 0  #: of the host
    free_cpus: int = 0
    free_memory_bytes: int = 0
    changes: int = 0  #: how often what is free, leaves or is hot has changed
    used: int = 0  #: by cells that run or are about to, thousandths of a GPU
    #: CPUs, memory, and slots by lane and kind that are free or of leases that leave or are hot, once asked for.
    soon: tuple[int, int, dict[tuple[Lane, SlotKind], int]] | None = None
    #: What is free or leaves at once, and that with what leaves later, once asked for.
    supplies: tuple[Supply, Supply] | None = None
    #: What follows from the slots, which never change, once it was asked for.
    _serving_cache: dict[tuple[Lane, SlotKind], tuple[SlotId, ...]] = msgspec.field(default_factory=dict)

    def serving(self, lane: Lane, kind: SlotKind) -> tuple[SlotId, ...]:
        """List slots of a lane that are of a kind: those that cost and have least first, then as the node has them."""
        if (lane, kind) not in self._serving_cache:
            of_kind = [slot for slot in self.slots.values() if lane_of(slot) == lane and kind.serves(slot)]
            of_kind.sort(key=lambda slot: (slot.milli, slot.memory_bytes))
            self._serving_cache[lane, kind] = tuple(slot.id for slot in of_kind)
        return self._serving_cache[lane, kind]

    def holds(self, shape: Shape) -> bool:
        """Whether it could hold such a request, until it is over, if nothing ran there."""
        return self.kind.holds(shape)

    def could_hold(self, shape: Shape) -> bool:
        """Whether it could hold such a request if nothing ran there, and it were not to be drained."""
        return (self.whole_kind or self.kind).holds(shape)

    def end_by(self, longest_ms: int | None) -> None:
        """Hold from now on only what runs no longer; None is: it holds all again."""
        whole = self.whole_kind or self.kind
        if longest_ms is None:
            self.kind, self.whole_kind = whole, None
        elif self.kind.longest_ms != longest_ms:
            self.kind, self.whole_kind = whole.over_within(longest_ms), whole

    def is_all(self, shape: Shape) -> bool:
        """Whether all slots of the lane serve such a request, and slots are all that it needs."""
        return self.kind.is_all(shape)

    def free(self, shape: Shape) -> Amount:
        """Sum up what is free of what such a request may use."""
        if self.is_all(shape):
            return Amount(self.lanes[shape.lane].free)
        free = sum(self.tenants[slot] is None for slot in self.serving(shape.lane, shape.wants.kind))
        return Amount(free, self.free_cpus, self.free_memory_bytes)

    def part_of(self, lease: Lease, shape: Shape) -> Amount:
        """Sum up what a lease has of what such a request may use."""
        if lease.lane != shape.lane:
            return Amount(0, lease.cpus, lease.memory_bytes)
        serving = self.serving(shape.lane, shape.wants.kind)
        are_all = len(serving) == self.lanes[shape.lane].capacity
        number = len(lease.slots) if are_all else sum(slot in serving for slot in lease.slots)
        return Amount(number, lease.cpus, lease.memory_bytes)

    def device_of(self, slots: tuple[SlotId, ...]) -> Literal["gpu", "cpu"]:
        """Tell what these slots are; a slice is a GPU, and so is any of them where there are none."""
        return "cpu" if slots and all(self.slots[slot].kind == "cpu" for slot in slots) else "gpu"

    def size_of(self, slots: tuple[SlotId, ...]) -> tuple[int, int]:
        """Sum up the cost and the memory of some slots."""
        each = [self.slots[slot] for slot in slots]
        return sum(slot.milli for slot in each), sum(slot.memory_bytes for slot in each)

    def free_slots(self, shape: Shape) -> tuple[SlotId, ...]:
        """List the free slots that serve such a request: those that cost and have least first."""
        return tuple(slot for slot in self.serving(shape.lane, shape.wants.kind) if self.tenants[slot] is None)

    def count(self, lease: Lease, sign: Literal[1, -1], leases: Mapping[LeaseId, Lease]) -> None:
        """Add or take a lease in its present phase to or from what is in use, hot and leaving."""
        counts, slots = self.lanes[lease.lane], sign * len(lease.slots)
        if lease.phase in USING:
            self.used += sign * lease.cost
        if lease.phase in LEAVING:
            counts.leaving += slots
            counts.reclaiming += slots if lease.phase is Phase.RECLAIMING else 0
        if lease.phase is Phase.HOT:
            counts.hot += slots
            if sign > 0:
                insert_hot(leases, counts.hot_leases, lease, None)
            else:
                del counts.hot_leases[lease.id]

    def seat(self, lease: Lease) -> None:
        """Give a lease its slots, which are free, and what else it asked for."""
        for slot in lease.slots:
            assert self.tenants[slot] is None, f"slot {slot} would have two tenants"
            self.tenants[slot] = lease.id
        self.leases[lease.id] = None
        self._free(lease, -1)

    def unseat(self, lease: Lease) -> None:
        """Take from a lease all that it has here."""
        for slot in lease.slots:
            self.tenants[slot] = None
        del self.leases[lease.id]
        self._free(lease, +1)

    def _free(self, lease: Lease, sign: Literal[1, -1]) -> None:
        self.lanes[lease.lane].free += sign * len(lease.slots)
        self.free_cpus += sign * lease.cpus
        self.free_memory_bytes += sign * lease.memory_bytes
