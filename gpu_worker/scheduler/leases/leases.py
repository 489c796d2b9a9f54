"""A request, and the lease that it becomes: the right of a session to use slots of a node."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from gpu_worker.scheduler.actions import Right
from gpu_worker.scheduler.leases.life import Phase, RequestStatus
from gpu_worker.scheduler.leases.reclaimed_ages import Age
from gpu_worker.scheduler.leases.resources import Lane, SlotKind
from gpu_worker.scheduler.leases.shapes import QueueEntry

Value = TypeVar("Value")

#: What counts as use; and what is on its way out.
USING = frozenset({Phase.GRANTED, Phase.BUSY, Phase.RECLAIMING})
LEAVING = frozenset({Phase.RECLAIMING, Phase.EVICTING, Phase.ENDING})
#: No cell runs, and one may begin.
IDLE = frozenset({Phase.HOT, Phase.EVICTING})


class RequestHold(msgspec.Struct, frozen=True):
    """Why a request is not to start before it is released."""

    why: str  #: in the words of whoever held it; may be empty
    is_by_admin: bool  #: or by who leads the project; else by its owner
    is_by_lead: bool = False
    from_ms: int = 0

    @property
    def reason(self) -> str:
        """Say it to whoever waits, without a full stop."""
        if self.is_by_admin:
            held = "held by the lead of your project" if self.is_by_lead else "held by an admin"
            return f"{held}: {self.why}" if self.why else held
        return f"you hold it: {self.why}" if self.why else "you hold it until you release it"


class Request(msgspec.Struct):
    """A wish for a lease, from its submission until it is granted, refused or withdrawn."""

    id: RequestId
    lease: LeaseId
    session: SessionId
    user: UserName
    project: ProjectId  #: in which it counts
    home: ProjectId  #: which was named: `project` is the same, or a reservation in it
    qos: str
    gpus: int
    gpu_type: str
    walltime_ms: int
    is_walltime_asked: bool  #: else it is what the QoS gives
    lane: Lane
    entry: QueueEntry
    since_ms: int = 0  #: when it was submitted
    took: frozenset[SessionId] = frozenset()  #: whose cells it had reclaimed for its project's share
    shared: int = 0  #: how often its cell was reclaimed for somebody's share
    standing: RequestStatus = RequestStatus.QUEUED
    hold: RequestHold | None = None  #: a person does not want it to start
    held_ms: int = 0  #: for how long it was held and has not waited, before this hold
    is_kept: bool = False  #: asks for a place that is kept between cells

    def is_of(self, project: ProjectId, user: UserName) -> bool:
        """Whether this user of this project asks."""
        return (self.project, self.user) == (project, user)

    @property
    def need(self) -> int:
        """Slots that it takes, all on one node."""
        return max(1, self.gpus)

    @property
    def is_late_in_pool(self) -> bool:
        """Whether it has waited for its patience, and stands before others by that: on an own node there are none."""
        return not self.entry.key.is_early and self.lane != "own"


class Lease(msgspec.Struct):
    """The right of a session to use named slots of a node."""

    id: LeaseId
    request: RequestId | None  #: None for a lease learned from an agent
    session: SessionId
    user: UserName
    project: ProjectId  #: in which it counts
    home: ProjectId  #: which was named: `project` is the same, or a reservation in it
    qos: str
    agent: AgentId
    slots: tuple[SlotId, ...]
    lane: Lane
    walltime_ms: int
    phase: Phase
    since_ms: int  #: when the phase began; for a busy lease, when its cell did
    cost: int  #: thousandths of a GPU
    charged: int  #: the same at its price, as it was agreed when it was granted or its last cell began
    pool: str = ""  #: the node pool that all its slots are in
    counted_ms: int = 0  #: until when what it used is in the history of its project
    cpus: int = 0
    memory_bytes: int = 0  #: of the host
    kind: SlotKind = SlotKind()  #: of slots that was asked for, as far as it is known
    cell: CellId | None = None
    age: Age | None = None  #: of its cell: that of its request, or from when a hot session began it
    took: frozenset[SessionId] = frozenset()  #: whose cells its request had reclaimed for its project's share
    reclaimed_by: Right = Right.GUARANTEE  #: by what right, where it was reclaimed
    reclaimed_for: ProjectId | None = None  #: the project of the request for which it was reclaimed, if it was for one
    is_pausing: bool = False  #: its agent was asked to pause the cell, and has not declined
    used: int = 0  #: sequence number of when it last became hot: the smallest is the least recently used
    more_ms: int = 0  #: what the cell that runs, or a kept place in all, was given beside the walltime
    is_exclusive: bool = False  #: it asked for a node that nobody else is on
    is_kept: bool = False  #: its agent keeps the place between cells: all of them are one that goes on
    kept_since_ms: int | None = None  #: when the first cell in a kept place began

    @property
    def began_ms(self) -> int:
        """When the cell of a busy lease began; in a kept place the first one, which goes on with the next."""
        return self.since_ms if self.kept_since_ms is None else self.kept_since_ms

    @property
    def cell_walltime_ms(self) -> int:
        """How long the cell that runs may take: the walltime, of which earlier ones have used some in a kept place."""
        return max(0, self.walltime_ms + self.more_ms - (self.since_ms - self.began_ms))

    def end_ms(self, alarm_ms: int) -> int:
        """When it is over at the latest, if the cell of a granted one begins by the alarm; 0 where it would go."""
        match self.phase:
            case Phase.BUSY:
                return self.since_ms + self.cell_walltime_ms
            case Phase.GRANTED:
                return alarm_ms + self.walltime_ms
            case _:
                return 0


def lease_of(
    request: Request,
    agent: AgentId,
    slots: tuple[SlotId, ...],
    phase: Phase,
    since_ms: int,
    cost: int,
    charged: int,
    passed_for: frozenset[ProjectId] = frozenset(),
) -> Lease:
    """Make the lease that a request becomes on these slots, which was late for these projects."""
    shape = request.entry.shape
    return Lease(
        id=request.lease,
        request=request.id,
        session=request.session,
        user=request.user,
        project=request.project,
        home=request.home,
        qos=request.qos,
        agent=agent,
        slots=slots,
        lane=request.lane,
        walltime_ms=request.walltime_ms,
        phase=phase,
        since_ms=since_ms,
        cost=cost,
        charged=charged,
        cpus=shape.wants.cpus,
        memory_bytes=shape.wants.memory_bytes,
        kind=shape.wants.kind,
        is_exclusive=shape.wants.is_exclusive,
        age=Age(request.entry.key.due, request.entry.key.seq, request.shared, passed_for),
        took=request.took,
        is_kept=request.is_kept,
    )


def insert_hot(leases: Mapping[LeaseId, Lease], hot: dict[LeaseId, Value], lease: Lease, value: Value) -> None:
    """Put a hot lease where it belongs in `hot`. That is last, unless it was hot before and is counted again."""
    newest = next(reversed(hot), None)
    hot[lease.id] = value
    if newest is not None and leases[newest].used > lease.used:
        for one in sorted(hot, key=lambda one: leases[one].used):
            hot[one] = hot.pop(one)
