"""Every message of Bulletin, and one closed union for each link and direction.

A message is a promise to other versions: new fields have defaults, tags and field names are never used again for
something else, and a removal is a new `PROTOCOL`, which the handshake refuses with a sentence.

    kernel ── FromKernel / ToKernel ──────── broker        who are you, may I have a lease, how long must I wait
    agent  ── FromAgent / ToAgent ────────── broker        what the node has, which leases it holds, what cells cost
    kernel ── KernelToAgent / AgentToKernel ─ agent        cells, state, output
    agent  ── ToExecutor / FromExecutor ──── executor      the same cells, state and output, over a pipe
    agent  ── ToZygote / FromZygote ──────── zygote        executors to fork, and what became of them

What a cell says and carries (source, state, output) is opaque to broker and agent.
"""

from typing import Annotated, Literal

import msgspec

from bulletin.ids import (
    AgentId,
    CellId,
    EnvironmentId,
    KernelId,
    LeaseId,
    ProjectId,
    RequestId,
    SessionId,
    SlotId,
    UserName,
)

#: Grows when two versions can no longer understand each other.
PROTOCOL = 1

#: What people and programs may write into a control message: it is short, and numbers are of this world.
TEXT_LIMIT = 256
Name = Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)]
Secret = Annotated[str, msgspec.Meta(max_length=4096)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**6)]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**50)]  # bytes
Duration = Annotated[int, msgspec.Meta(ge=1, le=10 * 366 * 86_400_000)]  # ms; ten years


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """Something said on a link."""


# --- said on every link ---------------------------------------------------------------------------------------------


class Ping(Message, frozen=True, kw_only=True, tag="ping"):
    """Are you there? Answered with a Pong, or with Unknown by one who has forgotten us."""

    #: What an agent has turned away at its own socket so far.
    counters: dict[str, int] = {}


class Pong(Message, frozen=True, tag="pong"):
    """I am."""


class Unknown(Message, frozen=True, tag="unknown"):
    """I do not know you (I may have been restarted): introduce yourself again."""


class Malformed(Message, frozen=True, tag="malformed"):
    """Your frames were not a message of this link. They were counted and dropped."""

    problem: str


# --- kernel and broker ----------------------------------------------------------------------------------------------


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    """The first message of a kernel, and of a status client."""

    protocol: int
    version: Name
    #: The hub's API token of the notebook's server, or the token of a connection file.
    token: Secret
    kernel: Annotated[KernelId, msgspec.Meta(max_length=TEXT_LIMIT)]


class Welcome(Message, frozen=True, kw_only=True, tag="welcome"):
    """You are known."""

    user: UserName
    version: str
    #: What a slot of this pool is for people: "GPU" or "CPU slot".
    slot_word: str = "GPU"


#: The code of a request that a person withdrew on its kernel's behalf.
CANCELLED = "cancelled"


class Refused(Message, frozen=True, kw_only=True, tag="refused"):
    """No, for good: of a request, or (without one) of the whole conversation."""

    code: str
    sentence: str
    request: RequestId | None = None


class Submit(Message, frozen=True, kw_only=True, tag="submit"):
    """Ask for a lease for this kernel's next cell."""

    request: Annotated[RequestId, msgspec.Meta(max_length=TEXT_LIMIT)]
    qos: Name = "interactive"
    gpus: Count = 1
    walltime_ms: Duration | None = None
    project: Annotated[ProjectId, msgspec.Meta(max_length=TEXT_LIMIT)] | None = None
    environment: Annotated[EnvironmentId, msgspec.Meta(max_length=TEXT_LIMIT)] | None = None
    label: Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)] = ""
    #: Words of the GPU's name; what each GPU has at least; CPUs and memory of the host. 0 asks for nothing more.
    gpu_type: Name = ""
    gpu_memory_bytes: Size = 0
    cpus: Count = 0
    memory_bytes: Size = 0


class Withdraw(Message, frozen=True, kw_only=True, tag="withdraw"):
    """The request is no longer wanted."""

    request: Annotated[RequestId, msgspec.Meta(max_length=TEXT_LIMIT)]


class Queued(Message, frozen=True, kw_only=True, tag="queued"):
    """Where a request stands. Sent when it changes, and at least every second."""

    request: RequestId
    position: int
    reason: str
    #: An upper bound where one is known.
    wait_ms: int | None = None
    in_quota: bool = True


class AgentAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent is, and how to know that it is the right one."""

    #: For state and cells: a ZeroMQ address with this CURVE public key.
    address: str
    public_key: str
    #: The path of a Unix socket on the agent's host that hands out shared memory; used by kernels of the same boot.
    door: str = ""
    boot: str = ""


class Granted(Message, frozen=True, kw_only=True, tag="granted"):
    """The lease is yours. Attach to the agent with the ticket."""

    request: RequestId
    lease: LeaseId
    session: SessionId
    agent: AgentAddress
    ticket: str
    node: str
    slots: tuple[str, ...]
    walltime_ms: int
    #: Whether the guarantee of its project covers it now; None where the pool guarantees nothing to anybody.
    in_quota: bool | None = None
    #: The memory of one of its slots, and the sizes that slots of the pool have; 0 and none on CPU slots.
    memory_bytes: int = 0
    sizes: tuple[int, ...] = ()


class Revoked(Message, frozen=True, kw_only=True, tag="revoked"):
    """The lease is over, and not because the kernel gave it back."""

    lease: LeaseId
    code: str
    sentence: str


class Look(Message, frozen=True, tag="look"):
    """What is going on in the pool? For people and pages."""


class SlotPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One slot as a person sees it."""

    node: str
    slot: SlotId
    name: str
    state: Literal["free", "granted", "busy", "hot", "leaving"]
    user: UserName | None = None
    memory_bytes: int = 0


class WaitingPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One waiting request as a person sees it."""

    position: int
    user: UserName
    qos: str
    gpus: int
    reason: str
    waited_ms: int
    wait_ms: int | None = None


class CellPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One finished cell of the ledger as a person sees it."""

    cell: CellId
    user: UserName
    project: ProjectId
    qos: str
    node: str
    outcome: str
    ended_at_ms: int
    ran_ms: int
    gpu_ms: int
    peak_memory_bytes: int | None = None
    mean_utilization: float | None = None


class ProjectPicture(msgspec.Struct, frozen=True, kw_only=True):
    """How a project stands, in thousandths of a GPU."""

    project: ProjectId
    used_milli: int
    guaranteed_milli: int
    limit_milli: int | None = None


class Picture(Message, frozen=True, kw_only=True, tag="picture"):
    """The pool at this moment. Other people's names are left out for those who may not see them."""

    slots: tuple[SlotPicture, ...]
    waiting: tuple[WaitingPicture, ...]
    recent: tuple[CellPicture, ...]
    counters: dict[str, int]
    uptime_ms: int
    slot_word: str
    #: The one that pays for the viewer's cells when nobody says.
    project: ProjectPicture | None = None


class Find(Message, frozen=True, tag="find"):
    """The cells of this user that nodes have are asked for."""


