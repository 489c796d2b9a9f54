"""What a session tells the main thread about its cell, or in answer to a question."""

import msgspec

from bulletin.errors import BulletinError
from bulletin.wire.frames import Blob
from bulletin.wire.messages import Ended, EnvironmentFound, Found, Picture
from bulletin.wire.messages.allowance_requests import AllowanceReport
from bulletin_magic.connection.resource_spec import LeaseInfo

# --- while a cell is under way


class QueuePosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where the cell stands in the queue."""

    position: int  #: 1 is the next; 0 is out of the queue, while its slot is made ready
    reason: str
    wait_ms: int | None  #: at most so long, as far as the pool can say
    in_quota: bool
    gpus: int
    slot_word: str
    usual_ms: int | None = None  #: half of those who waited like this waited no longer


class CellSent(msgspec.Struct, frozen=True):
    """The wait is over: the cell is on its way to the node of this lease, for the first time or again."""

    lease: LeaseInfo


class OutputMessage(msgspec.Struct, frozen=True):
    """A Jupyter message that the cell published: its type, its content as JSON, and a comm's buffers."""

    type: str
    content: bytes
    buffers: tuple[bytes, ...] = ()


class QuestionAsked(msgspec.Struct, frozen=True):
    """The cell waits for the user to type. Tell the session QuestionAnswered, or StopPressed."""

    prompt: str
    password: bool


class UserNote(msgspec.Struct, frozen=True):
    """A sentence for the user about what happens around the cell."""

    text: str


# --- what a conversation ends with


class CellFinished(msgspec.Struct, frozen=True, kw_only=True):
    """The cell ran to its end, its error, or its interrupt. `parts` are the state that it changed, if any."""

    ended: Ended
    parts: tuple[Blob, ...]
    lease: LeaseInfo
    waited_ms: int
    sent_bytes: int
    returned_bytes: int
    #: How the environment differs in which it ran.
    environment: EnvironmentFound = EnvironmentFound()


class LeaseChanged(msgspec.Struct, frozen=True):
    """Another lease is held than the one that the captured state is for: submit the cell again with all its state."""

    waited_ms: int
    #: Else none is held yet, and the cell's own submission said to tell that.
    has_place: bool = True


class RequestFailed(msgspec.Struct, frozen=True):
    """What was asked for comes to nothing; of a cell, the notebook is as before it."""

    error: BulletinError


class PoolStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The pool at this moment, and the lease that this notebook holds."""

    picture: Picture
    lease: LeaseInfo | None


class CellList(msgspec.Struct, frozen=True):
    """The cells of this user that nodes have."""

    found: Found


class AllowancesTold(msgspec.Struct, frozen=True):
    """What was asked for beyond the rules, and what became of it."""

    report: AllowanceReport


class LeaseReleased(msgspec.Struct, frozen=True):
    """The session was given back; `lease` is what it held."""

    lease: LeaseInfo | None


Delivery = (
    QueuePosition
    | CellSent
    | OutputMessage
    | QuestionAsked
    | UserNote
    | CellFinished
    | LeaseChanged
    | RequestFailed
    | PoolStatus
    | CellList
    | AllowancesTold
    | LeaseReleased
)
