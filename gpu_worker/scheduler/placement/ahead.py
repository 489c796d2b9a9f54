"""Who waits already while those behind them are looked at, and what may pass them on which node."""

from collections.abc import Iterable
from copy import copy
from typing import Literal

from bulletin.ids import AgentId, SlotId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node, NodeKind
from gpu_worker.scheduler.placement.backfill import Head
from gpu_worker.scheduler.placement.node_timeline import FOREVER_MS
from gpu_worker.scheduler.placement.room import is_spare
from gpu_worker.scheduler.queue.patience import lets_pass
from gpu_worker.scheduler.state import State


class Waiting:
    """Requests that wait, by shape: the nodes that could hold one are closed to whom it would be passed by."""

    def __init__(self, *, is_timed: bool = False) -> None:
        """Say with `is_timed` that nodes are to be drained: they may hold a short one, and no long one."""
        self._is_timed = is_timed
        self._shapes: list[Shape] = []  #: none that another one of them stands for
        self.changes = 0  #: how often more was closed

    def __bool__(self) -> bool:
        return bool(self._shapes)

    def add(self, shape: Shape) -> None:
        """Count one more that waits."""
        if not any(self._stands_for(one, shape) for one in self._shapes):
            self._shapes = [one for one in self._shapes if not self._stands_for(shape, one)]
            self._shapes.append(shape)
            self.changes += 1

    def to(self, node: Node, shape: Shape) -> bool:
        """Whether the node is closed to such a request."""
        kind = node.kind
        return any(kind.holds(one) and kind.are_rivals(one, shape) for one in self._shapes)

    def everywhere(self, shape: Shape) -> bool:
        """Whether each node that could hold such a request is closed to it."""
        return any(self._is_held_with(one, shape) for one in self._shapes)

    def _stands_for(self, one: Shape, other: Shape) -> bool:
        """Whether all that the other closes is closed by this one too."""
        mine, its = one.wants, other.wants
        is_more = bool(mine.cpus) >= bool(its.cpus) and bool(mine.memory_bytes) >= bool(its.memory_bytes)
        return is_more and self._is_held_with(one, other)

    def _is_held_with(self, one: Shape, other: Shape) -> bool:
        """Whether each node that holds the other holds this one."""
        return one.takes_in(other) and (not self._is_timed or one.walltime_ms <= other.walltime_ms)


