"""A node: what a connected agent offers, and what of it is free, leaving or hot."""

import msgspec

from bulletin.ids import AgentId, LeaseId, SlotId
from gpu_worker.scheduler.events import Slot
from gpu_worker.scheduler.leases import Lease
from gpu_worker.scheduler.resources import Amount, Lane, SlotKind, lane_of
from gpu_worker.scheduler.shapes import Shape


class Counts(msgspec.Struct):
    """One lane of one node, in slots. Index over the node's tenants."""

    capacity: int = 0
    free: int = 0
    leaving: int = 0  #: of leases that are reclaiming, evicting or ending
    reclaiming: int = 0  #: of those, in use by cells that have their grace
    hot: int = 0
    hot_leases: dict[LeaseId, None] = msgspec.field(default_factory=dict)  #: least recently used first
    ends_ms: list[int] | None = None  #: what `State.ends_ms` says, once it was asked for


class Node(msgspec.Struct):
    """A connected agent and what it offers."""

    agent: AgentId
    name: str
    seq: int
    slots: dict[SlotId, Slot]
    tenants: dict[SlotId, LeaseId | None]
    leases: dict[LeaseId, None]
    lanes: dict[Lane, Counts]
    is_drained: bool = False  #: it is given nothing more
    cpus: int = 0
    memory_bytes: int = 0  #: of the host
    free_cpus: int = 0
    free_memory_bytes: int = 0
    used: int = 0  #: by cells that run or are about to, thousandths of a GPU
    #: What follows from the slots, which never change, once it was asked for.
    _serving: dict[tuple[Lane, SlotKind], tuple[SlotId, ...]] = msgspec.field(default_factory=dict)
    _holds: dict[Shape, bool] = msgspec.field(default_factory=dict)
    _is_all: dict[Shape, bool] = msgspec.field(default_factory=dict)

    def serving(self, lane: Lane, kind: SlotKind) -> tuple[SlotId, ...]:
        """List slots of a lane that are of a kind: those that cost and have least first, then as the node has them."""
        if (lane, kind) not in self._serving:
            of_kind = [slot for slot in self.slots.values() if lane_of(slot) == lane and kind.serves(slot)]
            of_kind.sort(key=lambda slot: (slot.milli, slot.memory_bytes))
            self._serving[lane, kind] = tuple(slot.id for slot in of_kind)
        return self._serving[lane, kind]

    def holds(self, shape: Shape) -> bool:
        """Whether it could hold such a request if nothing ran there."""
        if shape not in self._holds:
            wants = shape.wants
            enough = len(self.serving(shape.lane, wants.kind)) >= shape.need
            self._holds[shape] = enough and wants.cpus <= self.cpus and wants.memory_bytes <= self.memory_bytes
        return self._holds[shape]

    def is_all(self, shape: Shape) -> bool:
        """Whether all slots of the lane serve such a request, and slots are all that it needs."""
        if shape not in self._is_all:
            serving = self.serving(shape.lane, shape.wants.kind)
            self._is_all[shape] = not shape.wants.is_more and len(serving) == self.lanes[shape.lane].capacity
        return self._is_all[shape]

    def free(self, shape: Shape) -> Amount:
        """Sum up what is free of what such a request may use."""
        if self.is_all(shape):
            return Amount(self.lanes[shape.lane].free)
        free = sum(self.tenants[slot] is None for slot in self.serving(shape.lane, shape.wants.kind))
        return Amount(free, self.free_cpus, self.free_memory_bytes)

    def part_of(self, lease: Lease, shape: Shape) -> Amount:
        """Sum up what a lease has of what such a request may use."""
        serving = self.serving(shape.lane, shape.wants.kind) if lease.lane == shape.lane else ()
        return Amount(sum(slot in serving for slot in lease.slots), lease.cpus, lease.memory_bytes)

    def least(self, shape: Shape) -> tuple[int, int]:
        """Find the cost and the memory of the least slot that serves such a request."""
        slot = self.slots[self.serving(shape.lane, shape.wants.kind)[0]]
        return slot.milli, slot.memory_bytes
