"""Asking for more than the rules give: what people ask, who decides it, and what became of it.

Each question has one answer, AllowanceReport, or Refusal. A notebook asks on its own link, as a command line does.
"""

from typing import Annotated, Literal

import msgspec

from bulletin.ids import ProjectId, UserName
from bulletin.units import HOUR_MS
from bulletin.wire.messages.every_link import TEXT_LIMIT, Duration, Message, Name

#: So long is a reason, and what is said of a decision.
WHY_LIMIT = 500
Words = Annotated[str, msgspec.Meta(max_length=WHY_LIMIT)]
#: So many GPUs are asked for at most, and so much of a budget: GPUs times milliseconds.
MOST_GPUS = 1024
MOST_BUDGET_MS = 10**6 * HOUR_MS


class RequestAllowance(Message, frozen=True, kw_only=True, tag="request-allowance"):
    """Ask for longer cells, more GPUs in a cell and at once, or more budget, for so long; who decides reads `why`."""

    #: None is the one that pays when nobody says.
    project: Annotated[ProjectId, msgspec.Meta(max_length=TEXT_LIMIT)] | None = None
    walltime_ms: Duration | None = None
    gpus: Annotated[int, msgspec.Meta(ge=1, le=MOST_GPUS)] | None = None
    #: As a node that nobody else is on, which has as many.
    is_exclusive: bool = False
    #: Beyond the project's budget, GPUs times milliseconds, in the period that runs. It is asked for alone.
    budget_ms: Annotated[int, msgspec.Meta(ge=1, le=MOST_BUDGET_MS)] | None = None
    #: Whose budget, of those that cells of the project use up; empty is the one that leaves least.
    budget_of: Name = ""
    #: None is as long as is usual there.
    for_ms: Duration | None = None
    why: Words = ""


class DecideAllowance(Message, frozen=True, kw_only=True, tag="decide-allowance"):
    """Grant what somebody asks for, or decline it: what was granted ends then. Who asked takes it back so."""

    id: Name
    is_granted: bool
    #: From now on; None is as was asked.
    for_ms: Duration | None = None
    sentence: Words = ""


class AskAllowances(Message, frozen=True, kw_only=True, tag="ask-allowances"):
    """Ask what was asked for: one's own, and what one may decide. `is_all` has those that are long over, too.

    Of all, so many are told at once, the latest first; those that come behind one are asked for by its id.
    """

    is_all: bool = False
    behind: Name = ""


AllowanceState = Literal["open", "granted", "declined", "withdrawn", "over"]


class AllowanceRow(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asked for, and what became of it. Times of day are in milliseconds since 1970, UTC."""

    id: str
    user: UserName
    project: ProjectId
    walltime_ms: int | None
    gpus: int | None
    is_exclusive: bool = False
    budget_ms: int | None = None
    budget_of: str = ""  #: whose budget that is: the payer's, or that of a project which it is in
    for_ms: int
    why: str
    state: AllowanceState
    asked_at_ms: int
    #: Who decided; empty where nobody has, or where the project's rules granted it at once.
    by: str = ""
    sentence: str = ""
    #: Of one that is granted, until when, and how long that is yet.
    until_at_ms: int | None = None
    left_ms: int | None = None
    #: Whether who asks for this report asked for it, may decide it, and may grant it, too.
    is_own: bool = False
    may_decide: bool = False
    may_grant: bool = False
    #: Whom the quota file names as leads there: they decide, as admins do.
    leads: tuple[UserName, ...] = ()
    #: It is more than they may grant: an admin alone does.
    needs_admin: bool = False
    #: What the user has in use in the project now, in thousandths of a GPU, and used of late, in GPU-milliseconds.
    used_milli: int = 0
    recent_ms: int = 0


class AllowanceReport(Message, frozen=True, kw_only=True, tag="allowance-report"):
    """What was asked for: those that are open first, then the latest first. Of what changed one, that one."""

    rows: tuple[AllowanceRow, ...]
    slot_word: str
    #: Whether there are more, which can be asked for.
    has_more: bool = False


AllowanceQuestion = RequestAllowance | DecideAllowance | AskAllowances