class Ahead:
    """Who waits already, of all lanes walked so far. GPUs are walked before CPU slots: they have a node's CPUs first.

    For those in `placed` room is being made on a node, for those in `blocked` none can be: neither are passed there.
    The heads of the line that is walked are in none of the two: where one could run, it alone counts of those for whom
    there is no room.
    The first that waits for running cells is a head; whoever comes later is one on nodes that no other head wants.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self.placed: dict[AgentId, list[Shape]] = {}
        self.slow: dict[AgentId, list[Shape]] = {}  #: claims that wait for a grace, whatever is free there
        self.blocked = Waiting(is_timed=bool(state.planned_drains))
        self.heads: list[Head] = []
        self._no_room: list[Shape] = []
        self._nodes: frozenset[AgentId] | None = None  #: all but these are closed; None is not
        self._borrower: Account | Literal["anybody"] | None = None  #: who asks, if no guarantee covers that

    def place(self, shape: Shape, agent: AgentId) -> None:
        """Note that room is being made on a node."""
        self.placed.setdefault(agent, []).append(shape)

    def note_no_room(self, shape: Shape) -> None:
        """Note that a covered request finds no room free, leaving or hot. Whoever waits after it leaves no more."""
        self._no_room.append(shape)

    def has_no_room(self, shape: Shape) -> bool:
        """Whether a covered request that needs no more found none."""
        return any(one.walltime_ms <= shape.walltime_ms and one.takes_in(shape) for one in self._no_room)

    def forget_no_room(self) -> None:
        """Look anew: what leaves for somebody may leave room beside it."""
        self._no_room.clear()

    def for_covered(self, nodes: frozenset[AgentId] | None = None) -> "Ahead":
        """Select who is ahead of a covered request that finds no other place: heads that are late and covered.

        It is on these `nodes` only; None is all those that are open already.
        """
        ahead = Ahead(self._state)
        ahead._nodes = self._nodes if nodes is None else nodes if self._nodes is None else nodes & self._nodes
        ahead.placed, ahead.slow = self.placed, self.slow
        ahead.heads = [head for head in self.heads if head.is_before_covered]
        return ahead

    def on(self, nodes: frozenset[AgentId] | None) -> "Ahead":
        """Select the same who are ahead, of somebody who may start on these nodes only; None is all."""
        if nodes is None:
            return self
        ahead = copy(self)
        ahead._nodes = nodes
        return ahead

    def of_borrower(self, borrower: Account | Literal["anybody"]) -> "Ahead":
        """Select the same who are ahead, of somebody who borrows: from them heads that are covered may take it back."""
        if not any(head.is_covered for head in self.heads):
            return self
        ahead = copy(self)
        ahead._borrower = borrower
        return ahead

    def next_lane(self) -> None:
        """Hold the heads of a lane: nobody of the next one passes them."""
        self.forget_no_room()
        self.slow = {}
        for head in self.heads:
            self.blocked.add(head.shape)
        self.heads = []

    def unheaded(self, kinds: Iterable[NodeKind], shape: Shape) -> frozenset[NodeKind]:
        """Select the kinds of nodes that could hold such a request, where no head could have all the same slots."""
        return frozenset(
            kind
            for kind in kinds
            if kind.holds(shape) and all(kind.leaves_some(one.shape, shape) for one in self._heads_of(kind, shape))
        )

    def _heads_of(self, kind: NodeKind, shape: Shape) -> list[Head]:
        """List the heads that could have of such a node what such a request would use."""
        return [head for head in self.heads if kind in head.kinds and kind.are_rivals(head.shape, shape)]

    def is_closed(self, node: Node) -> bool:
        """Whether nobody who is looked at now may have anything of the node."""
        return self._nodes is not None and node.agent not in self._nodes

    def lets_in(self, node: Node, shape: Shape, slots: tuple[SlotId, ...]) -> bool:
        """Whether such a request passes nobody there on these free slots, or a head without harm."""
        if self.is_closed(node) or self._is_promised(node, shape, slots):
            return False
        heads = self._heads_of(node.kind, shape)
        if heads:
            return all(head.is_left_free(node, shape, slots) for head in heads)
        return not self.blocked.to(node, shape)

    def lets_fill(self, node: Node, shape: Shape, slots: tuple[SlotId, ...]) -> bool:
        """Whether such a request only uses, on these slots of a node held for a head, the time until that can start."""
        if self.is_closed(node) or self._is_promised(node, shape, slots):
            return False
        return self._is_harmless(node, shape, slots)

    def _is_promised(self, node: Node, shape: Shape, slots: tuple[SlotId, ...]) -> bool:
        """Whether room is being made there for somebody who would have it later if such a request took these slots."""
        promised = [one for one in self.placed.get(node.agent, ()) if node.kind.are_rivals(one, shape)]
        slow = self.slow.get(node.agent, ())
        return bool(promised) and not is_spare(self._state, node, shape, slots, promised, slow)

    def _is_harmless(self, node: Node, shape: Shape, slots: tuple[SlotId, ...]) -> bool:
        """Whether no head starts later on the node, which is held for one, although such a request has these slots."""
        heads = self._heads_of(node.kind, shape)
        return any(head.holds(node) for head in heads) and all(
            self._is_over_before(head, node, shape) or head.is_left_free(node, shape, slots) for head in heads
        )

    def _is_over_before(self, head: Head, node: Node, shape: Shape, later_ms: int = 0) -> bool:
        """Whether such a request, which starts so much later, is over before the head can start, or given back."""
        borrower = self._borrower
        takes = head.is_covered if borrower == "anybody" else borrower is not None and head.takes_from(borrower)
        return head.is_over_before(node, shape, later_ms, is_given_back=takes)

    def lets_make_room(self, node: Node, shape: Shape) -> bool:
        """Whether hot sessions may leave for such a request.

        On a node that is held for a head only for one that is over before the head can start, or takes what that does
        not need.
        """
        if self.is_closed(node):
            return False
        heads = self._heads_of(node.kind, shape)
        if heads:
            return all(
                not head.holds(node) or self._is_over_before(head, node, shape) or head.is_left_room(node, shape)
                for head in heads
            )
        return not self.blocked.to(node, shape)

    def kept_slots(self, node: Node, shape: Shape) -> frozenset[SlotId]:
        """Select the slots that heads are to have there, and such a request beside them is not, of several types."""
        if node.kind.is_one_type(shape.lane):
            return frozenset()
        heads = [head for head in self._heads_of(node.kind, shape) if head.holds(node)]
        kept = [head.kept_slots(shape) for head in heads if not self._is_over_before(head, node, shape)]
        return frozenset[SlotId]().union(*kept)

    def lets_reclaim(self, node: Node, shape: Shape) -> bool:
        """Whether running cells may be given back for such a request: where that passes nobody but heads."""
        if self.is_closed(node):
            return False
        return bool(self._heads_of(node.kind, shape)) or not self.blocked.to(node, shape)

    def waits_until_ms(self, node: Node, shape: Shape) -> int:
        """Find until when those wait there who are ahead of such a request: whatever ends later is in nobody's way."""
        if self.blocked.to(node, shape):
            return FOREVER_MS
        held = [head.held[0] for head in self._heads_of(node.kind, shape) if head.held is not None and head.holds(node)]
        return max(held, default=0)

    def late_heads(self, node: Node, shape: Shape) -> list[Head]:
        """List the heads for which the node is held, and whose turn it is since they have waited for their patience."""
        heads = [head for head in self._heads_of(node.kind, shape) if head.holds(node)]
        return [head for head in heads if lets_pass(self._state.accounts, head.request)]

    def has_head(self, request: Request) -> bool:
        """Whether a request is one of the heads."""
        return any(head.request.id == request.id for head in self.heads)

    def end_ms(self, node: Node, lease: Lease) -> int:
        """Find when a cell is over there at the latest, by its walltime, or since a head takes it back."""
        return min((head.end_ms(lease) for head in self.heads if head.holds(node)), default=self._state.end_ms(lease))

    def first_there(self, node: Node, shape: Shape, grace_ms: int) -> list[Head]:
        """List the heads that are to have their places there before running cells are given back for such a request.

        Whoever is over before they can start, or given back, does them no harm, if it starts after the grace of others.
        """
        heads = [head for head in self._heads_of(node.kind, shape) if head.holds(node)]
        return [head for head in heads if not self._is_over_before(head, node, shape, grace_ms)]
