"""All that may happen, as the scheduler sees it. Private facts: the broker translates wire messages into them."""

from typing import Literal

import msgspec

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from gpu_worker.scheduler.policy.allowances import Allowance
from gpu_worker.scheduler.policy.credits import Credits
from gpu_worker.scheduler.policy.projects import SchedulerSettings

#: Whose a node is that nobody has brought for themselves: the pool's.
NOBODY = UserName("")


class Slot(msgspec.Struct, frozen=True):
    """What a node offers to one session at a time: a GPU, a MIG slice, or a CPU slot."""

    id: SlotId  #: unique on its node
    kind: Literal["gpu", "mig", "cpu"]
    name: str
    memory_bytes: int
    milli: int = 1000  #: what it costs, in thousandths of a GPU: less than 1000 for a slice
    owner: UserName = NOBODY  #: who has brought its node, which is for them alone; empty is the pool's


class ReportedLease(msgspec.Struct, frozen=True):
    """A lease that an agent still holds, as it reports it when it joins."""

    lease: LeaseId
    session: SessionId
    user: UserName
    project: ProjectId
    qos: str
    slots: tuple[SlotId, ...]
    cell: CellId | None  #: None where no cell runs: the session is hot
    walltime_ms: int
    running_ms: int  #: how long the cell has run by the agent's clock
    held_ms: int = 0  #: how long the agent has had the lease
    cpus: int = 0
    memory_bytes: int = 0  #: of the host
    #: What was agreed for the cell that runs, in thousandths of a GPU at its price; None where nobody knows.
    charged: int | None = None
    more_ms: int = 0  #: what its cell was given beside its walltime
    is_kept: bool = False  #: also between its cells, for its walltime in all
    is_exclusive: bool = False  #: it asked for a node that nobody else is on


class AgentJoined(msgspec.Struct, frozen=True, tag=True):
    """An agent connected, or connected again, and says what it offers and holds. The report is the truth."""

    agent: AgentId
    node: str
    slots: tuple[Slot, ...]
    held: tuple[ReportedLease, ...] = ()
    cpus: int = 0
    memory_bytes: int = 0  #: of the host
    owner: UserName = NOBODY  #: whose own node it is, as whoever let it in says; empty is the pool's


class AgentLost(msgspec.Struct, frozen=True, tag=True):
    """An agent has not been heard of for too long."""

    agent: AgentId


class NodeDrained(msgspec.Struct, frozen=True, tag=True):
    """An admin wants a node empty, or no longer. It holds for the agent's name, also while it is away."""

    agent: AgentId
    is_drained: bool = True


class NodesAwaited(msgspec.Struct, frozen=True, tag=True):
    """These nodes were in the pool before the scheduler was there, and come back one by one, if they do.

    Until all are back, or until a time, nothing is refused because no node has it.
    """

    nodes: tuple[str, ...]  #: their names
    until_ms: int  #: in the time of `step`
    has_gpus: bool = False  #: there was a GPU in the pool: until then no CPU slot stands in for one


class OwnNodesAwaited(msgspec.Struct, frozen=True, tag=True):
    """These nodes, which users have brought for themselves, may come once the scheduler is there.

    Until a time nobody is refused who has brought one because nothing has what they ask for.
    """

    owners: dict[AgentId, UserName]
    until_ms: int  #: in the time of `step`


class RequestSubmitted(msgspec.Struct, frozen=True, tag=True):
    """A session wants to run a cell and has no lease for it."""

    request: RequestId
    lease: LeaseId  #: minted outside; becomes the lease's name if the request is granted
    session: SessionId
    user: UserName
    project: ProjectId
    qos: str
    gpus: int  #: 0 is a cell that wants a CPU slot
    walltime_ms: int | None = None  #: None is all that the QoS gives
    gpu_type: str = ""  #: words that the name of each GPU must have; slices are served only where they are named
    gpu_memory_bytes: int = 0  #: what each GPU must have at least
    cpus: int = 0
    memory_bytes: int = 0  #: of the host
    is_kept: bool = False  #: its place, also between its cells: for all of them together it has the walltime
    is_exclusive: bool = False  #: on a node that has just as many slots, all of them


class RequestWithdrawn(msgspec.Struct, frozen=True, tag=True):
    """The kernel no longer wants what it asked for."""

    request: RequestId


class RequestMoved(msgspec.Struct, frozen=True, tag=True):
    """Another session asks for what a request asks for, under a new name: its notebook goes on by that one."""

    request: RequestId
    to: RequestId  #: its new name
    session: SessionId


class CellStarted(msgspec.Struct, frozen=True, tag=True):
    """The first cell of a lease began, or a hot session began another by itself."""

    lease: LeaseId
    cell: CellId
    running_ms: int = 0  #: for how long it has run by now