class CellNote(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that its node still has, for the user whose it is."""

    cell: CellId
    agent: AgentId
    node: str
    state: Literal["running", "finished", "lost"]
    #: The first line of its source that says something.
    line: Name
    label: Name = ""
    #: How long ago it began.
    since_ms: int = 0
    #: Its notebook is there, and takes its results itself.
    is_attended: bool = False


class Found(Message, frozen=True, kw_only=True, tag="found"):
    """The cells of this user, oldest first. `missing` are the nodes that did not answer."""

    cells: tuple[CellNote, ...]
    missing: tuple[str, ...] = ()


class Join(Message, frozen=True, kw_only=True, tag="join"):
    """Let this kernel have a cell whose own is gone. Answered with Granted or Refused."""

    request: Annotated[RequestId, msgspec.Meta(max_length=TEXT_LIMIT)]
    cell: Annotated[CellId, msgspec.Meta(max_length=TEXT_LIMIT)]
    agent: Annotated[AgentId, msgspec.Meta(max_length=TEXT_LIMIT)]


FromKernel = Hello | Submit | Withdraw | Look | Find | Join | Ping
ToKernel = Welcome | Refused | Queued | Granted | Revoked | Picture | Found | Pong | Unknown | Malformed


# --- agent and broker -----------------------------------------------------------------------------------------------


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
    #: Of the host, for those who ask for some; 0 is nothing to give.
    cpus: int = 0
    memory_bytes: int = 0


class Registered(Message, frozen=True, tag="registered"):
    """The broker knows the agent and its leases."""


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
    #: What it asked for of the host, to be told to a broker that has forgotten it. Not a limit.
    cpus: int = 0
    memory_bytes: int = 0


class Prepared(Message, frozen=True, kw_only=True, tag="prepared"):
    """The session's executor is up; its kernel may come."""

    lease: LeaseId


class Evict(Message, frozen=True, kw_only=True, tag="evict"):
    """Somebody waits: end this session if it is hot. One that is busy stays, and its agent says so.

    By `force` it ends in any case: the broker has given the session up (its node was thought lost).
    """

    lease: LeaseId
    force: bool = False


class Reclaim(Message, frozen=True, kw_only=True, tag="reclaim"):
    """Whom the slots are guaranteed to wants them back: end this session with its cell, or after the grace.

    A cell that had not ended by then is lost with the code "reclaimed", and its kernel asks for it again.
    """

    lease: LeaseId
    grace_ms: int


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


class CellBegan(Message, frozen=True, kw_only=True, tag="cell-began"):
    """A cell runs on this lease, and has run for so long."""

    lease: LeaseId
    cell: CellId
    running_ms: int = 0


class CellUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell cost, for the ledger and the receipt. Durations by the agent's clock."""

    outcome: str
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


class Recorded(Message, frozen=True, kw_only=True, tag="recorded"):
    """The ledger has the run of the cell in that lease."""

    cell: CellId
    lease: LeaseId | None = None


class LeaseOver(Message, frozen=True, kw_only=True, tag="lease-over"):
    """The session is gone from its slots, and they are free."""

    lease: LeaseId
    code: str
    sentence: str


class ListCells(Message, frozen=True, kw_only=True, tag="list-cells"):
    """Say which cells of this user are there."""

    query: str
    user: UserName


class Listed(Message, frozen=True, kw_only=True, tag="listed"):
    """These."""

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


FromAgent = Register | Prepared | CellBegan | CellDone | PauseDeclined | LeaseOver | Listed | HandedOver | Ping
ToAgent = (
    Registered
    | Prepare
    | Evict
    | Reclaim
    | Pause
    | CancelCell
    | Recorded
    | ListCells
    | HandOver
    | Refused
    | Pong
    | Unknown
    | Malformed
)


# --- kernel and agent, agent and executor ---------------------------------------------------------------------------


class Attach(Message, frozen=True, kw_only=True, tag="attach"):
    """The ticket of a lease: from now on this connection is its session."""

    protocol: int
    lease: Annotated[LeaseId, msgspec.Meta(max_length=TEXT_LIMIT)]
    ticket: Secret
    #: After a lost connection: the last output of this cell that arrived. The agent sends what came after.
    cell: CellId | None = None
    seen: int = 0
    #: The kernel has the rings of the session: results that come again may come through them.
    has_rings: bool = False
    #: The cell is another kernel's: what it hands back must be complete.
    is_joining: bool = False


class Attached(Message, frozen=True, kw_only=True, tag="attached"):
    """Come in. `cell` is the one that runs, if one does."""

    lease: LeaseId
    cell: CellId | None = None
    #: How many bytes of the cell's state have not come; None where nobody says.
    lacks: int | None = None
    #: The stop button was heard.
    is_stopped: bool = False


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes in bytes of a stream and its buffers. They follow as blobs of the same message, or as chunks."""

    sizes: tuple[int, ...] = ()
    inline: bool = True


class Run(Message, frozen=True, kw_only=True, tag="run"):
    """Run this cell with this state."""

    cell: Annotated[CellId, msgspec.Meta(max_length=TEXT_LIMIT)]
    source: str
    #: The notebook's execution count, so that tracebacks say "Cell In[5]".
    number: int
    parcel: Parcel
    silent: bool = False
    #: The kernel has the rings of the session: results may come through them.
    has_rings: bool = False
    #: The message of the front end that asked the kernel for the cell: widgets that catch output name it.
    request: Name = ""
    #: The source is all of the notebook's cell; else it stands below a line, which tracebacks count.
    is_whole: bool = False
    #: Whether the cell goes on when its kernel is gone, for another one to join.
    outlives_kernel: bool = True


class Chunk(Message, frozen=True, kw_only=True, tag="chunk"):
    """The next `size` bytes of a cell's parcel: as blobs, or (on one host) in place `at` of the ring."""

    cell: CellId
    size: int
    at: int | None = None
    #: Of results: which sending of them it belongs to, as their Ended says.
    round: int = 0


class Took(Message, frozen=True, kw_only=True, tag="took"):
    """One chunk has been taken in: another may be sent."""

    cell: CellId
    #: That of the chunk.
    round: int = 0


class Output(Message, frozen=True, kw_only=True, tag="output"):
    """A Jupyter message of the cell: its type here, its content as JSON in the first blob."""

    cell: CellId
    type: str
    #: Given by the agent, from 1 up in each cell.
    seq: int = 0
    #: Of a cell that has ended: a thread or a task that it started goes on. Numbered from 1 up in each session.
    late: bool = False


class Asked(Message, frozen=True, kw_only=True, tag="asked"):
    """The cell called input() or getpass()."""

    cell: CellId
    prompt: str
    password: bool = False
    #: Given by the agent, from 1 up in each cell: one that is asked again has the number that it had.
    number: int = 0


class Answer(Message, frozen=True, kw_only=True, tag="answer"):
    """What the user typed."""

    cell: CellId
    text: str


class Stop(Message, frozen=True, kw_only=True, tag="stop"):
    """The stop button. The first is an interrupt; a hard one ends the executor."""

    cell: CellId
    hard: bool = False


class Seen(Message, frozen=True, kw_only=True, tag="seen"):
    """Outputs up to this one have arrived. `is_done`: so have the results, and nobody needs the cell any more."""

    cell: CellId
    seq: int
    #: Those of cells that have ended, of whichever.
    late: bool = False
    is_done: bool = False


class Return(Message, frozen=True, kw_only=True, tag="return"):
    """Send the results of the cell that ended last, from their start: an Ended with this round, then its chunks."""

    cell: CellId
    round: int
    has_rings: bool = False
    #: For another notebook than the one that sent the cell: complete, and of no use to the first.
    is_whole: bool = False


class Leave(Message, frozen=True, tag="leave"):
    """The kernel is done with the session."""


class Noticed(Message, frozen=True, kw_only=True, tag="noticed"):
    """The interrupt reached Python code in the cell."""

    cell: CellId


class Ready(Message, frozen=True, kw_only=True, tag="ready"):
    """The executor is up."""

    pid: int


class ErrorText(msgspec.Struct, frozen=True, kw_only=True):
    """An exception as text, in case the exception itself cannot travel."""

    name: str
    value: str
    traceback: tuple[str, ...]


class Ended(Message, frozen=True, kw_only=True, tag="ended"):
    """The cell is over; what it changed is in the parcel. `usage` is added by the agent."""

    cell: CellId
    outcome: Literal["returned", "raised", "interrupted"]
    parcel: Parcel
    ran_ms: int
    error: ErrorText | None = None
    usage: CellUsage | None = None
    #: Results that were interrupted by a lost connection are sent again from their start: in another round.
    round: int = 0


class Lost(Message, frozen=True, kw_only=True, tag="lost"):
    """The executor is gone. If it ran a cell, that cell changed nothing in the notebook."""

    cell: CellId | None
    code: str
    sentence: str


class Notice(Message, frozen=True, kw_only=True, tag="notice"):
    """Something that the user should know about the cell that runs."""

    cell: CellId
    sentence: str


class Gone(Message, frozen=True, kw_only=True, tag="gone"):
    """The lease is not here (any more). A cell that was just sent has not run."""

    code: str
    sentence: str


# --- agent and zygote -----------------------------------------------------------------------------------------------


class Fork(Message, frozen=True, kw_only=True, tag="fork"):
    """Fork an executor. Its pipe, its ring in and its ring out come as descriptors beside this message."""

    lease: LeaseId
    #: Set over the zygote's own environment before anything else runs.
    environ: dict[str, str]
    #: Who to become, where the zygote may: user, group, further groups.
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    folder: str | None = None


class Forked(Message, frozen=True, kw_only=True, tag="forked"):
    """The executor's process id; it leads a process group (and a session) of its own."""

    lease: LeaseId
    pid: int


class Exited(Message, frozen=True, kw_only=True, tag="exited"):
    """An executor is gone; `status` is as os.waitstatus_to_exitcode gives it (negative: that signal)."""

    pid: int
    status: int


class Warm(Message, frozen=True, kw_only=True, tag="warm"):
    """The zygote has imported what it could and waits. What it could not, and why."""

    imported: tuple[str, ...]
    failed: dict[str, str] = {}


ToZygote = Fork
FromZygote = Warm | Forked | Exited


# --- the unions -----------------------------------------------------------------------------------------------------

KernelToAgent = Attach | Run | Chunk | Took | Answer | Stop | Seen | Leave | Ping
AgentToKernel = (
    Attached | Chunk | Took | Output | Asked | Notice | Ended | Lost | Gone | Refused | Pong | Unknown | Malformed
)
ToExecutor = Run | Chunk | Took | Answer | Return | Seen
FromExecutor = Ready | Chunk | Took | Output | Asked | Noticed | Ended
