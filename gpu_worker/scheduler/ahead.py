"""Who waits already while those behind them are looked at, and what may pass them on which node."""

from gpu_worker.scheduler.backfill import Head
from gpu_worker.scheduler.nodes import Node
from gpu_worker.scheduler.shapes import Shape


class Waiting:
    """Requests that wait, by shape: the nodes that could hold one are closed to whom it would be passed by."""

    def __init__(self) -> None:
        self._shapes: list[Shape] = []  #: none that another one of them stands for

    def __bool__(self) -> bool:
        return bool(self._shapes)

    def add(self, shape: Shape) -> None:
        """Count one more that waits."""
        if not any(_stands_for(one, shape) for one in self._shapes):
            self._shapes = [one for one in self._shapes if not _stands_for(shape, one)]
            self._shapes.append(shape)

    def to(self, node: Node, shape: Shape) -> bool:
        """Whether the node is closed to such a request."""
        return any(node.holds(one) and _is_rival(node, one, shape) for one in self._shapes)

    def everywhere(self, shape: Shape) -> bool:
        """Whether each node that could hold such a request is closed to it."""
        return any(one.takes_in(shape) for one in self._shapes)


def _stands_for(one: Shape, other: Shape) -> bool:
    """Whether all that one closes is closed by the other too."""
    mine, its = one.wants, other.wants
    return (
        one.takes_in(other) and bool(mine.cpus) >= bool(its.cpus) and bool(mine.memory_bytes) >= bool(its.memory_bytes)
    )


def _is_rival(node: Node, one: Shape, other: Shape) -> bool:
    """Whether the two could use the same slot, CPU or memory of the node."""
    mine, its = one.wants, other.wants
    if one.lane == other.lane:
        if mine.kind == its.kind:
            return True
        if not set(node.serving(one.lane, mine.kind)).isdisjoint(node.serving(other.lane, its.kind)):
            return True
    return bool((mine.cpus and its.cpus) or (mine.memory_bytes and its.memory_bytes))


class Ahead:
    """Who waits already, of all lanes walked so far. GPUs are walked before CPU slots: they have a node's CPUs first.

    For those in `placed` room is being made, for those in `blocked` none can be: neither are passed. The head of the
    line that is walked is in none of the two: where it could run, it alone counts of those for whom there is no room.
    """

    def __init__(self) -> None:
        self.placed, self.blocked = Waiting(), Waiting()
        self.head: Head | None = None
        self._no_room: list[Shape] = []

    def note_no_room(self, shape: Shape) -> None:
        """Note that a covered request finds no room free, leaving or hot. Whoever waits after it leaves no more."""
        self._no_room.append(shape)

    def has_no_room(self, shape: Shape) -> bool:
        """Whether a covered request that needs no more found none."""
        return any(one.walltime_ms <= shape.walltime_ms and one.takes_in(shape) for one in self._no_room)

    def forget_no_room(self) -> None:
        """Look anew: what leaves for somebody may leave room beside it."""
        self._no_room.clear()

    def for_covered(self) -> "Ahead":
        """Select who is ahead of a covered request that finds no other place: the head if it is late and covered."""
        ahead = Ahead()
        ahead.placed = self.placed
        ahead.head = self.head if self.head is not None and self.head.is_before_covered else None
        return ahead

    def next_lane(self) -> None:
        """Hold the head of a lane: nobody of the next one passes it."""
        self.forget_no_room()
        if self.head is not None:
            self.blocked.add(self.head.shape)
            self.head = None

    def _is_headed(self, node: Node, shape: Shape) -> bool:
        """Whether the head could have of this node what such a request would use."""
        return self.head is not None and node.holds(self.head.shape) and _is_rival(node, self.head.shape, shape)

    def lets_in(self, node: Node, shape: Shape) -> bool:
        """Whether such a request passes nobody there, or the head without harm."""
        if self.placed.to(node, shape):
            return False
        if self.head is not None and self._is_headed(node, shape):
            return self.head.is_left_free(node, shape)
        return not self.blocked.to(node, shape)

    def lets_fill(self, node: Node, shape: Shape) -> bool:
        """Whether such a request only uses, of the node that is held for the head, the time until that can start."""
        return self.head is not None and self.head.is_over_before(node, shape) and not self.placed.to(node, shape)

    def lets_make_room(self, node: Node, shape: Shape) -> bool:
        """Whether hot sessions may leave for such a request.

        On the node that is held for the head only for one that is over before the head can start.
        """
        if self.head is not None and self._is_headed(node, shape):
            return not self.head.holds(node) or self.head.is_over_before(node, shape)
        return not self.blocked.to(node, shape)

    def lets_reclaim(self, node: Node, shape: Shape) -> bool:
        """Whether running cells may be given back for such a request: where that passes nobody, or does no harm."""
        if self.head is not None and self.head.holds(node) and self._is_headed(node, shape):
            return self.head.is_over_before(node, shape)
        return not self.blocked.to(node, shape)
