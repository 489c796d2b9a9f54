"""Which of the places that notebooks keep, and that no guarantee covers any more, go for who is guaranteed slots. Pure.

A place goes only for a request that is within a guarantee and all of its limits, that lacks nothing but slots, and that
finds enough of them on one node once it is gone. As few go as that takes, and the youngest first.
"""

from collections.abc import Callable, Collection, Iterator

import msgspec

from bulletin.ids import AgentId, SlotId
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.life import Phase, RequestStatus
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.seats import supplies
from gpu_worker.scheduler.policy.projects import Preemption
from gpu_worker.scheduler.state import State


class _Room(msgspec.Struct):
    """What of a node those who are guaranteed it may have as it is: free, leaving, hot, or borrowed by others."""

    slots: set[SlotId]
    cpus: int
    memory_bytes: int

    def add(self, lease: Lease) -> None:
        """Count what a lease holds as well."""
        self.slots.update(lease.slots)
        self.cpus, self.memory_bytes = self.cpus + lease.cpus, self.memory_bytes + lease.memory_bytes

    def holds(self, node: Node, shape: Shape) -> bool:
        """Whether such a request finds enough of it."""
        slots = sum(slot in self.slots for slot in node.serving(shape.lane, shape.wants.kind))
        wants = shape.wants
        return slots >= shape.need and wants.cpus <= self.cpus and wants.memory_bytes <= self.memory_bytes

    def take(self, node: Node, shape: Shape) -> None:
        """Take what such a request needs, for those that follow."""
        serving = [slot for slot in node.serving(shape.lane, shape.wants.kind) if slot in self.slots]
        self.slots.difference_update(serving[: shape.need])
        self.cpus, self.memory_bytes = self.cpus - shape.wants.cpus, self.memory_bytes - shape.wants.memory_bytes


def choose_places(state: State, places: Collection[Lease], is_in_quota: Callable[[Lease], bool]) -> list[Lease]:
    """Choose which of these places go now, for those who wait. `is_in_quota` tells what a guarantee covers."""
    return list(_Choice(state, places, is_in_quota).choose()) if places else []


class _Choice:
    """Goes through those who wait, the longest first; what one is to have counts for those that follow."""

    def __init__(self, state: State, places: Collection[Lease], is_in_quota: Callable[[Lease], bool]) -> None:
        self._state, self._is_in_quota = state, is_in_quota
        self._left = {lease.id: lease for lease in sorted(places, key=lambda one: (-one.began_ms, one.id))}
        self._rooms: dict[AgentId, _Room] = {}
        self._promised: dict[int, int] = {}  #: to those before, by the identity of the account that it counts for
        self._to_charge: dict[int, int] = {}  #: the same, for budgets

    def choose(self) -> Iterator[Lease]:
        """List the places that go."""
        for request in sorted(self._state.pending.values(), key=lambda one: (one.since_ms, one.id)):
            if not self._left:
                return
            if request.standing is RequestStatus.QUEUED and self._is_owed(request):
                yield from self._make_room(request)

    def _is_owed(self, request: Request) -> bool:
        """Whether a guarantee covers it, and nothing but slots keeps it from running, beside those before."""
        accounts, shape, promised = self._state.accounts, request.entry.shape, self._promised
        account = accounts.of(request.project)
        cost = accounts.quota_cost(account, shape)
        if not self._state.is_covered(request) or not accounts.is_allowed(account, request.entry):
            return False
        covering = [at for at in account.path if at.will_cover(cost, request.entry)]
        if covering and not any(at.will_cover(cost + promised.get(id(at), 0), request.entry) for at in covering):
            return False
        if not covering and promised.get(id(account)):  # in a node pool, or beside the projects inside: one at a time
            return False
        for holder, amount, limit in accounts.holders(request.project, request.user, request.qos, shape.cost):
            if limit is not None and holder.used + promised.get(id(holder), 0) + amount > limit:
                return False
        for at in account.path:
            left = at.spendable(accounts.now_ms, without_hot=True)
            if left is not None and left < self._to_charge.get(id(at), 0) + shape.charged * request.walltime_ms:
                return False
        return True

    def _make_room(self, request: Request) -> Iterator[Lease]:
        """List the places that go for it: none where it finds room without, or would not find enough with them."""
        shape = request.entry.shape
        options: list[tuple[int, int, Node, list[Lease]]] = []
        for node in self._state.nodes.values():
            going = None if node.is_drained or not node.holds(shape) else self._lacking(node, shape)
            if going is not None:
                options.append((len(going), -min((one.began_ms for one in going), default=0), node, going))
        if not options:
            return
        _, _, node, going = min(options, key=lambda one: one[:2])
        for lease in going:
            self._room(node).add(lease)
            del self._left[lease.id]
        self._room(node).take(node, shape)
        self._note(request)
        yield from going

    def _lacking(self, node: Node, shape: Shape) -> list[Lease] | None:
        """Find the fewest of the youngest places that such a request lacks on a node; None where all are too few."""
        room = msgspec.structs.replace(self._room(node), slots=set(self._room(node).slots))
        serving, going = set(node.serving(shape.lane, shape.wants.kind)), list[Lease]()
        for lease in self._left.values():
            if room.holds(node, shape):
                break
            if lease.agent == node.agent and (shape.wants.is_more or not serving.isdisjoint(lease.slots)):
                room.add(lease)
                going.append(lease)
        return going if room.holds(node, shape) else None

    def _room(self, node: Node) -> _Room:
        """Find what it may have of a node without any of these places: what others borrow, too, since it is taken."""
        if node.agent not in self._rooms:
            later = supplies(self._state, node)[1]
            room = self._rooms[node.agent] = _Room(set(later.slots), later.cpus, later.memory_bytes)
            for lease in map(self._state.leases.__getitem__, node.leases):
                if lease.phase is Phase.HOT or self._is_taken_back(lease):
                    room.add(lease)
        return self._rooms[node.agent]

    def _is_taken_back(self, lease: Lease) -> bool:
        qos = self._state.qos.get(lease.qos)
        is_in_use = lease.phase in (Phase.BUSY, Phase.GRANTED) and bool(lease.cost)
        return is_in_use and qos is not None and qos.preemption is not Preemption.NEVER and not self._is_in_quota(lease)

    def _note(self, request: Request) -> None:
        """Count what a request is to have, for those that follow."""
        accounts, shape = self._state.accounts, request.entry.shape
        for holder, amount, _ in accounts.holders(request.project, request.user, request.qos, shape.cost):
            self._promised[id(holder)] = self._promised.get(id(holder), 0) + amount
        for at in accounts.of(request.project).path:
            self._to_charge[id(at)] = self._to_charge.get(id(at), 0) + shape.charged * request.walltime_ms
