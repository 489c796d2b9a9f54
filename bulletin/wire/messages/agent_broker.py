"""Agent and broker: what the node has, which leases it holds, what cells cost, what must stop.

`clock_ms` is what the agent's steady clock said when the message was made; None where nobody says. By comparing many of
them the broker knows how long ago that was, also where it stood still itself.
"""

from typing import Annotated, Literal

import msgspec

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.ids import AgentId, CellId, EnvironmentId, KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.wire.messages.every_link import Malformed, Message, Name, Ping, Pong, Unknown
from bulletin.wire.messages.kernel_broker import AgentAddress, CellNote, Refusal


class SlotOffer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A GPU, a MIG slice or a CPU slot of a node."""

    slot: SlotId
    kind: Literal["gpu", "mig", "cpu"]
    name: str
    memory_bytes: int = 0
    #: What it costs, in thousandths of a GPU: a slice is a part of one.
    milli: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1000


class HeldLease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A lease as its agent still holds it, told to a broker that may have forgotten."""

    lease: LeaseId
    session: SessionId
    kernel: KernelId
    user: UserName
    project: ProjectId
    qos: str
    slots: tuple[SlotId, ...]
    walltime_ms: int
    cell: CellId | None = None
    running_ms: int = 0
    #: How long the agent has had the lease.
    held_ms: int = 0
    cpus: int = 0
    memory_bytes: int = 0
    #: What its cell was given beside the walltime.
    more_ms: int = 0
    #: What its user calls the cell that runs.
    label: Name = ""
    #: Its slots are kept between its cells, for its walltime in all.
    is_kept: bool = False
    #: They are all slots of the node, as it asked for.
    is_exclusive: bool = False


class Register(Message, frozen=True, kw_only=True, tag="register"):
    """The first message of an agent, and its answer to Unknown."""

    protocol: int
    version: str
    #: The pool's secret: only the pool's own agents know it.
    secret: str
    agent: AgentId
    node: str
    address: AgentAddress
    slots: tuple[SlotOffer, ...]
    held: tuple[HeldLease, ...] = ()
    #: Drawn anew by each process of the agent: what another one held is gone with it. Empty where nobody says.
    process: str = ""
    #: Of the host, for those who ask for some; 0 is nothing to give.
    cpus: int = 0
    memory_bytes: int = 0
    #: The Unix user that all its cells run as; empty where each runs as its own user.
    shared_account: str = ""
    #: What would keep its cells apart and is not there: `Pool.require` has the words.
    missing_protections: tuple[str, ...] = ()
    #: How long until it begins to leave, where its time is limited, as a job's is; None is not.
    leaves_in_ms: int | None = None
    #: It leaves at another time when it is told HostEnds.
    follows_host_end: bool = False
    clock_ms: int | None = None


class Registered(Message, frozen=True, tag="registered"):
    """The answer to Register: the broker knows the agent and its leases."""


class Prepare(Message, frozen=True, kw_only=True, tag="prepare"):
    """Start an executor for this session on these slots, and let the holder of the ticket in."""

    lease: LeaseId
    session: SessionId
    kernel: KernelId
    user: UserName
    project: ProjectId
    qos: str
    slots: tuple[SlotId, ...]
    walltime_ms: int
    ticket: str
    environment: EnvironmentId | None = None
    label: str = ""
    #: What it asked for of the host, to be told to a broker that has forgotten it. The memory is a limit, if not 0.
    cpus: int = 0
    memory_bytes: int = 0
    #: As in Submit.
    keep_ms: int = 0
    keep_at_once: bool = False
    is_exclusive: bool = False


class Prepared(Message, frozen=True, kw_only=True, tag="prepared"):
    """The session's executor is up; its kernel may come."""

    lease: LeaseId


class Evict(Message, frozen=True, kw_only=True, tag="evict"):
    """Somebody waits: end this session if it is hot. One that is busy stays, and its agent says so.

    By `force` it ends in any case: the broker has given the session up (its node was thought lost). `sentence` tells
    the notebook why, where it is not for who waits.
    """

    lease: LeaseId
    force: bool = False
    sentence: str = ""


class Reclaim(Message, frozen=True, kw_only=True, tag="reclaim"):
    """Who has more right to the slots wants them back: end this session with its cell, or after the grace.

    A cell that had not ended by then is lost with the code "reclaimed", and its kernel asks for it again.
    """

    lease: LeaseId
    grace_ms: int
    #: Of whoever has less of what nobody is guaranteed; else the slots are guaranteed to somebody.
    is_for_share: bool = False
    #: Of the same project, in a class of service that comes before this one.
    is_for_class: bool = False
    #: An admin wants the cell to run again; nobody else asks for the slots.
    is_by_admin: bool = False
    #: The agent's own word to its sessions: the node leaves the pool.
    is_node_leaving: bool = False


