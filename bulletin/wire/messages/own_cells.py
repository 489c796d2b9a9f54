"""What a person's own notebook server asks for the page that the person looks at: my cells, and what is free.

It comes to the kernels' door, and comes again and again: it is cheap to answer, and names nobody else. All of the
person's notebooks are in it. Times are durations up to the answer.
"""

from typing import Annotated, Literal

import msgspec

from bulletin.ids import CellId, KernelId, LeaseId, ProjectId, SlotId
from bulletin.wire.messages.every_link import Message
from bulletin.wire.messages.kernel_broker import CellPicture

#: So many cells that have ended are told at most.
MOST_ENDED = 20


class AskOwn(Message, frozen=True, kw_only=True, tag="ask-own"):
    """Ask what is mine: cells that wait and run, and so many of those that ended last; 0 leaves the ledger alone."""

    ended: Annotated[int, msgspec.Meta(ge=0, le=MOST_ENDED)] = 0


class OwnWaiting(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the asker in line."""

    lease: LeaseId
    #: As its notebook's kernel calls itself; several cells of a notebook have names that begin alike.
    kernel: KernelId
    position: int
    gpus: int
    qos: str
    project: ProjectId
    label: str
    reason: str
    waited_ms: int
    #: An upper bound where one is known.
    wait_ms: int | None = None
    #: What half of those who waited like this did not exceed, from here on; None where few did.
    usual_ms: int | None = None


class OwnRunning(msgspec.Struct, frozen=True, kw_only=True):
    """A lease of the asker. `for_ms` is since it was granted, its cell began or it became hot, whichever came last."""

    lease: LeaseId
    #: None where no cell runs that the broker has heard of.
    cell: CellId | None
    #: Empty where a broker that was started again has not heard it.
    kernel: KernelId
    label: str
    node: str
    slots: tuple[SlotId, ...]
    state: Literal["granted", "busy", "reclaiming", "hot", "leaving"]
    qos: str
    project: ProjectId
    for_ms: int
    walltime_ms: int
    #: None where no cell runs, and where the pool guarantees nothing to anybody.
    in_quota: bool | None


class OwnProject(msgspec.Struct, frozen=True, kw_only=True):
    """The project that pays for the asker's cells when nobody says, in thousandths of a GPU."""

    project: ProjectId
    used_milli: int
    guaranteed_milli: int
    limit_milli: int | None = None
    #: In GPU-milliseconds, of the period that runs; without a budget, None.
    budget_ms: int | None = None
    budget_left_ms: int | None = None
    period: Literal["day", "week", "month"] | None = None
    #: Its class hours in words, those that are on or the next ones; empty without any.
    class_hours: str = ""


class OwnEnded(CellPicture, frozen=True, kw_only=True):
    """A cell of the asker that has ended."""

    lease: LeaseId
    label: str = ""


class OwnDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided of something that the asker wanted beyond the rules, in words."""

    #: Of the decision: what was granted and is ended is decided twice.
    id: str
    title: str
    sentence: str
    is_granted: bool


class OwnReport(Message, frozen=True, kw_only=True, tag="own-report"):
    """The answer to AskOwn: how many slots the pool has, and what of it is the asker's, the oldest first."""

    slot_word: str
    total: int
    free: int
    #: Kept ready for the next cell of somebody, and given to another who needs one.
    ready: int
    #: How many wait in all, whoever they are.
    waiting_count: int
    waiting: tuple[OwnWaiting, ...] = ()
    #: How many of the asker's wait; more than are told.
    own_waiting_count: int = 0
    running: tuple[OwnRunning, ...] = ()
    project: OwnProject | None = None
    #: The last one first.
    ended: tuple[OwnEnded, ...] = ()
    #: What an admin tells everybody, with who that is.
    announcement: str = ""
    #: What others decided of late of the asker's requests, the latest first.
    decided: tuple[OwnDecision, ...] = ()
    #: Whether one waits for a decision.
    awaits_decision: bool = False
