"""Nodes that users have brought for themselves, and what a request of theirs means there.

Their slots are a lane of their own, and each is of its owner's kind: no request of anybody else is served by one. They
cost nothing, count for no guarantee, limit or budget, and tell nobody what the pool has.

One that is gone may be back in a moment: its link was cut, or the pool was started again. For a while nobody who waits
for it alone is refused.
"""

from collections.abc import Iterator, Mapping

import msgspec

from bulletin.ids import AgentId, UserName
from bulletin.units import MINUTE_MS
from gpu_worker.scheduler.events import Slot
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.resources import Lane, SlotKind, Wants, kind_of
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.leases.walltimes import stepped
from gpu_worker.scheduler.nodes.node import Node, NodeKind
from gpu_worker.scheduler.nodes.slot_catalog import SlotCatalog
from gpu_worker.scheduler.policy.projects import QoS

#: For so long one that is gone may come back.
AWAY_MS = 10 * MINUTE_MS


class AwayNode(msgspec.Struct, frozen=True):
    """One that is gone, and may be back until a time."""

    kind: NodeKind | None  #: None: it has not been there since the scheduler was started, and nobody knows what it has
    until_ms: int

    def could_hold(self, shape: Shape) -> bool:
        """Whether it could hold such a request, for all that is known of it."""
        return self.kind is None or self.kind.holds(shape)


class OwnNodes:
    """Those that are connected, by owner, and those that may come back."""

    def __init__(self) -> None:
        self.by_owner: dict[UserName, dict[AgentId, Node]] = {}
        self.absent: dict[UserName, dict[AgentId, AwayNode]] = {}
        #: What decided where the requests of each user wait, when that was looked at last.
        self.settled: dict[UserName, object] = {}

    @property
    def next_ms(self) -> int | None:
        """When the next one is given up that is gone; None is never."""
        return min((one.until_ms for gone in self.absent.values() for one in gone.values()), default=None)

    def note(self, node: Node) -> None:
        """Note that a node is there; of the pool's own nothing is noted."""
        if node.owner:
            self.by_owner.setdefault(node.owner, {})[node.agent] = node
            self._give_up(node.owner, node.agent)

    def forget(self, node: Node, now_ms: int) -> None:
        """Note that a node is gone."""
        if not node.owner:
            return
        there = self.by_owner.get(node.owner, {})
        there.pop(node.agent, None)
        if not there:
            self.by_owner.pop(node.owner, None)
        gone = AwayNode(node.whole_kind or node.kind, now_ms + AWAY_MS)
        self.absent.setdefault(node.owner, {})[node.agent] = gone

    def expect(self, owners: Mapping[AgentId, UserName], until_ms: int) -> None:
        """Wait for these nodes until then, of which nothing but their owners is known."""
        for agent, owner in owners.items():
            if agent not in self.by_owner.get(owner, {}):
                self.absent.setdefault(owner, {}).setdefault(agent, AwayNode(None, until_ms))

    def pop_over(self, now_ms: int) -> None:
        """Wait no longer for those whose time is over."""
        for owner, gone in list(self.absent.items()):
            for agent in [agent for agent, one in gone.items() if one.until_ms <= now_ms]:
                self._give_up(owner, agent)

    def _give_up(self, owner: UserName, agent: AgentId) -> None:
        gone = self.absent.get(owner, {})
        gone.pop(agent, None)
        if not gone:
            self.absent.pop(owner, None)

    def is_any_of(self, user: UserName) -> bool:
        """Whether a user has a node, or one that may come back."""
        return user in self.by_owner or user in self.absent

    def of(self, user: UserName) -> tuple[Node, ...]:
        """List the nodes of a user that are there."""
        return tuple(self.by_owner.get(user, {}).values())

    def could_hold(self, user: UserName, shape: Shape) -> bool:
        """Whether a node of a user could hold a request of theirs, were it there, not drained, and empty."""
        return any(node.could_hold(shape) for node in self.of(user)) or self.absent_for(user, shape) is not None

    def absent_for(self, user: UserName, shape: Shape) -> AwayNode | None:
        """Find the node of a user that could hold a request of theirs, and is gone: the one that is awaited longest."""
        able = [one for one in self.absent.get(user, {}).values() if one.could_hold(shape)]
        return max(able, key=lambda one: one.until_ms, default=None)

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
        there = [node.kind for node in self.of(user)]
        gone = [one.kind for one in self.absent.get(user, {}).values() if one.kind is not None]
        for kind in (*there, *gone):
            yield from (slot for slot in kind.offered["own"] if slot.kind != "cpu")


def shape_of(request: Request, lane: Lane, qos: QoS, catalog: SlotCatalog, own_nodes: OwnNodes) -> Shape:
    """Work out what a request that waits is on nodes of its user's own, if that is its lane, or else in the pool."""
    asked = request.gpus, request.gpu_type, request.entry.shape.wants, qos, request.walltime_ms
    if lane == "own":
        return own_nodes.shape_of(request.user, *asked, has_gpus=catalog.has_gpus)
    return catalog.shape_of(*asked)
