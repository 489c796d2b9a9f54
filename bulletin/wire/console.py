"""What people ask a broker at a command line, and what it answers. They come to the kernels' door, with a Hello.

    person ── FromConsole / ToConsole ── broker        who waits and why, who runs where; stop it, hold it, empty a node

Each question has one answer: the report that is named beside it, or Refusal with a sentence. Only admins see other
people's names and cells. A request, the lease it becomes and the row of the ledger have one name, the lease's; wherever
an id is asked for, its beginning is enough, and a cell's id will do. Times are durations up to the answer.
"""

from typing import Annotated, Literal

import msgspec

from bulletin.codes import CellOutcome
from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, SlotId, UserName
from bulletin.wire.messages import TEXT_LIMIT, Duration, Malformed, Message, Name, Refusal, Unknown, Welcome
from bulletin.wire.messages.allowance_requests import AllowanceQuestion, AllowanceReport
from bulletin.wire.messages.announcements import AnnouncementQuestion, AnnouncementReport
from bulletin.wire.messages.engine_broker import Demand, EngineNews
from bulletin.wire.messages.own_cells import AskOwn, OwnReport
from bulletin.wire.messages.quota_edits import QuotaAnswer, QuotaQuestion

User = Annotated[UserName, msgspec.Meta(max_length=TEXT_LIMIT)]
Project = Annotated[ProjectId, msgspec.Meta(max_length=TEXT_LIMIT)]


# --- who waits, who runs: AskQueue, QueueReport


class AskQueue(Message, frozen=True, kw_only=True, tag="ask-queue"):
    """Ask who waits and who runs; of one user, and of one project with all that is in it."""

    user: User | None = None
    project: Project | None = None


class WaitingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A request in line."""

    lease: LeaseId
    position: int
    user: UserName
    project: ProjectId
    qos: str
    gpus: int
    walltime_ms: int
    waited_ms: int
    reason: str
    #: An upper bound where one is known.
    wait_ms: int | None
    in_quota: bool
    label: str = ""
    #: What half of those who waited like this did not exceed, from here on; None where few did.
    usual_ms: int | None = None


class RunningRow(msgspec.Struct, frozen=True, kw_only=True):
    """A lease. `for_ms` is since it was granted, its cell began or it became hot, whichever came last."""

    lease: LeaseId
    #: None where no cell runs that the broker has heard of.
    cell: CellId | None
    user: UserName
    project: ProjectId
    qos: str
    node: str
    slots: tuple[SlotId, ...]
    state: Literal["granted", "busy", "reclaiming", "hot", "leaving"]
    for_ms: int
    walltime_ms: int
    #: None where it is not charged to anybody: no cell runs.
    in_quota: bool | None
    is_exclusive: bool = False


class QueueReport(Message, frozen=True, kw_only=True, tag="queue-report"):
    """The line in its order, as much of it as can be told at once, and the leases, the oldest first."""

    waiting: tuple[WaitingRow, ...]
    #: How many wait in all.
    waiting_count: int
    running: tuple[RunningRow, ...]
    slot_word: str


# --- projects: AskProjects, ProjectReport


class AskProjects(Message, frozen=True, tag="ask-projects"):
    """Ask what each project uses, may use and waits for."""


class PoolUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a project has of a node pool, with all that is in it, in thousandths of a GPU."""

    name: str
    used_milli: int
    guaranteed_milli: int


