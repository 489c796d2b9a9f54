"""What a session can learn (events), and what it has its shell do (actions)."""

import mmap
from typing import Literal

import msgspec

from bulletin.ids import AgentId, CellId, LeaseId, RequestId
from bulletin.wire.frames import Blob
from bulletin.wire.messages import (
    AgentAddress,
    AgentToKernel,
    Find,
    FromFolder,
    FromKernel,
    KernelToAgent,
    Look,
    ToKernel,
    Versions,
)
from bulletin.wire.messages.allowance_requests import AllowanceQuestion
from bulletin_magic.connection.deliveries import Delivery, OutputMessage
from bulletin_magic.connection.resource_spec import ResourceSpec

# --- events: what the user does -------------------------------------------------------------------------------------


class CellSubmitted(msgspec.Struct, frozen=True, kw_only=True):
    """The user ran a cell; its state is captured. One cell at a time.

    `parts` are of use to the executor of `lease_id` only; without one, to any.
    """

    cell: CellId
    request: RequestId
    source: str
    number: int
    parts: tuple[Blob, ...]
    lease_id: LeaseId | None = None
    #: If `lease_id` is gone, LeaseChanged says so before another place is asked for.
    is_told_of_loss: bool = False
    resources: ResourceSpec = ResourceSpec()
    message: str = ""  #: the id of the front end's message that asked for it
    #: For how long it may stand in the queue before it runs; None is for ever.
    max_wait_ms: int | None = None
    is_call: bool = False  #: the source is ours, not the user's: it is in no history
    is_whole: bool = False  #: all of the user's cell, with no `%%gpu` line above it
    outlives_kernel: bool = True
    #: How long the stop button waits before it interrupts: what ends the kernel presses it, too, just before.
    stop_after_ms: int = 0
    #: The node that has the cell already: it is joined, not sent.
    joins: AgentId | None = None
    #: The notebook's working folder, which is to follow the cell where its node does not share it.
    folder: str | None = None
    #: What is said of the notebook's environment: to an executor that was told nothing, and of libraries that are new.
    versions: Versions | None = None
    libraries: dict[str, str] = {}
    absent: tuple[str, ...] = ()


class PoolStatusAsked(msgspec.Struct, frozen=True):
    """The user wants to know what goes on in the pool. Answered by PoolStatus."""

    question: Look = Look()


class CellListAsked(msgspec.Struct, frozen=True):
    """The user wants to know which cells the nodes have. Answered by CellList."""

    question: Find = Find()


class AllowancesAsked(msgspec.Struct, frozen=True):
    """The user asks for more than the rules give, or what became of that. Answered by AllowancesTold."""

    question: AllowanceQuestion
    awaited: str = ""  #: the request whose decision the user waits for: it is read in the answer


class ReleaseAsked(msgspec.Struct, frozen=True, kw_only=True):
    """The user gives the session back, or the kernel ends. Answered by LeaseReleased."""

    #: A cell that runs goes on, for another kernel.
    keeps_cell: bool = False


class StopPressed(msgspec.Struct, frozen=True):
    """The user pressed stop."""


class QuestionAnswered(msgspec.Struct, frozen=True):
    """The user answered the cell's question."""

    text: str


# --- events: what the pool says, and time ---------------------------------------------------------------------------


class BrokerSaid(msgspec.Struct, frozen=True):
    """A message of the broker has come."""

    message: ToKernel


class AgentConnected(msgspec.Struct, frozen=True):
    """There is a socket to the agent, and where it is on this host, the two rings: to the executor, and from it."""

    ring_out: mmap.mmap | None = None
    ring_in: mmap.mmap | None = None


class AgentSaid(msgspec.Struct, frozen=True):
    """A message of the agent has come, with its blobs."""

    message: AgentToKernel
    blobs: tuple[Blob, ...] = ()


class MessageGarbled(msgspec.Struct, frozen=True):
    """The other side said something that is not of this protocol."""

    sender: Literal["broker", "agent"]
    problem: str


class Tick(msgspec.Struct, frozen=True):
    """Nothing happened, but a deadline may have passed."""


SessionEvent = (
    CellSubmitted
    | PoolStatusAsked
    | CellListAsked
    | AllowancesAsked
    | ReleaseAsked
    | StopPressed
    | QuestionAnswered
    | BrokerSaid
    | AgentConnected
    | AgentSaid
    | MessageGarbled
    | Tick
)


# --- actions --------------------------------------------------------------------------------------------------------


class SendToBroker(msgspec.Struct, frozen=True):
    """Send a message to the broker."""

    message: FromKernel


class ConnectAgent(msgspec.Struct, frozen=True):
    """Make a socket to an agent (instead of an older one) and take its rings; then report AgentConnected.

    Where the session `goes_on`, it is the same agent at another address: all but the socket stays, and nothing is
    reported.
    """

    agent: AgentAddress
    ticket: str
    goes_on: bool = False


class SendToAgent(msgspec.Struct, frozen=True):
    """Send a message to the agent."""

    message: KernelToAgent
    blobs: tuple[Blob, ...] = ()


class AnswerFolder(msgspec.Struct, frozen=True):
    """Do what the session's node asks of the notebook's working folder, and send it the answer."""

    message: FromFolder
    blobs: tuple[Blob, ...] = ()


class ServeFolder(msgspec.Struct, frozen=True):
    """Serve a folder to the session, whose cell may have run in it for another notebook."""

    folder: str


class DropAgent(msgspec.Struct, frozen=True):
    """Close the socket to the agent once it has sent what it has."""


class ShowLateOutput(msgspec.Struct, frozen=True):
    """Show a Jupyter message of a cell that has ended below that cell, whatever else goes on."""

    cell: CellId
    output: OutputMessage


class Deliver(msgspec.Struct, frozen=True):
    """Tell the main thread. A conversation ends with the kinds that `deliveries` lists last."""

    delivery: Delivery


SessionAction = (
    SendToBroker | ConnectAgent | SendToAgent | AnswerFolder | ServeFolder | DropAgent | ShowLateOutput | Deliver
)
