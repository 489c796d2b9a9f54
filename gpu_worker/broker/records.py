"""What the ledger is told: facts that are over, each with a name. Said twice or out of order, they say the same.

All times are milliseconds since 1970, UTC; all durations whole milliseconds. *Slot time* is slots held times how long,
a MIG slice as its part of a GPU, and GPU time where the slots are GPUs.
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.ids import CellId, LeaseId, ProjectId, SessionId, SlotId, UserName
from gpu_worker.scheduler.policy.projects import GPU_MILLI


class LeaseHolder(msgspec.Struct, frozen=True, kw_only=True):
    """Who held what."""

    lease: LeaseId
    session: SessionId
    user: UserName
    project: ProjectId
    qos: str
    node: str
    slots: tuple[SlotId, ...]  #: those it held
    kind: Literal["gpu", "cpu"]  #: what they are; a MIG slice is a GPU
    milli: int | None = None  #: thousandths of one that they are together. None: as many whole ones, or nobody knew
    is_exclusive: bool = False  #: nobody else was on the node: they are all that it has

    @property
    def slots_milli(self) -> int:
        """What it held, in thousandths of a slot: less than a thousand for a MIG slice."""
        return len(self.slots) * GPU_MILLI if self.milli is None else self.milli


def holder_fields(holder: LeaseHolder) -> dict[str, Any]:
    """Take from a record who held what, for another one."""
    return {name: getattr(holder, name) for name in LeaseHolder.__struct_fields__}


class Span(msgspec.Struct, frozen=True, order=True):
    """A stretch of time, all of it in quota or all of it borrowed."""

    started_at_ms: int
    ended_at_ms: int
    is_in_quota: bool = True

    @property
    def length_ms(self) -> int:
        """How long it was."""
        return self.ended_at_ms - self.started_at_ms


class CellRecord(LeaseHolder, frozen=True, kw_only=True):
    """One run of a cell that has ended, as it is accounted. What was requeued has a row for each attempt."""

    cell: CellId
    attempt: int = 1  #: counts the runs of one cell; 0: the ledger counts, one run in each lease
    gpus: int  #: how many it asked for
    started_at_ms: int
    ended_at_ms: int
    held_ms: int  #: from the cell's arrival to the last byte of its results, by the agent's steady clock: what counts
    ran_ms: int  #: of that, the time in which the user's code ran
    #: When it held its slots, in quota or borrowed: together `held_ms`. None: up to its end at a stretch, in quota.
    spans: tuple[Span, ...] | None = None
    refunded_ms: int = 0  #: of `held_ms`, what a reclaim made worthless: charged to nobody
    outcome: CellOutcome
    peak_memory_bytes: int | None = None
    mean_utilization: float | None = None  #: 0 to 1
    bytes_sent: int = 0
    bytes_returned: int = 0
    label: str = ""
    charged_milli: int | None = None  #: thousandths of a slot that it was charged, at its price. None: as it held
    runs: int = 1  #: how many short cells it is, one after the other (`short_cells`); `cell` names the first
    marks: str | None = None  #: what is remembered of the others
    #: In line, before its slots were granted; 0 where its session had them already. None is not known.
    waited_ms: int | None = None

    @property
    def charged(self) -> int:
        """What was charged for each moment of it, in thousandths of a slot."""
        return self.slots_milli if self.charged_milli is None else self.charged_milli

    @property
    def held(self) -> tuple[Span, ...]:
        """When it held its slots, without empty spans."""
        spans = (Span(self.ended_at_ms - self.held_ms, self.ended_at_ms),) if self.spans is None else self.spans
        return tuple(span for span in spans if span.length_ms)

    @property
    def in_quota_ms(self) -> int:
        """Of `held_ms`, what its project's guarantee covered."""
        return self.held_ms - self.borrowed_ms

    @property
    def borrowed_ms(self) -> int:
        """Of `held_ms`, what was borrowed."""
        return sum(span.length_ms for span in self.held if not span.is_in_quota)

    @property
    def slot_ms(self) -> int:
        """Slots held, times how long, a slice as its part; rounded down."""
        return self.slots_milli * self.held_ms // GPU_MILLI

    @property
    def gpu_ms(self) -> int:
        """GPU time used: nothing on CPU slots."""
        return self.slot_ms if self.kind == "gpu" else 0


class HotRecord(LeaseHolder, frozen=True, kw_only=True):
    """A stretch of a lease in which no cell ran. It is charged to nobody."""

    started_at_ms: int
    ended_at_ms: int


class LeaseRecord(LeaseHolder, frozen=True, kw_only=True):
    """A lease: said when it is granted, and again when it has ended."""

    granted_at_ms: int
    ended_at_ms: int | None = None  #: None while it holds
    why: LeaseEnd | None = None  #: why it ended; None while it holds


