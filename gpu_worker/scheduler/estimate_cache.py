"""What was asked since the last step: every kernel that waits asks each second, and most ask the same."""

from typing import NamedTuple

import msgspec

from bulletin.ids import LeaseId, ProjectId, RequestId
from gpu_worker.scheduler.leases.resources import Lane
from gpu_worker.scheduler.leases.shapes import Shape

#: When a request starts at the latest, and when class hours begin or end that it waits for, if it waits for some.
Start = tuple[int, int | None]


class Room(NamedTuple):
    """Why no node has room for a shape."""

    is_there: bool  #: a connected node that is not drained could hold it
    reason: str  #: why none has room now; empty where one has, which is kept for one ahead, or where all are `busy`
    drained: str  #: what else is to be said of nodes
    busy: int = 0  #: so many slots could serve it, and none is free; 0 where that is not why
    slices: int = 0  #: so many slices are free meanwhile, which whoever asks for one could have


class EstimateCache(msgspec.Struct):
    """By lane: places in line, and who has room made; of all lanes who starts when; by shape why there is no room."""

    standings: dict[Lane, dict[RequestId, int]] = {}
    expecting: dict[Lane, frozenset[RequestId]] = {}
    rooms: dict[Shape, Room] = {}
    starts: dict[RequestId, Start] | None = None
    #: Of each project the hot leases that are kept, each with its end, and what that was worked out from.
    kept_hot: dict[ProjectId, tuple[tuple[int, int, int], dict[LeaseId, int]]] = {}

    def forget(self) -> None:
        """Something has happened: all may be otherwise now."""
        self.standings.clear()
        self.expecting.clear()
        self.rooms.clear()
        self.kept_hot.clear()
        self.starts = None
