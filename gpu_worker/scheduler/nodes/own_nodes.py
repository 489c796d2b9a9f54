"""Nodes that users have brought for themselves, and what a request of theirs means there.

Their slots are a lane of their own, and each is of its owner's kind: no request of anybody else is served by one. They
cost nothing, count for no guarantee, limit or budget, and tell nobody what the pool has.
"""

from collections.abc import Iterator

import msgspec

from bulletin.ids import AgentId, UserName
from gpu_worker.scheduler.events import Slot
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.resources import Lane, SlotKind, Wants, kind_of
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.leases.walltimes import stepped
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.nodes.slot_catalog import SlotCatalog
from gpu_worker.scheduler.policy.projects import QoS


class OwnNodes:
    """Those that are connected, by owner."""

    def __init__(self) -> None:
        self.by_owner: dict[UserName, dict[AgentId, Node]] = {}
        #: What decided where the requests of each user wait, when that was looked at last.
        self.settled: dict[UserName, object] = {}

    def note(self, node: Node) -> None:
        """Note that a node is there; of the pool's own nothing is noted."""
        if node.owner:
            self.by_owner.setdefault(node.owner, {})[node.agent] = node

    def forget(self, node: Node) -> None:
        """Note that a node is gone."""
        there = self.by_owner.get(node.owner, {})
        there.pop(node.agent, None)
        if not there:
            self.by_owner.pop(node.owner, None)

    def of(self, user: UserName) -> tuple[Node, ...]:
        """List the nodes of a user that are there."""
        return tuple(self.by_owner.get(user, {}).values())

    def could_hold(self, user: UserName, shape: Shape) -> bool:
        """Whether a node of a user could hold a request of theirs until it is over, if nothing ran there."""
        return any(node.holds(shape) and not node.is_drained for node in self.of(user))

    def shape_of(
        self,
        user: UserName,
        gpus: int,
        gpu_type: str,
        wants: Wants,
        qos: QoS,
        walltime_ms: int,
        *,
        has_gpus: bool,
    ) -> Shape:
        """Work out what a request is on nodes of its user's own; `wants` may be of a former shape.

        CPU slots there stand in for GPUs where neither they have any nor the pool (`has_gpus`).
        """
        offered = dict.fromkeys(self._gpus_of(user))
        is_on_cpu = not gpus or not (offered or has_gpus)
        kind = kind_of(gpu_type, wants.kind.memory_bytes, {} if is_on_cpu else offered)
        words = kind.words if kind.is_slice else tuple(sorted({*kind.words, "cpu" if is_on_cpu else "gpu"}))
        kind = SlotKind(words, kind.memory_bytes, kind.is_slice, user)
        wants = msgspec.structs.replace(wants, kind=kind)
        return Shape("own", max(1, gpus), 0, qos.name, stepped(walltime_ms, qos.walltime_ms), wants)

    def _gpus_of(self, user: UserName) -> Iterator[Slot]:
        for node in self.of(user):
            yield from (slot for slot in node.kind.offered["own"] if slot.kind != "cpu")


def shape_of(request: Request, lane: Lane, qos: QoS, catalog: SlotCatalog, own_nodes: OwnNodes) -> Shape:
    """Work out what a request that waits is on nodes of its user's own, if that is its lane, or else in the pool."""
    asked = request.gpus, request.gpu_type, request.entry.shape.wants, qos, request.walltime_ms
    if lane == "own":
        return own_nodes.shape_of(request.user, *asked, has_gpus=catalog.has_gpus)
    return catalog.shape_of(*asked)
