"""Who acts in a history that is played: agents, with the leases that they hold, and kernels."""

import dataclasses

from bulletin.ids import AgentId, CellId, LeaseId
from gpu_worker.scheduler import actions as act, events as ev
from tests.scheduler.promises import history as hi


@dataclasses.dataclass(slots=True, eq=False)
class HeldLease:
    """A lease as its agent knows it."""

    grant: act.Grant
    opened: hi.Opens
    granted_ms: int
    cell: CellId | None = None
    began_ms: int = 0
    more_ms: int = 0  #: that an admin gave its cell, or all of them in a place that is kept
    has_begun: bool = False
    is_leaving: bool = False  #: it will be gone soon, and begins nothing
    is_idle: bool = False  #: its place is kept, and no cell of the notebook runs: `cell` is the time between two

    @property
    def over_ms(self) -> int:
        """When a place that is kept is over, whatever its notebook does."""
        return self.granted_ms + self.grant.walltime_ms + self.more_ms


@dataclasses.dataclass(slots=True, eq=False)
class Agent:
    """A node: what it offers, what it holds, and whether it can be heard."""

    joined: hi.Joins
    is_heard: bool = True
    held: dict[LeaseId, HeldLease] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True, eq=False)
class Kernel:
    """A notebook: the cell that it is at, and how it stands with the pool."""

    opened: hi.Opens
    index: int = 0
    tries: int = 0
    request: ev.RequestSubmitted | None = None  #: that waits
    lease: tuple[AgentId, LeaseId] | None = None
    is_done: bool = False