class ProjectRow(msgspec.Struct, frozen=True, kw_only=True):
    """A project with all that is in it, in thousandths of a GPU (of a CPU slot, in a pool without a GPU)."""

    project: ProjectId
    parent: ProjectId | None
    used_milli: int
    #: With hot sessions.
    held_milli: int
    guaranteed_milli: int
    limit_milli: int | None
    waiting: int
    #: In GPU-milliseconds, of the period that runs; without a budget, None.
    budget_ms: int | None = None
    budget_left_ms: int | None = None
    period: Literal["day", "week", "month"] | None = None
    period_ends_ms: int | None = None
    #: It was reclaimed from: how long until it may borrow again. 0 is now.
    borrows_in_ms: int = 0
    #: What counts of what it earned and spent, in GPU-milliseconds.
    credits_ms: int = 0
    #: Its class hours in words, those that are on or the next ones; empty without any. What they guarantee is in force.
    class_hours: str = ""
    node_pools: tuple[PoolUse, ...] = ()  #: what it is guaranteed in node pools, and uses there
    leads: tuple[UserName, ...] = ()  #: whom the quota file names as its leads
    #: The rule of the quota file that made it; empty where the file names it, and where no rule is for it.
    rule: str = ""
    #: What it is guaranteed by the settings, where the pool can keep less of it: all are promised more than it has.
    promised_milli: int | None = None


class ProjectReport(Message, frozen=True, kw_only=True, tag="project-report"):
    """Projects in the order of their tree: whatever a project is in stands above it."""

    projects: tuple[ProjectRow, ...]
    slot_word: str


# --- one request, lease or cell: AskAbout, and one of three answers


class AskAbout(Message, frozen=True, kw_only=True, tag="ask-about"):
    """Ask for all that is known of a request, a lease or a cell."""

    id: Name


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node as a request sees it, in slots of the kind that it would use."""

    node: str
    capacity: int
    free: int
    busy: int
    hot: int
    leaving: int
    is_drained: bool
    #: Whether its slots are enough for the request, were they free.
    is_large_enough: bool
    #: It is to be drained then; None where nobody plans that.
    drains_in_ms: int | None = None
    #: Why, of either, as an admin has said.
    why_drained: str = ""


class AboutWaiting(Message, frozen=True, kw_only=True, tag="about-waiting"):
    """A request that waits. `projects` are the one that pays and those that it is in, from the inside out."""

    request: WaitingRow
    projects: tuple[ProjectRow, ...]
    nodes: tuple[NodeRow, ...]
    slot_word: str


class EndedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a cell, as the ledger has it. Time of day in milliseconds since 1970, UTC."""

    cell: CellId
    attempt: int
    lease: LeaseId
    user: UserName
    project: ProjectId
    qos: str
    node: str
    slots: tuple[SlotId, ...]
    outcome: CellOutcome
    started_at_ms: int
    ended_at_ms: int
    held_ms: int
    ran_ms: int
    in_quota_ms: int
    borrowed_ms: int
    refunded_ms: int
    peak_memory_bytes: int | None
    mean_utilization: float | None
    bytes_sent: int
    bytes_returned: int
    label: str = ""
    #: Slot time that was charged at the price of its GPUs, without what was refunded; None where they have no price.
    charged_ms: int | None = None
    #: How many short cells the row is, one after the other; `cell` names the first.
    runs: int = 1
    #: In line, before its slots were granted; None is not known.
    waited_ms: int | None = None
    #: Nobody else was on the node: its slots are all that it has.
    is_exclusive: bool = False


class AboutRunning(Message, frozen=True, kw_only=True, tag="about-running"):
    """A lease that holds slots; `cells` are those that ran before, the last one first."""

    lease: RunningRow
    projects: tuple[ProjectRow, ...]
    cells: tuple[EndedRow, ...]
    slot_word: str


class AboutEnded(Message, frozen=True, kw_only=True, tag="about-ended"):
    """A lease or a cell that is over: the cells of the lease, or the runs of the cell, the last one first."""

    cells: tuple[EndedRow, ...]
    slot_word: str


# --- what changes something: Cancel, Cancelled; Drain, Drained


class Cancel(Message, frozen=True, kw_only=True, tag="cancel"):
    """Withdraw a request, or stop its cell as the stop button does: said again, its process is ended."""

    id: Name


class Cancelled(Message, frozen=True, kw_only=True, tag="cancelled"):
    """The answer to Cancel: `what` is done or under way; a cell that was asked to stop may take its time."""

    lease: LeaseId
    user: UserName
    what: Literal["withdrawn", "interrupted", "ended"]


