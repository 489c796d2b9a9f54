"""What the pool has shown since it started, also where it is gone by now, and so what a request means there."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from bulletin.ids import AgentId, LeaseId, SlotId, UserName
from gpu_worker.scheduler.events import NOBODY, RequestSubmitted, Slot
from gpu_worker.scheduler.leases.resources import (
    LANES,
    PLAIN,
    Lane,
    Offer,
    SlotKind,
    Wants,
    kind_of,
    lane_of,
    price_of,
)
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.leases.walltimes import stepped
from gpu_worker.scheduler.nodes.awaited_nodes import AwaitedNodes
from gpu_worker.scheduler.nodes.node import Counts, Node, NodeKind
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import GPU_MILLI, QoS


class SlotCatalog:
    """Slots without names and nodes, each kind once: an index of all that ever joined."""

    def __init__(self, prices: tuple[Price, ...] = ()) -> None:
        self.prices = prices
        self.awaited = AwaitedNodes()
        self.largest: dict[Lane, int] = dict.fromkeys(LANES, 0)  #: the most slots of a lane on one node
        self.slots: dict[Slot, None] = {}
        self.offers: dict[Lane, dict[Offer, None]] = {lane: {} for lane in LANES}
        self._kinds: dict[tuple[tuple[Slot, ...], int, int], NodeKind] = {}
        self._shapes: dict[Shape, Shape] = {}  #: of equal ones one object, which is faster to look up

    @property
    def has_gpus(self) -> bool:
        """Whether the pool has shown a GPU, or had one that is to come back: no CPU slot stands in for one then."""
        return self.largest["gpu"] > 0 or self.awaited.has_gpus

    @property
    def offer_count(self) -> int:
        """Count what nodes have offered so far, each once: it never falls."""
        return sum(map(len, self.offers.values()))

    def is_yet_to_come(self, shape: Shape) -> bool:
        """Whether nodes are to come back, and none that was there since could hold such a request: another may."""
        is_there = any(offer.could_hold(shape.need, shape.wants) for offer in self.offers[shape.lane])
        return bool(self.awaited) and shape.lane != "own" and not is_there

    def kind_of_node(self, slots: Iterable[Slot], cpus: int, memory_bytes: int) -> NodeKind:
        """Return the kind of a node that offers this: the same for all that offer as much."""
        alike = tuple(
            sorted((msgspec.structs.replace(slot, id=SlotId("")) for slot in slots), key=msgspec.structs.astuple)
        )
        key = alike, cpus, memory_bytes
        if key not in self._kinds:
            self._kinds[key] = NodeKind({lane: _in_lane(alike, lane) for lane in LANES}, cpus, memory_bytes)
        return self._kinds[key]

    def make_node(
        self,
        agent: AgentId,
        name: str,
        slots: tuple[Slot, ...],
        seq: int,
        cpus: int,
        memory_bytes: int,
        owner: UserName = NOBODY,
    ) -> Node:
        """Make a node with all of its slots free; of slots with the same name the first one counts.

        What somebody has brought for themselves costs nothing, and nothing of it is remembered here.
        """
        if owner:
            slots = tuple(msgspec.structs.replace(slot, owner=owner, milli=0) for slot in slots)
        named = {slot.id: slot for slot in reversed(slots)}
        if owner:
            kind = NodeKind({lane: _in_lane(named.values(), lane) for lane in LANES}, cpus, memory_bytes)
        else:
            kind = self.kind_of_node(named.values(), cpus, memory_bytes)
        lanes = {lane: Counts(len(kind.offered[lane]), len(kind.offered[lane])) for lane in LANES}
        mine = {slot.id: named[slot.id] for slot in slots}
        tenants: dict[SlotId, LeaseId | None] = dict.fromkeys(mine)
        return Node(
            agent=agent,
            name=name,
            seq=seq,
            kind=kind,
            slots=mine,
            tenants=tenants,
            leases={},
            lanes=lanes,
            owner=owner,
            cpus=cpus,
            memory_bytes=memory_bytes,
            free_cpus=cpus,
            free_memory_bytes=memory_bytes,
        )

    def show(self, node: Node) -> bool:
        """Note what a node offers; whether no node before offered just that. A user's own node shows a pool nothing."""
        if node.owner:
            return False
        before = self.offer_count
        self.awaited.note(node.name)
        for lane in LANES:
            self.largest[lane] = max(self.largest[lane], node.lanes[lane].capacity)
            slots = Counter(
                msgspec.structs.replace(slot, id=SlotId("")) for slot in node.slots.values() if lane_of(slot) == lane
            )
            self.slots.update(dict.fromkeys(slots))
            if slots:
                beside = len(node.slots) - slots.total()
                self.offers[lane][Offer(tuple(slots.items()), node.cpus, node.memory_bytes, beside)] = None
        return self.offer_count > before

    def cost_of(self, lane: Lane, milli: int) -> int:
        """Compute what slots of so many thousandths of a GPU count: nothing on CPU slots, once there is a GPU."""
        return milli if lane == "gpu" or not self.has_gpus else 0

    def cost_on(self, node: Node, lane: Lane, slots: tuple[SlotId, ...]) -> int:
        """Compute what these slots of a node count, in thousandths of a GPU."""
        return self.cost_of(lane, sum(node.slots[slot].milli for slot in slots))

    def charge_of(self, slot: Slot) -> int:
        """Compute what a slot counts where use adds up: its cost at the price in force, rounded up."""
        return price_of(slot, self.cost_of(lane_of(slot), slot.milli), self.prices)

    def charge_on(self, node: Node, slots: tuple[SlotId, ...]) -> int:
        """Compute what these slots of a node count where use adds up, by the prices in force."""
        return sum(self.charge_of(node.slots[slot]) for slot in slots)

    def dearest(self, shape: Shape) -> str:
        """Name the type of the dearest slots that may serve a request; empty where they cost what others do."""
        serving = self._serving(shape.lane, shape.need, shape.wants)
        return max(serving, key=self.charge_of).name if serving and shape.charged != shape.cost else ""

    def lane_for(self, gpus: int) -> Lane:
        """Find the lane that a request for so many GPUs would use."""
        return "gpu" if gpus > 0 and self.has_gpus else "cpu"

    def is_on_cpu(self, lane: Lane) -> bool | None:
        """Tell whether slots of a lane are CPU slots, for people; None while no slot was shown: it may be a GPU."""
        return lane == "cpu" if any(self.largest.values()) else None

    def shape_of(self, gpus: int, gpu_type: str, wants: Wants, qos: QoS, walltime_ms: int) -> Shape:
        """Work out the shape of a request in the pool as it is known now; `wants` may be of a former one."""
        lane, need = self.lane_for(gpus), max(1, gpus)
        kind = SlotKind((), wants.kind.memory_bytes)
        if lane == "gpu" or gpu_type:
            kind = kind_of(gpu_type, wants.kind.memory_bytes, self.slots if lane == "gpu" else {})
        wants = msgspec.structs.replace(wants, kind=kind)
        serving = self._serving(lane, need, wants)
        cost = self.cost_of(lane, need * max((slot.milli for slot in serving), default=GPU_MILLI))
        charged = need * max(map(self.charge_of, serving)) if serving else cost
        walltime_ms = stepped(walltime_ms, qos.walltime_ms)
        shape = Shape(lane, need, cost, qos.name, walltime_ms, PLAIN if wants == PLAIN else wants, charged)
        return self._shapes.setdefault(shape, shape)

    def shape_asked(self, event: RequestSubmitted, qos: QoS, walltime_ms: int) -> Shape:
        """Work out the shape of a request that is submitted now, with the walltime that it is to have."""
        kind = SlotKind((), event.gpu_memory_bytes)
        wants = Wants(kind, event.cpus, event.memory_bytes, event.is_exclusive)
        return self.shape_of(event.gpus, event.gpu_type, wants, qos, walltime_ms)

    def _serving(self, lane: Lane, need: int, wants: Wants) -> list[Slot]:
        """List what may serve a request; of one that would have a node alone only what nodes of its size have."""
        offers = self.offers[lane] if wants.is_exclusive else {}
        wholes = [offer for offer in offers if offer.is_whole(wants.kind, need)]
        slots = dict.fromkeys(slot for offer in wholes for slot, _ in offer.slots) or self.slots
        return [slot for slot in slots if lane_of(slot) == lane and wants.kind.serves(slot)]


def _in_lane(slots: Iterable[Slot], lane: Lane) -> tuple[Slot, ...]:
    """Select the slots of a lane."""
    return tuple(slot for slot in slots if lane_of(slot) == lane)
