"""What a session can learn (events), what it asks for (actions), and what it tells the main thread (deliveries)."""

import mmap
from typing import Literal

import msgspec

from bulletin.errors import BulletinError
from bulletin.ids import AgentId, CellId, EnvironmentId, LeaseId, ProjectId, RequestId
from bulletin.wire.frames import Blob
from bulletin.wire.messages import (
    AgentAddress,
    AgentToKernel,
    Ended,
    Found,
    FromKernel,
    KernelToAgent,
    Picture,
    ToKernel,
)


class Fact(msgspec.Struct, frozen=True):
    """Something that happened, shall happen, or is told."""


class Wish(Fact, frozen=True, kw_only=True):
    """What a cell asks of the pool."""

    gpus: int = 1
    qos: str = "interactive"
    walltime_ms: int | None = None
    project: ProjectId | None = None
    environment: EnvironmentId | None = None
    label: str = ""
    gpu_type: str = ""
    gpu_memory_bytes: int = 0
    cpus: int = 0
    memory_bytes: int = 0

    def is_like(self, other: "Wish") -> bool:
        """Whether a lease for one fits the other: they differ at most in how the cell is called."""
        return msgspec.structs.replace(self, label="") == msgspec.structs.replace(other, label="")


class Where(Fact, frozen=True, kw_only=True):
    """The lease that a notebook holds."""

    lease: LeaseId
    node: str
    slots: tuple[str, ...]
    slot_word: str
    #: Whether it was within its project's guarantee when it was granted; None where the pool guarantees nothing.
    is_in_quota: bool | None = None
    memory_bytes: int = 0  #: of one of its slots; 0 is not known
    sizes: tuple[int, ...] = ()  #: the memory that slots of the pool have, each size once


# --- events ---------------------------------------------------------------------------------------------------------


class CellAsked(Fact, frozen=True, kw_only=True):
    """The user ran a cell; its state is captured. One cell at a time.

    `parts` are of use to the executor of `lease` only; without one, to any.
    """

    cell: CellId
    request: RequestId
    source: str
    number: int
    parts: tuple[Blob, ...]
    lease: LeaseId | None = None
    wish: Wish = Wish()
    message: str = ""  #: the front end's, that asked for it
    #: For how long it may stand in the queue before it runs; None is for ever.
    max_wait_ms: int | None = None
    is_call: bool = False  #: the source is ours, not the user's: it is in no history
    is_whole: bool = False  #: all of the user's cell, with no `%%gpu` line above it
    outlives_kernel: bool = True
    #: How long the stop button waits before it interrupts: what ends the kernel presses it, too, just before.
    stop_after_ms: int = 0
    #: The node that has the cell already: it is joined, not sent.
    joins: AgentId | None = None


class PictureAsked(Fact, frozen=True):
    """The user wants to know what goes on in the pool."""


class CellsAsked(Fact, frozen=True):
    """The user wants to know which cells the nodes have."""


class LeaveAsked(Fact, frozen=True, kw_only=True):
    """The user gives the session back, or the kernel ends."""

    #: A cell that runs goes on, for another kernel.
    keeps_cell: bool = False


class StopPressed(Fact, frozen=True):
    """The user pressed stop."""


class Answered(Fact, frozen=True):
    """The user answered the cell's question."""

    text: str


class BrokerSaid(Fact, frozen=True):
    """A message of the broker."""

    message: ToKernel


class AgentConnected(Fact, frozen=True):
    """There is a socket to the agent, and where it is on this host, the two rings: to the executor, and from it."""

    ring_out: mmap.mmap | None = None
    ring_in: mmap.mmap | None = None


class AgentSaid(Fact, frozen=True):
    """A message of the agent, with its blobs."""

    message: AgentToKernel
    blobs: tuple[Blob, ...] = ()


class Garbled(Fact, frozen=True):
    """The other side said something that is not of this protocol."""

    who: Literal["broker", "agent"]
    problem: str


class Tick(Fact, frozen=True):
    """Nothing happened, but a deadline may have passed."""


Event = (
    CellAsked
    | PictureAsked
    | CellsAsked
    | LeaveAsked
    | StopPressed
    | Answered
    | BrokerSaid
    | AgentConnected
    | AgentSaid
    | Garbled
    | Tick
)


# --- deliveries -----------------------------------------------------------------------------------------------------


class Waiting(Fact, frozen=True, kw_only=True):
    """Where the cell stands in the queue."""

    position: int
    reason: str
    wait_ms: int | None
    in_quota: bool
    gpus: int
    slot_word: str


class Began(Fact, frozen=True):
    """The wait is over: the cell has been sent."""

    where: Where


class Printed(Fact, frozen=True):
    """A Jupyter message of the cell; its content is JSON. One of a comm has buffers."""

    type: str
    content: bytes
    buffers: tuple[bytes, ...] = ()


class Question(Fact, frozen=True):
    """The cell waits for the user to type. Tell Answered, or StopPressed."""

    prompt: str
    password: bool


class Note(Fact, frozen=True):
    """A sentence about what happens around the cell."""

    text: str


class Finished(Fact, frozen=True, kw_only=True):
    """The cell ran to its end, its error, or its interrupt. `parts` are the state that it changed, if any."""

    ended: Ended
    parts: tuple[Blob, ...]
    where: Where
    waited_ms: int
    sent_bytes: int
    returned_bytes: int


class Moved(Fact, frozen=True):
    """Another lease is held than the one that the captured state is for: ask again with all of the state."""

    waited_ms: int


class Failed(Fact, frozen=True):
    """Nothing of the cell comes back; the notebook is as before it."""

    error: BulletinError


class Pictured(Fact, frozen=True, kw_only=True):
    """The pool at this moment, and the lease that this notebook holds."""

    picture: Picture
    where: Where | None


class CellsFound(Fact, frozen=True):
    """The cells of this user."""

    found: Found


class Left(Fact, frozen=True):
    """The session was given back, if there was one."""

    where: Where | None


Delivery = Waiting | Began | Printed | Question | Note | Finished | Moved | Failed | Pictured | CellsFound | Left


# --- actions --------------------------------------------------------------------------------------------------------


class ToBroker(Fact, frozen=True):
    """Send a message to the broker."""

    message: FromKernel


class ConnectAgent(Fact, frozen=True):
    """Make a socket to an agent (instead of an older one) and take its rings; then report AgentConnected."""

    agent: AgentAddress
    ticket: str


class ToAgent(Fact, frozen=True):
    """Send a message to the agent."""

    message: KernelToAgent
    blobs: tuple[Blob, ...] = ()


class DropAgent(Fact, frozen=True):
    """Close the socket to the agent once it has sent what it has."""


class Overhear(Fact, frozen=True):
    """A Jupyter message of a cell that has ended: show it there, whatever else goes on."""

    cell: CellId
    printed: Printed


class Deliver(Fact, frozen=True):
    """Tell the main thread. Finished, Failed, Pictured and Left end the conversation."""

    delivery: Delivery


Action = ToBroker | ConnectAgent | ToAgent | DropAgent | Overhear | Deliver