class OpenLease(msgspec.Struct, frozen=True):
    """A lease whose end the ledger has not heard of, and until when it knows what the lease did."""

    lease: LeaseRecord
    accounted_until_ms: int
    cells: tuple[CellId, ...] = ()  #: those that ended in it
    marks: frozenset[str] = frozenset()  #: and of those that are in another's row
    #: The cell of it that has not ended, as far as the ledger knows: when it began, until when at least it ran, and
    #: what was agreed that it is charged, in thousandths of a slot; None is what it held.
    running: tuple[CellId, int, int, int | None] | None = None


#: Why a balance changed. What is earned above the most that counts is forgotten, and what is spent as far below none is
#: forgiven.
Cause = Literal["lent", "borrowed", "forgotten", "forgiven"]


class CreditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a project earned, or spent, in a while that ended; each balance is the sum of its entries."""

    credit: str  #: names this entry
    project: ProjectId
    own_users: bool = False  #: not the project among its siblings, but its own users among the projects inside it
    gpu_ms: int  #: GPU-milliseconds: earned above 0, spent below
    at_ms: int
    cause: Cause
    counterpart: ProjectId | None = None  #: to whom it lent, of whom it borrowed, where that was one alone
    lease: LeaseId | None = None  #: whose time it was, where it was one alone


class ConfigChange(msgspec.Struct, frozen=True, kw_only=True):
    """One field of the configuration that somebody changed."""

    change: str  #: names this change
    at_ms: int
    who: UserName
    what: str  #: whose field it is: "project ml"
    field: str
    before: str | int | float | bool | list[Any] | dict[str, Any] | None  #: as in JSON; None where there was nothing
    after: str | int | float | bool | list[Any] | dict[str, Any] | None


class LedgerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something else that the events keep."""

    id: str  #: names it
    kind: str
    payload: dict[str, Any]
    at_ms: int


#: The kind of the events that tell who had a node for themselves.
EXCLUSIVE = "exclusive-node"

Record = CellRecord | HotRecord | LeaseRecord | CreditRecord | ConfigChange | LedgerEvent


def begun(lease: LeaseRecord, charged_milli: int) -> Iterator[Record]:
    """Tell that a lease begins; where nobody else is on its node, in an event of its own, which stays.

    `charged_milli` is what its first cell is charged, at the price of its GPUs.
    """
    yield lease
    if lease.is_exclusive:
        names = ("lease", "user", "project", "qos", "node", "milli")
        payload = {"gpus": len(lease.slots), "charged_milli": charged_milli} | {
            name: getattr(lease, name) for name in names
        }
        name = f"{EXCLUSIVE} {lease.lease}"[:256]
        yield LedgerEvent(id=name, kind=EXCLUSIVE, payload=payload, at_ms=lease.granted_at_ms)


#: Why leases ended of whose end nobody has heard: the agent may still be there, and say more.
UNSURE = frozenset({LeaseEnd.NODE_LOST, LeaseEnd.NOT_HELD})
#: Between the name of a lease and what tells it from the same one earlier.
_AGAIN = "~"


def name_again(lease: LeaseId, what: str) -> LeaseId:
    """Make another name for a lease that has ended in the ledger, or may have, and that still goes on.

    `what` tells it from the lease's earlier names.
    """
    return LeaseId(f"{first_name(lease)}{_AGAIN}{what}"[:256])


def first_name(lease: LeaseId) -> LeaseId:
    """Return the name under which broker and agent know a lease, whichever name it has in the ledger."""
    return LeaseId(lease.partition(_AGAIN)[0])


def check(record: Record) -> None:
    """Hold a record to what its fields promise.

    Raises
    ------
    ValueError
        With what does not add up. The ledger takes nothing of it.
    """
    match record:
        case CellRecord():
            _check_cell(record)
        case HotRecord():
            if record.ended_at_ms <= record.started_at_ms:
                raise ValueError(f"hot time of the lease {record.lease!r} has no length")
        case LeaseRecord():
            if record.ended_at_ms is not None and record.ended_at_ms < record.granted_at_ms:
                raise ValueError(f"the lease {record.lease!r} ends before it is granted")


def _check_cell(record: CellRecord) -> None:
    name = f"cell {record.cell!r}, attempt {record.attempt}"
    if record.attempt < 0:
        raise ValueError(f"{name}: attempts count from 1")
    if record.held_ms < 0:
        raise ValueError(f"{name} was held for {record.held_ms} ms")
    if not 0 <= record.refunded_ms <= record.held_ms:
        raise ValueError(f"{name}: {record.refunded_ms} ms of the {record.held_ms} ms it was held are refunded")
    until_ms = None
    for span in record.spans or ():
        if span.length_ms < 0 or (until_ms is not None and span.started_at_ms < until_ms):
            raise ValueError(f"{name}: its spans run backwards or overlap")
        until_ms = span.ended_at_ms
    total_ms = sum(span.length_ms for span in record.held)
    if total_ms != record.held_ms:
        raise ValueError(f"{name}: its spans are {total_ms} ms, and it was held for {record.held_ms} ms")
