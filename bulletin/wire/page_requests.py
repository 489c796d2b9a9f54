"""What the hub's pages ask a broker, and what it answers. They come to the kernels' door, with the pool's own token.

    page ── FromPage / ToPage ── broker        the whole pool at once; what people on the page may do, in their name

The service asks once for all who look, and leaves out itself what its reader may not see. What somebody on a page wants
done is asked in their name, as the hub has told it to the service: the broker decides whether they may.
Times are durations up to the answer.
"""

from typing import Annotated, Literal

import msgspec

from bulletin.ids import LeaseId, ProjectId, SlotId, UserName
from bulletin.wire import console
from bulletin.wire.messages import TEXT_LIMIT, AbsentNode, Message, Name
from bulletin.wire.messages.allowance_requests import AllowanceQuestion
from bulletin.wire.messages.announcements import Announcement, AnnouncementQuestion
from bulletin.wire.messages.quota_edits import QuotaQuestion

_Group = Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)]


# --- the pool: AskPool, PoolReport


class AskPool(Message, frozen=True, tag="ask-pool"):
    """Ask for all that goes on in the pool, with everybody's names."""


class PoolSlot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A slot of a node, and the lease that has it."""

    node: str
    slot: SlotId
    name: str
    memory_bytes: int = 0
    #: What it is, in thousandths of a GPU.
    milli: int = 1000
    lease: LeaseId | None = None
    is_drained: bool = False
    #: When its node is to be drained; None where that is not planned.
    drains_in_ms: int | None = None
    #: Why, of either, as an admin has said.
    why_drained: str = ""
    #: Who has brought its node, which is for them alone; empty: it is the pool's.
    owner: UserName = UserName("")
    #: How busy it was of late, and what of its memory processes use; None where its node does not measure that.
    busy_percent: int | None = None
    used_bytes: int | None = None
    #: For how long it has done nothing though a cell runs there; 0 where it does something.
    idle_ms: int = 0


class PoolLease(console.RunningRow, frozen=True, kw_only=True):
    """A lease, with the label of the request that it was granted for."""

    label: str = ""


class PoolReport(Message, frozen=True, kw_only=True, tag="pool-report"):
    """The pool at one moment. Of a long line the first part is told; `waiting_count` is how many wait in all."""

    slots: tuple[PoolSlot, ...]
    leases: tuple[PoolLease, ...]
    waiting: tuple[console.WaitingRow, ...]
    waiting_count: int
    #: What only a node that its user has brought can serve: it is not in the pool's line.
    waiting_for_own: tuple[console.WaitingRow, ...] = ()
    projects: tuple[console.ProjectRow, ...]
    boosts: tuple[console.BoostRow, ...] = ()
    slot_word: str = "GPU"
    uptime_ms: int = 0
    shared_accounts: tuple[str, ...] = ()
    missing_protections: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    absent_nodes: tuple[AbsentNode, ...] = ()
    announcement: Announcement | None = None


# --- in somebody's name: OnBehalf, answered as the question is


class PageReader(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who looks at a page, as the hub has told it to the page."""

    user: console.User
    groups: Annotated[tuple[_Group, ...], msgspec.Meta(max_length=1000)] = ()
    #: The projects that they lead, with all that is in them.
    leads: Annotated[tuple[_Group, ...], msgspec.Meta(max_length=1000)] = ()
    is_admin: bool = False
    #: And those that name them as lead in the quota file.
    may_be_named_lead: bool = False


class OnBehalf(Message, frozen=True, kw_only=True, tag="on-behalf"):
    """Ask or change something in the name of who looks at a page, with their rights and no others."""

    reader: PageReader
    question: (
        console.AskAbout
        | console.Cancel
        | console.Drain
        | console.Hold
        | console.Release
        | console.PutFirst
        | console.Requeue
        | console.Extend
        | console.Boost
        | console.AskBoosts
        | QuotaQuestion
        | AllowanceQuestion
        | AnnouncementQuestion
    )


# --- what is over: AskPast, PastCells; AskUse, UseReport


class AskPast(Message, frozen=True, kw_only=True, tag="ask-past"):
    """Ask for the cells of one user that ended last."""

    user: console.User
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class PastCells(Message, frozen=True, kw_only=True, tag="past-cells"):
    """The cells of a user, the last one first."""

    cells: tuple[console.EndedRow, ...]
    slot_word: str
    #: What half of the cells of the last seven days did not exceed in line; None where that is not known.
    week_wait_ms: int | None = None


Stretch = Literal["hour", "day", "week"]


class AskUse(Message, frozen=True, kw_only=True, tag="ask-use"):
    """Ask what a project, with all that is in it, used in the last stretches of time."""

    project: console.Project
    stretch: Stretch = "day"
    count: Annotated[int, msgspec.Meta(ge=1, le=100)] = 14


class UsePart(msgspec.Struct, frozen=True, kw_only=True):
    """Slot time of one stretch, which begins at this time of day, in milliseconds since 1970, UTC."""

    from_ms: int
    until_ms: int
    in_quota_ms: int = 0
    borrowed_ms: int = 0
    #: Held without a cell, which nobody pays.
    hot_ms: int = 0
    #: Of what it is guaranteed, what others used meanwhile.
    lent_ms: int = 0
    #: What it is guaranteed now, for as long as this stretch is.
    guaranteed_ms: int = 0


class UseOf(msgspec.Struct, frozen=True, kw_only=True):
    """What one user, or the cells of one label, used in all of the time."""

    name: str
    user: UserName
    slot_ms: int
    borrowed_ms: int
    cells: int


class Lender(msgspec.Struct, frozen=True, kw_only=True):
    """What a project lent to others in all of the time."""

    project: ProjectId
    lent_ms: int


class UseReport(Message, frozen=True, kw_only=True, tag="use-report"):
    """The answer to AskUse: stretches, the oldest first; users and labels, those with most first."""

    project: ProjectId
    stretch: Stretch
    parts: tuple[UsePart, ...]
    users: tuple[UseOf, ...]
    labels: tuple[UseOf, ...]
    lenders: tuple[Lender, ...]
    slot_word: str


class AskUsage(Message, frozen=True, kw_only=True, tag="ask-usage"):
    """Ask who used how much between two times, in milliseconds since 1970, UTC: what `bulletin usage --csv` writes.

    For admins: it names everybody.
    """

    by: Literal["user", "project", "qos", "label"] = "user"
    period: Literal["day", "week", "month"] | None = None
    since_ms: Annotated[int, msgspec.Meta(ge=0)]
    until_ms: Annotated[int, msgspec.Meta(ge=0)]


class UsageTable(Message, frozen=True, kw_only=True, tag="usage-table"):
    """The answer to AskUsage: comma-separated values, as much of them as can be told at once."""

    csv: str
    has_more: bool = False


# --- cells that nodes still have: FindFor, answered with Found


class FindFor(Message, frozen=True, kw_only=True, tag="find-for"):
    """Ask for the cells of one user that nodes have, as `Find` does for the user who asks."""

    user: console.User
    #: So that an answer that comes late is not taken for another's.
    query: Name = ""


FromPage = AskPool | OnBehalf | AskPast | AskUse | AskUsage | FindFor
PageReport = PoolReport | PastCells | UseReport | UsageTable
ToPage = PageReport
