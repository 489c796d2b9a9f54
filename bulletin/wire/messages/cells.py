"""Kernel and agent, and the same over a pipe between agent and executor: cells, state, output.

What a cell says and carries is opaque to the agent, as it is to the broker.
"""

from typing import Annotated, Literal

import msgspec

from bulletin.codes import CellOutcome, RefusalCode
from bulletin.ids import CellId, LeaseId
from bulletin.wire.messages.agent_broker import CellUsage
from bulletin.wire.messages.every_link import (
    TEXT_LIMIT,
    Malformed,
    Message,
    Name,
    Number,
    Ping,
    Pong,
    Secret,
    Size,
    Unknown,
)
from bulletin.wire.messages.folder import FolderProbe, FolderReply, FromFolder
from bulletin.wire.messages.kernel_broker import Refusal
from bulletin.wire.messages.notebook_versions import Libraries, Versions

#: How a cell is called, by its kernel and, where user code forges its executor's words, by anybody.
CellName = Annotated[CellId, msgspec.Meta(max_length=TEXT_LIMIT)]


class Attach(Message, frozen=True, kw_only=True, tag="attach"):
    """Show the ticket of a lease: from now on this connection is its session."""

    protocol: int
    lease: Annotated[LeaseId, msgspec.Meta(max_length=TEXT_LIMIT)]
    ticket: Secret
    #: After a lost connection: the last output of this cell that arrived. The agent sends what came after.
    cell: CellName | None = None
    seen: Number = 0
    #: The kernel has the rings of the session: results that come again may come through them.
    has_rings: bool = False
    #: The cell is another kernel's: what it hands back must be complete.
    is_joining: bool = False


class Attached(Message, frozen=True, kw_only=True, tag="attached"):
    """The answer to Attach: the session is open. `cell` is the one that runs, if one does."""

    lease: LeaseId
    cell: CellName | None = None
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

    cell: CellName
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
    #: What its user calls it; None: as the lease is called, in whose request an earlier version says it.
    label: Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)] | None = None
    #: The notebook's working folder, where this session has not found yet whether its node shares it.
    folder: FolderProbe | None = None
    #: For the first cell that an executor gets of a notebook.
    versions: Versions | None = None
    #: Libraries that the cell imports, or whose values it reads, as the notebook has them, if nothing was said of them.
    libraries: Libraries = msgspec.field(default_factory=dict)
    #: Modules that the cell may import and the notebook itself cannot.
    absent: Annotated[tuple[Name, ...], msgspec.Meta(max_length=1000)] = ()


class Chunk(Message, frozen=True, kw_only=True, tag="chunk"):
    """The next `size` bytes of a cell's parcel: as blobs, or (on one host) in place `at` of the ring."""

    cell: CellName
    size: Size
    at: Size | None = None
    #: Of results: which sending of them it belongs to, as their Ended says.
    round: Number = 0


class Took(Message, frozen=True, kw_only=True, tag="took"):
    """One chunk has been taken in: another may be sent."""

    cell: CellName
    #: That of the chunk.
    round: Number = 0


class Output(Message, frozen=True, kw_only=True, tag="output"):
    """A Jupyter message of the cell: its type here, its content as JSON in the first blob."""

    cell: CellName
    type: Name
    #: Given by the agent, from 1 up in each cell.
    seq: Number = 0
    #: Of a cell that has ended: a thread or a task that it started goes on. Numbered from 1 up in each session.
    late: bool = False
    #: Of printed text: the executor's number of the last of it, by which its agent knows what else there is.
    text: Number = 0


class Asked(Message, frozen=True, kw_only=True, tag="asked"):
    """The cell called input() or getpass()."""

    cell: CellName
    prompt: str
    password: bool = False
    #: Given by the agent, from 1 up in each cell: one that is asked again has the number that it had.
    number: Number = 0


class Answer(Message, frozen=True, kw_only=True, tag="answer"):
    """The answer to Asked: what the user typed."""

    cell: CellName
    text: str


class Stop(Message, frozen=True, kw_only=True, tag="stop"):
    """Stop the cell, as the stop button does: by an interrupt each time; a hard one ends the executor."""

    cell: CellName
    hard: bool = False


class Seen(Message, frozen=True, kw_only=True, tag="seen"):
    """Outputs up to this one have arrived. `is_done`: so have the results, and nobody needs the cell any more."""

    cell: CellName
    seq: Number
    #: Those of cells that have ended, of whichever.
    late: bool = False
    is_done: bool = False


class Return(Message, frozen=True, kw_only=True, tag="return"):
    """Send the results of the cell that ended last, from their start: an Ended with this round, then its chunks."""

    cell: CellName
    round: Number
    has_rings: bool = False
    #: For another notebook than the one that sent the cell: complete, and of no use to the first.
    is_whole: bool = False


class Leave(Message, frozen=True, kw_only=True, tag="leave"):
    """The kernel is done with the session."""

    #: The kernel ends, and the cell that runs goes on for another one.
    keeps_cell: bool = False


class Noticed(Message, frozen=True, kw_only=True, tag="noticed"):
    """The interrupt reached Python code in the cell."""

    cell: CellName


class Ready(Message, frozen=True, kw_only=True, tag="ready"):
    """The executor is up."""

    #: As it sees itself: in a pid namespace of its own that is another number than the agent's.
    pid: int


class ErrorText(msgspec.Struct, frozen=True, kw_only=True):
    """An exception as text, in case the exception itself cannot travel."""

    name: str
    value: str
    traceback: tuple[str, ...]


class Ended(Message, frozen=True, kw_only=True, tag="ended"):
    """The cell is over; what it changed is in the parcel. `usage` is added by the agent."""

    cell: CellName
    outcome: Literal["returned", "raised", "interrupted"]
    parcel: Parcel
    ran_ms: int
    error: ErrorText | None = None
    usage: CellUsage | None = None
    #: Results that were interrupted by a lost connection are sent again from their start: in another round.
    round: Number = 0


class Lost(Message, frozen=True, kw_only=True, tag="lost"):
    """The executor is gone. If it ran a cell, that cell changed nothing in the notebook."""

    cell: CellName | None
    code: CellOutcome
    sentence: str


class Notice(Message, frozen=True, kw_only=True, tag="notice"):
    """Something that the user should know about the cell that runs."""

    cell: CellName
    sentence: str


class Gone(Message, frozen=True, kw_only=True, tag="gone"):
    """The lease is not here (any more). A cell that was just sent has not run."""

    code: RefusalCode
    sentence: str


KernelToAgent = Attach | Run | Chunk | Took | Answer | Stop | Seen | Leave | Ping | FolderReply
AgentToKernel = (
    Attached
    | Chunk
    | Took
    | Output
    | Asked
    | Notice
    | Ended
    | Lost
    | Gone
    | Refusal
    | Pong
    | Unknown
    | Malformed
    | FromFolder
)
ToExecutor = Run | Chunk | Took | Answer | Return | Seen
FromExecutor = Ready | Chunk | Took | Output | Asked | Noticed | Ended