class Pause(Message, frozen=True, kw_only=True, tag="pause"):
    """Whom the slots are guaranteed to wants them back: move this session off them with its state, within the grace.

    An agent that cannot says PauseDeclined.
    """

    lease: LeaseId
    grace_ms: int


class PauseDeclined(Message, frozen=True, kw_only=True, tag="pause-declined"):
    """The cell of this lease cannot be paused. The broker then reclaims the lease."""

    lease: LeaseId


class CancelCell(Message, frozen=True, kw_only=True, tag="cancel-cell"):
    """A person with the right to it cancels the cell: stop it as the stop button does, and tell its kernel.

    Where no cell has come yet the session ends, with the code "cancelled". A hard one ends the executor.
    """

    lease: LeaseId
    sentence: str
    hard: bool = False


class ExtendCell(Message, frozen=True, kw_only=True, tag="extend-cell"):
    """Let the cell that runs on this lease take longer than its walltime by so much, all in all; tell its kernel."""

    lease: LeaseId
    cell: CellId
    more_ms: int
    sentence: str


class HostEnds(Message, frozen=True, kw_only=True, tag="host-ends"):
    """Let the agent leave after so long (NEVER_MS: never), and not when it was to: its host's time was changed."""

    leaves_in_ms: Annotated[int, msgspec.Meta(ge=0)]


class CellBegan(Message, frozen=True, kw_only=True, tag="cell-began"):
    """A cell runs on this lease, and has run for so long."""

    lease: LeaseId
    cell: CellId
    running_ms: int = 0
    clock_ms: int | None = None
    #: What its user calls it; None where nobody says.
    label: Name | None = None


class CellUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell cost, for the ledger and the receipt. Durations by the agent's clock."""

    outcome: CellOutcome
    ran_ms: int
    held_ms: int
    peak_memory_bytes: int | None = None
    mean_utilization: float | None = None
    bytes_sent: int = 0
    bytes_returned: int = 0
    #: Set where the cell was stopped because it reached it.
    walltime_ms: int | None = None


class CellDone(Message, frozen=True, kw_only=True, tag="cell-done"):
    """A cell is over. Said again until the broker has Recorded it: usage is counted once, whoever restarts."""

    lease: LeaseId
    session: SessionId
    cell: CellId
    user: UserName
    project: ProjectId
    qos: str
    slots: tuple[SlotId, ...]
    usage: CellUsage
    #: How long ago the cell ended: clocks of two machines are not compared.
    ended_ago_ms: int = 0
    label: str = ""
    clock_ms: int | None = None


class Recorded(Message, frozen=True, kw_only=True, tag="recorded"):
    """The ledger has the run of the cell in that lease."""

    cell: CellId
    lease: LeaseId | None = None


class LeaseOver(Message, frozen=True, kw_only=True, tag="lease-over"):
    """The session is gone from its slots, and they are free."""

    lease: LeaseId
    code: LeaseEnd
    sentence: str


class Leaving(Message, frozen=True, tag="leaving"):
    """The agent is to end: it takes nothing more, and what runs there has its grace and is then run again elsewhere."""


class Left(Message, frozen=True, tag="left"):
    """The last message of an agent: all that it had is over."""


class ListCells(Message, frozen=True, kw_only=True, tag="list-cells"):
    """Ask an agent which cells of this user it has."""

    query: str
    user: UserName


class Listed(Message, frozen=True, kw_only=True, tag="listed"):
    """The cells of the user of a ListCells that this agent has."""

    query: str
    cells: tuple[CellNote, ...]


class HandOver(Message, frozen=True, kw_only=True, tag="hand-over"):
    """Let in whoever shows this ticket, and not the kernel that sent the cell. The agent compares the user."""

    query: str
    cell: CellId
    user: UserName
    session: SessionId
    kernel: KernelId
    ticket: str


class HandedOver(Message, frozen=True, kw_only=True, tag="handed-over"):
    """The cell has another kernel from now on; or, with a sentence, it has not."""

    query: str
    lease: LeaseId | None = None
    slots: tuple[SlotId, ...] = ()
    walltime_ms: int = 0
    sentence: str = ""


FromAgent = (
    Register | Prepared | CellBegan | CellDone | PauseDeclined | LeaseOver | Listed | HandedOver | Leaving | Left | Ping
)
ToAgent = (
    Registered
    | Prepare
    | Evict
    | Reclaim
    | Pause
    | CancelCell
    | ExtendCell
    | Recorded
    | ListCells
    | HandOver
    | HostEnds
    | Refusal
    | Pong
    | Unknown
    | Malformed
)
