"""What of a request its place in line depends on: its key, and its shape, which many share."""

from typing import NamedTuple

import msgspec

from bulletin.ids import RequestId, UserName
from gpu_worker.scheduler.leases.resources import PLAIN, Lane, Wants

#: Below all times: `since_ms` of a request for which room is made by right is this and since when that is so.
FIRST_MS = -(1 << 62)
#: Who is due within the same ten seconds is put in order by walltime.
DUE_TO_MS = 10_000


class QueueKey(NamedTuple):
    """Place in a user's own line: the smaller one is next. Sequence numbers never tie."""

    turn: int  #: below 0 for one that an admin put first: the later that was, the lower
    is_early: bool  #: False for one that has waited for its patience, and stands first
    since_ms: int  #: of such a one, since when it waits; else 0, or below 0 where room is made for it
    priority: int  #: of its class of service, negated
    due: int  #: in tens of seconds
    walltime_ms: int
    seq: int


class Shape(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """What a request needs, and for how long: whatever holds one of a shape holds another."""

    lane: Lane
    need: int  #: slots, all on one node
    cost: int  #: thousandths of a GPU; the most, where what may serve it costs more or less
    qos: str
    walltime_ms: int  #: in steps, rounded up
    wants: Wants = PLAIN
    charged: int = 0  #: the cost at its price, of the dearest slots that may serve it

    def takes_in(self, other: "Shape") -> bool:
        """Whether each node that holds the other holds this one, on the same slots, for however long."""
        if self.lane != other.lane or self.need > other.need:
            return False
        mine, its = self.wants, other.wants
        if mine.is_exclusive and (not its.is_exclusive or self.need != other.need):
            return False  # it would fit a smaller node than the other, or none that others are on
        if mine is its:
            return True
        return mine.cpus <= its.cpus and mine.memory_bytes <= its.memory_bytes and mine.kind.takes_in(its.kind)

    def is_easier(self, other: "Shape") -> bool:
        """Whether the other finds no place where this one finds none, at the same cost and by the same right."""
        mine, its = self.wants, other.wants
        return (
            (self.cost, self.charged, self.qos) == (other.cost, other.charged, other.qos)
            and self.walltime_ms <= other.walltime_ms
            and bool(mine.cpus) == bool(its.cpus)
            and bool(mine.memory_bytes) == bool(its.memory_bytes)
            and self.takes_in(other)
        )


class QueueEntry(msgspec.Struct, frozen=True):
    """A request, as its place in line depends on it."""

    id: RequestId
    user: UserName
    key: QueueKey
    shape: Shape