class Drain(Message, frozen=True, kw_only=True, tag="drain"):
    """Give a node nothing more, by its name or its agent's, from now or from then on; or give it something again."""

    node: Name
    is_undone: bool = False
    in_ms: Duration | None = None
    why: Name = ""


class Drained(Message, frozen=True, kw_only=True, tag="drained"):
    """The answer to Drain: it holds from now on, until it is undone. `running` is what the node still has."""

    node: str
    agents: tuple[AgentId, ...]
    is_drained: bool
    running: tuple[RunningRow, ...]
    slot_word: str
    #: When it is drained; None is: now.
    in_ms: int | None = None


# --- one request or cell, by hand: Hold, Release, PutFirst, Requeue, Extend, and ChangedByHand


class Hold(Message, frozen=True, kw_only=True, tag="hold"):
    """Have a request not start before it is released; what an admin holds only an admin releases."""

    id: Name
    why: Name = ""


class Release(Message, frozen=True, kw_only=True, tag="release"):
    """Let a request that is held wait as others do, since it came."""

    id: Name
    why: Name = ""


class PutFirst(Message, frozen=True, kw_only=True, tag="put-first"):
    """Let a request be the first of its project."""

    id: Name
    why: Name = ""


class Requeue(Message, frozen=True, kw_only=True, tag="requeue"):
    """Have a running cell leave its slots within its grace, and run again."""

    id: Name
    why: Name = ""


class Extend(Message, frozen=True, kw_only=True, tag="extend"):
    """Give a running cell more time than its walltime."""

    id: Name
    more_ms: Duration
    why: Name = ""


Change = Literal["held", "released", "put-first", "requeued", "extended"]


class ChangedByHand(Message, frozen=True, kw_only=True, tag="changed"):
    """The answer to each of them: it is done."""

    lease: LeaseId
    user: UserName
    project: ProjectId
    what: Change
    why: str = ""
    #: How long the cell of a lease that is requeued has to end.
    grace_ms: int = 0
    #: Of a cell that was given more time: what it may take in all, and what of that is left.
    walltime_ms: int = 0
    left_ms: int = 0


# --- one user, by hand: Boost, AskBoosts, and Boosts


class Boost(Message, frozen=True, kw_only=True, tag="boost"):
    """Let a user's requests stand before those of the project's other users for so long, from now on; or no longer."""

    user: User
    project: Project
    for_ms: Duration | None = None
    is_undone: bool = False
    why: Name = ""


class AskBoosts(Message, frozen=True, tag="ask-boosts"):
    """Ask who is boosted."""


class BoostRow(msgspec.Struct, frozen=True, kw_only=True):
    """A user of a project, and for how long yet."""

    user: UserName
    project: ProjectId
    for_ms: int
    by: UserName
    why: str


class BoostReport(Message, frozen=True, kw_only=True, tag="boost-report"):
    """The answer to both: who is boosted, those that end first before others."""

    boosts: tuple[BoostRow, ...]


# --- what is counted: AskMetrics, MetricsReport


class AskMetrics(Message, frozen=True, tag="ask-metrics"):
    """Ask for what is counted of the pool. For admins: it names projects."""


class MetricsReport(Message, frozen=True, kw_only=True, tag="metrics-report"):
    """What Prometheus reads, in its text format."""

    text: str


FromConsole = (
    AskQueue
    | AskProjects
    | AskAbout
    | Cancel
    | Drain
    | Hold
    | Release
    | PutFirst
    | Requeue
    | Extend
    | Boost
    | AskBoosts
    | EngineNews
    | AskMetrics
    | AskOwn
    | QuotaQuestion
    | AllowanceQuestion
    | AnnouncementQuestion
)
Report = (
    QueueReport
    | ProjectReport
    | AboutWaiting
    | AboutRunning
    | AboutEnded
    | Cancelled
    | Drained
    | ChangedByHand
    | BoostReport
    | MetricsReport
    | QuotaAnswer
    | AllowanceReport
    | AnnouncementReport
)
ToConsole = Report | Demand | OwnReport | Welcome | Refusal | Unknown | Malformed
