"""Kernel and broker: who are you, may I have a lease, how long must I wait, what does the pool look like."""

from typing import Annotated, Literal

import msgspec

from bulletin.codes import CellOutcome, LeaseEnd, RefusalCode
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
from bulletin.wire.messages.allowance_requests import AllowanceQuestion, AllowanceReport
from bulletin.wire.messages.every_link import (
    TEXT_LIMIT,
    Count,
    Duration,
    Malformed,
    Message,
    Name,
    Ping,
    Pong,
    Secret,
    Size,
    Unknown,
)


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    """The first message of a kernel, and of a status client."""

    protocol: int
    version: Name
    #: The hub's API token of the notebook's server, or the token of a connection file.
    token: Secret
    kernel: Annotated[KernelId, msgspec.Meta(max_length=TEXT_LIMIT)]
    #: A notebook whose user reads what it shows: news for the user are told there, by Pong.
    hears_news: bool = False
    #: It knows what NodeMoved is: who does not gives up on a broker that says it.
    hears_moves: bool = False


class Welcome(Message, frozen=True, kw_only=True, tag="welcome"):
    """The answer to Hello: the broker knows the user."""

    user: UserName
    version: str
    #: What a slot of this pool is for people: "GPU" or "CPU slot".
    slot_word: str = "GPU"
    #: It knew this kernel before: the way to it was cut, and it was not started again meanwhile.
    is_known: bool = False


class Refusal(Message, frozen=True, kw_only=True, tag="refused"):
    """A refusal for good: of a request, or (without one) of the whole conversation."""

    code: RefusalCode
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
    #: False: the person named no QoS. `qos` is then the usual one, and the project may have another default.
    is_qos_asked: bool = True
    #: Keep the slots between cells, for so long after the last one, in all for no longer than the walltime. 0 does not.
    keep_ms: Duration = 0
    #: And from the moment of the grant on: it is for a notebook that is yet to come.
    keep_at_once: bool = False
    #: On a node that has just as many GPUs, and that nobody else is on meanwhile.
    is_exclusive: bool = False


class Withdraw(Message, frozen=True, kw_only=True, tag="withdraw"):
    """Tell the broker that the request is no longer wanted."""

    request: Annotated[RequestId, msgspec.Meta(max_length=TEXT_LIMIT)]


class Queued(Message, frozen=True, kw_only=True, tag="queued"):
    """Where a request stands. Sent when it changes, and at least every second."""

    request: RequestId
    position: int
    reason: str
    #: An upper bound where one is known.
    wait_ms: int | None = None
    in_quota: bool = True
    #: What half of those who waited like this did not exceed, from here on; None where few did.
    usual_ms: int | None = None
    #: What an admin tells everybody, with who that is: said once to each request. Empty otherwise.
    announcement: str = ""


class AgentAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent is, and how to know that it is the right one."""

    #: For state and cells: a ZeroMQ address with this CURVE public key.
    address: str
    public_key: str
    #: The path of a Unix socket on the agent's host that hands out shared memory; used by kernels of the same boot.
    door: str = ""
    boot: str = ""
    #: Whose process listens there: to nobody else's the ticket is shown. None of an agent that does not say.
    door_uid: int | None = None


class Granted(Message, frozen=True, kw_only=True, tag="granted"):
    """The grant of a lease. The kernel attaches to the agent with the ticket."""

    request: RequestId
    lease: LeaseId
    session: SessionId
    agent: AgentAddress
    ticket: str
    node: str
    slots: tuple[str, ...]
    walltime_ms: int
    #: As in LeaseCost, which follows when it changes.
    in_quota: bool | None = None
    price_percent: int | None = None
    #: The memory of one of its slots, and the sizes that slots of the pool have; 0 and none on CPU slots.
    memory_bytes: int = 0
    sizes: tuple[int, ...] = ()


class LeaseCost(Message, frozen=True, kw_only=True, tag="lease-cost"):
    """What a lease counts for from now on, where that is not what its kernel was told last."""

    lease: LeaseId
    #: Whether the guarantee of its project covers it; None where the pool guarantees nothing to anybody.
    in_quota: bool | None
    #: What its GPUs count for in budgets and past use; None where they count for what they are.
    price_percent: int | None = None


class NodeMoved(Message, frozen=True, kw_only=True, tag="node-moved"):
    """Where the agent of a lease is reached, in case that has changed: it is to be shown the ticket there."""

    lease: LeaseId
    agent: AgentAddress


class Revoked(Message, frozen=True, kw_only=True, tag="revoked"):
    """The lease is over, and not because the kernel gave it back."""

    lease: LeaseId
    code: LeaseEnd
    sentence: str


class Look(Message, frozen=True, tag="look"):
    """Ask what is going on in the pool; for people and pages. Answered with a Picture."""


class SlotPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One slot as a person sees it."""

    node: str
    slot: SlotId
    name: str
    #: A drained slot is free, and of a node that is given nothing more. One is kept by a notebook between two cells.
    state: Literal["free", "granted", "busy", "kept", "hot", "leaving", "drained"]
    user: UserName | None = None
    memory_bytes: int = 0
    #: When its node is to be drained; None where that is not planned.
    drains_in_ms: int | None = None
    #: Why it is drained, or is to be, as an admin has said.
    why_drained: str = ""
    #: Who has brought its node, which is for them alone; empty: it is the pool's.
    owner: UserName = UserName("")


class WaitingPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One waiting request as a person sees it."""

    position: int
    user: UserName
    qos: str
    gpus: int
    #: Empty for those who may not see whose it is.
    reason: str
    waited_ms: int
    #: From now on at most, and usually; None where nobody can say.
    wait_ms: int | None = None
    usual_ms: int | None = None
    #: It waits for a node that its user has brought, and for nothing of the pool.
    is_for_own: bool = False


class CellPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One finished cell of the ledger as a person sees it."""

    cell: CellId
    user: UserName
    project: ProjectId
    qos: str
    node: str
    outcome: CellOutcome
    ended_at_ms: int
    ran_ms: int
    #: GPUs held, times how long: nothing on CPU slots.
    gpu_ms: int
    peak_memory_bytes: int | None = None
    mean_utilization: float | None = None
    #: What the pool's slots are called (`Picture.slot_word`), held, times how long.
    slot_ms: int = 0


class ProjectPicture(msgspec.Struct, frozen=True, kw_only=True):
    """How a project stands, in thousandths of a GPU."""

    project: ProjectId
    used_milli: int
    guaranteed_milli: int
    limit_milli: int | None = None
    #: So much more would be covered by its guarantee, or by that of one that it is in.
    covered_milli: int = 0
    #: Its class hours in words, those that are on or the next ones; empty without any.
    class_hours: str = ""


class AbsentNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node that was there, or is registered, and is not there now."""

    node: str
    #: For how long; None where it has not been there since the broker was started.
    absent_ms: int | None = None
    #: Why it is not let in, where the broker knows.
    problem: str = ""


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
    #: The Unix users that cells of several people run as; none where each person's run as their own.
    shared_accounts: tuple[str, ...] = ()
    #: What would keep cells of several people apart and is not there, and on which nodes.
    missing_protections: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    #: Nodes that should be there and are not.
    absent_nodes: tuple[AbsentNode, ...] = ()
    #: For admins: by how much the clock of a node is ahead of the broker's, below 0 behind, where they differ.
    clocks_ahead_ms: dict[str, int] = msgspec.field(default_factory=dict)
    #: What an admin tells everybody, with who that is.
    announcement: str = ""
    #: For admins: that the ledger cannot be used, and what to do; empty where it can.
    ledger_problem: str = ""


class Find(Message, frozen=True, tag="find"):
    """Ask for the cells of this user that nodes have. Answered with Found."""


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
    """Let this kernel have a cell whose own is gone. Answered with Granted or Refusal."""

    request: Annotated[RequestId, msgspec.Meta(max_length=TEXT_LIMIT)]
    cell: Annotated[CellId, msgspec.Meta(max_length=TEXT_LIMIT)]
    agent: Annotated[AgentId, msgspec.Meta(max_length=TEXT_LIMIT)]


FromKernel = Hello | Submit | Withdraw | Look | Find | Join | Ping | AllowanceQuestion
ToKernel = (
    Welcome
    | Refusal
    | Queued
    | Granted
    | LeaseCost
    | NodeMoved
    | Revoked
    | Picture
    | Found
    | AllowanceReport
    | Pong
    | Unknown
    | Malformed
)