class CellEnded(msgspec.Struct, frozen=True, tag=True):
    """A cell is over, in whatever way; its session stays hot."""

    lease: LeaseId
    cell: CellId


class LeaseEnded(msgspec.Struct, frozen=True, tag=True):
    """The agent has freed the slots: evicted, released, or the executor is gone."""

    lease: LeaseId


class PauseDeclined(msgspec.Struct, frozen=True, tag=True):
    """The agent cannot pause the cell of a lease: it has to be ended, and run again."""

    lease: LeaseId


class SettingsChanged(msgspec.Struct, frozen=True, tag=True):
    """An admin has changed projects or classes of service. Leases go on; what can never run now is refused."""

    settings: SchedulerSettings


class PastUse(msgspec.Struct, frozen=True):
    """What one user of a project used."""

    project: ProjectId
    user: UserName
    amount: int  #: thousandths of a GPU at its price times milliseconds, as the QoS counts it


class PastCredits(msgspec.Struct, frozen=True):
    """What a project ever earned and spent."""

    project: ProjectId
    credits: Credits
    own_users: bool = False  #: not the project, but its own users among the projects inside it


class UseRecalled(msgspec.Struct, frozen=True, tag=True):
    """Use that came to an end now and that no lease tells of: a ledger knows it, or an agent told of it too late.

    What was before the scheduler was there comes first, in the order of time.
    """

    uses: tuple[PastUse, ...]
    #: For budgets: what each project, with all inside it, has spent in its present period besides; in the same unit.
    spent: dict[ProjectId, int] = {}
    #: Of each project once: its balance goes on from there.
    credits: tuple[PastCredits, ...] = ()


class UseRefunded(msgspec.Struct, frozen=True, tag=True):
    """Use that was worth nothing: its cell was reclaimed, and runs again. Nobody is charged for it.

    It was counted before, as use of leases or as recalled. Of what counts nowhere any more, nothing is taken back.
    """

    uses: tuple[PastUse, ...]
    #: For budgets: how much of it each project, with all inside it, has spent in its present period; in the same unit.
    spent: dict[ProjectId, int] = {}


class RequestHeld(msgspec.Struct, frozen=True, tag=True):
    """A person wants a request not to start before it is released. Said again, the last words hold."""

    request: RequestId
    why: str = ""
    is_by_admin: bool = True  #: or by who leads the project; else by its owner
    is_by_lead: bool = False


class RequestReleased(msgspec.Struct, frozen=True, tag=True):
    """A person lets a request that was held wait as others do."""

    request: RequestId


class RequestPutFirst(msgspec.Struct, frozen=True, tag=True):
    """An admin wants a request to be the first of its project."""

    request: RequestId


class CellRequeued(msgspec.Struct, frozen=True, tag=True):
    """An admin wants the running cell of a lease taken off its slots, and run again."""

    lease: LeaseId


class CellExtended(msgspec.Struct, frozen=True, tag=True):
    """An admin gives the running cell of a lease more time than its walltime."""

    lease: LeaseId
    cell: CellId
    more_ms: int  #: than it has by now


class UserBoosted(msgspec.Struct, frozen=True, tag=True):
    """An admin wants a user's requests before those of the project's other users until a time."""

    project: ProjectId
    user: UserName
    until_ms: int  #: in the time of `step`; from then on, or if that has passed, no longer


class AllowanceChanged(msgspec.Struct, frozen=True, tag=True):
    """A user of a project may have more than others until a time: a dated exception to the rules for everybody."""

    name: str  #: of the allowance, to end it by
    project: ProjectId
    user: UserName
    allowance: Allowance  #: one whose end has passed ends it


class Tick(msgspec.Struct, frozen=True, tag=True):
    """Nothing happened, but a deadline may have passed."""


class DrainPlanned(msgspec.Struct, frozen=True, tag=True):
    """An admin wants a node drained from a time on. NodeDrained, whichever way, takes the place of that."""

    agent: AgentId
    at_ms: int  #: in the time of `step`; what has passed is now


#: What a person changes by hand.
Intervention = (
    RequestHeld | RequestReleased | RequestPutFirst | CellRequeued | CellExtended | UserBoosted | DrainPlanned
)

Event = (
    AgentJoined
    | AgentLost
    | NodeDrained
    | NodesAwaited
    | OwnNodesAwaited
    | RequestSubmitted
    | RequestWithdrawn
    | RequestMoved
    | CellStarted
    | CellEnded
    | LeaseEnded
    | PauseDeclined
    | SettingsChanged
    | UseRecalled
    | UseRefunded
    | AllowanceChanged
    | Tick
    | Intervention
)
