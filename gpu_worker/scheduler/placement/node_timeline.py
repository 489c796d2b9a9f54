"""When what a node has will be free at the latest, by the walltimes of what runs there."""

from collections.abc import Mapping

from bulletin.ids import LeaseId, SlotId
from gpu_worker.scheduler.leases.resources import Lane, SlotKind
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.state import State

FOREVER_MS = 1 << 62  #: later than any time of the clock


class NodeTimeline:
    """One node, and who will be there until when. Times are those of the scheduler's clock."""

    def __init__(
        self,
        state: State,
        node: Node,
        now_ms: int,
        kept_ms: Mapping[LeaseId, int] | None = None,
        given_back_ms: Mapping[LeaseId, int] | None = None,
    ) -> None:
        """Take until when hot leases stay that are kept from whoever asks, and when cells are over that it may take."""
        self._node, self._now_ms = node, now_ms
        self._until = dict.fromkeys(node.slots, now_ms)
        self._times: dict[tuple[Lane, SlotKind], list[int]] = {}  #: when slots of a kind are free
        self._rest: list[tuple[int, int, int]] = []  #: of those that hold CPUs or memory: until when, and how much
        for lease in map(state.leases.__getitem__, node.leases):
            until_ms = state.end_ms(lease)
            if kept_ms:
                until_ms = max(until_ms, kept_ms.get(lease.id, 0))
            if given_back_ms:
                until_ms = min(until_ms, given_back_ms.get(lease.id, until_ms))
            if until_ms > now_ms:
                self._until.update(dict.fromkeys(lease.slots, until_ms))
                self._rest.append((until_ms, lease.cpus, lease.memory_bytes))

    def start_ms(self, shape: Shape) -> int | None:
        """When such a request could start here at the latest; None is never."""
        if not self._node.holds(shape):
            return None
        wants = shape.wants
        slots = shape.lane, wants.kind
        if slots not in self._times:
            self._times[slots] = sorted(self._until[slot] for slot in self._node.serving(*slots))
        at_ms = max(self._now_ms, self._times[slots][shape.need - 1])
        if not wants.is_more:
            return at_ms
        for later_ms in sorted({at_ms, *(until_ms for until_ms, *_ in self._rest if until_ms > at_ms)}):
            held = [one for one in self._rest if one[0] > later_ms]
            if (
                sum(one[1] for one in held) + wants.cpus <= self._node.cpus
                and sum(one[2] for one in held) + wants.memory_bytes <= self._node.memory_bytes
            ):
                return later_ms
        return None  # who reported its leases claimed more than its node has

    def until_ms(self, slot: SlotId) -> int:
        """Find until when somebody has a slot; now where it is free."""
        return self._until[slot]

    def take(self, slots: tuple[SlotId, ...], shape: Shape) -> None:
        """Give it these slots now, and for ever."""
        self.put(slots, shape, FOREVER_MS)

    def seat(self, shape: Shape, until_ms: int) -> tuple[SlotId, ...]:
        """Give it what it asks for, from when it can start. The slots that it has then."""
        serving = self._node.serving(shape.lane, shape.wants.kind)
        first = tuple(sorted(serving, key=self._until.__getitem__)[: shape.need])
        self.put(first, shape, until_ms)
        return first

    def put(self, slots: tuple[SlotId, ...], shape: Shape, until_ms: int) -> None:
        """Give it these slots, and what else it asks for, until then."""
        self._until.update(dict.fromkeys(slots, until_ms))
        self._times.clear()
        self._rest.append((until_ms, shape.wants.cpus, shape.wants.memory_bytes))
