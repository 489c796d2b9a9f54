"""What one person has in the pool: cells that run, wait and have ended, with advice; their projects. Pure."""

from collections.abc import Iterator, Sequence

import msgspec

from bulletin.codes import CellOutcome
from bulletin.ids import CellId, LeaseId, ProjectId
from bulletin.kept_time import is_kept
from bulletin.pool_words import describe_outcome
from bulletin.units import show_size
from bulletin.wire.console import EndedRow, ProjectRow
from bulletin.wire.page_requests import PastCells, PoolLease, PoolReport, PoolSlot
from bulletin_spawner.service.now_view import IDLE_MS, ShownRequest, show_request
from bulletin_spawner.service.viewer import Role, Sight

#: A shorter cell says little about the next.
_TELLING_MS = 10_000
#: A GPU that is busy for less of the time does not pay.
_IDLE = 0.05
#: A slice must have a quarter more memory than the cell used: libraries keep some of their own.
_ROOM = 1.25


class ProjectStanding(msgspec.Struct, frozen=True, kw_only=True):
    """How a project stands, in thousandths of a slot, and what is left of its budget and credits."""

    project: ProjectId
    used_milli: int
    held_milli: int
    guaranteed_milli: int
    promised_milli: int | None = None  #: what it is guaranteed by the settings, where the pool can keep less of it
    limit_milli: int | None = None
    waiting: int = 0
    budget_ms: int | None = None
    budget_left_ms: int | None = None
    period: str | None = None
    period_ends_in_ms: int | None = None
    borrows_in_ms: int = 0
    credits_ms: int = 0
    class_hours: str = ""
    rule: str = ""  #: by which rule it is a project; empty where the quota file names it, and where no rule is for it
    is_led: bool = False


class MyCell(msgspec.Struct, frozen=True, kw_only=True):
    """A lease of the viewer's: a cell that runs, or a session that is kept ready."""

    lease: LeaseId
    cell: CellId | None
    label: str
    project: ProjectId
    qos: str
    node: str
    slots: tuple[str, ...]
    state: str  #: the lease's, or "kept": no cell runs, and the place is kept between two (`--keep`)
    for_ms: int
    walltime_ms: int
    is_in_quota: bool | None
    busy_percent: int | None = None
    used_bytes: int | None = None
    memory_bytes: int = 0
    idle_ms: int = 0


class CellReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell cost that has ended. `runs` short cells, one after the other, are one."""

    cell: CellId
    label: str
    project: ProjectId
    qos: str
    node: str
    outcome: CellOutcome
    ended: str
    ended_at_ms: int
    ran_ms: int
    held_ms: int
    in_quota_ms: int
    borrowed_ms: int
    refunded_ms: int
    slots: int
    bytes_sent: int
    bytes_returned: int
    peak_memory_bytes: int | None = None
    mean_utilization: float | None = None
    charged_ms: int | None = None
    runs: int = 1
    waited_ms: int | None = None  #: in line; None is not known
    is_exclusive: bool = False  #: nobody else was on the node: it is charged as all its slots
    advice: str = ""


class UsedBudgets(msgspec.Struct, frozen=True, kw_only=True):
    """Whose budgets cells of a project use up: its own, and those of the projects that it is in."""

    project: ProjectId
    budgets: tuple[ProjectId, ...]


class MeView(msgspec.Struct, frozen=True, kw_only=True):
    """What *Me* shows."""

    user: str
    role: Role
    slot_word: str
    running: tuple[MyCell, ...]
    waiting: tuple[ShownRequest, ...]
    projects: tuple[ProjectStanding, ...]
    #: Those that may pay for cells of the viewer's; the first one does when nobody says.
    own_projects: tuple[ProjectId, ...] = ()
    #: Of each of these that uses up some.
    used_budgets: tuple[UsedBudgets, ...] = ()


class ReceiptsView(msgspec.Struct, frozen=True, kw_only=True):
    """The viewer's last cells, the last one first."""

    slot_word: str
    receipts: tuple[CellReceipt, ...]
    #: What half of the viewer's cells of the last seven days did not exceed in line; None where that is not known.
    week_wait_ms: int | None = None


def view_me(report: PoolReport, sight: Sight) -> MeView:
    """Make of the pool's report what is the viewer's own."""
    mine = sight.viewer.user
    own = set(sight.projects) if not sight.viewer.is_admin else set(sight.viewer.own_projects)
    return MeView(
        user=mine,
        role=sight.viewer.role,
        slot_word=report.slot_word,
        running=tuple(_my_cell(lease, report) for lease in report.leases if mine and lease.user == mine),
        waiting=tuple(_my_requests(report, sight)) if mine else (),
        projects=tuple(standing(row, sight) for row in report.projects if row.project in own),
        own_projects=sight.viewer.own_projects if mine else (),
        used_budgets=tuple(_used_budgets(report, sight.viewer.own_projects)) if mine else (),
    )


def _my_requests(report: PoolReport, sight: Sight) -> Iterator[ShownRequest]:
    for rows, is_for_own in ((report.waiting, False), (report.waiting_for_own, True)):
        yield from (show_request(row, sight, is_for_own=is_for_own) for row in rows if row.user == sight.viewer.user)


def _used_budgets(report: PoolReport, own: Sequence[ProjectId]) -> Iterator[UsedBudgets]:
    rows = {row.project: row for row in report.projects}
    for project in own:
        found, at = [], rows.get(project)
        while at is not None:
            if at.budget_ms is not None:
                found.append(at.project)
            at = rows.get(at.parent) if at.parent is not None else None
        if found:
            yield UsedBudgets(project=project, budgets=tuple(found))


def standing(row: ProjectRow, sight: Sight) -> ProjectStanding:
    """Show how a project stands."""
    return ProjectStanding(
        project=row.project,
        used_milli=row.used_milli,
        held_milli=row.held_milli,
        guaranteed_milli=row.guaranteed_milli,
        promised_milli=row.promised_milli,
        limit_milli=row.limit_milli,
        waiting=row.waiting,
        budget_ms=row.budget_ms,
        budget_left_ms=row.budget_left_ms,
        period=row.period,
        period_ends_in_ms=row.period_ends_ms,
        borrows_in_ms=row.borrows_in_ms,
        credits_ms=row.credits_ms,
        class_hours=row.class_hours,
        rule=row.rule,
        is_led=not sight.viewer.is_admin and sight.leads(row.project),  # an admin decides everywhere, and leads nothing
    )


def view_receipts(past: PastCells, sizes: Sequence[int]) -> ReceiptsView:
    """Make receipts of the cells that ended last; `sizes` is the memory that slots of the pool have."""
    return ReceiptsView(
        slot_word=past.slot_word,
        receipts=tuple(_receipt(row, past.slot_word, sizes) for row in past.cells),
        week_wait_ms=past.week_wait_ms,
    )


def slot_sizes(report: PoolReport) -> tuple[int, ...]:
    """List the memory sizes that slots of the pool have, the smallest first."""
    return tuple(sorted({slot.memory_bytes for slot in report.slots} - {0}))


def _my_cell(lease: PoolLease, report: PoolReport) -> MyCell:
    slots = [slot for slot in report.slots if slot.lease == lease.lease]
    measured = [slot for slot in slots if slot.busy_percent is not None]
    return MyCell(
        lease=lease.lease,
        cell=lease.cell,
        label=lease.label,
        project=lease.project,
        qos=lease.qos,
        node=lease.node,
        slots=tuple(slot.name for slot in slots),
        state="kept" if lease.state == "busy" and is_kept(lease.cell) else lease.state,
        for_ms=lease.for_ms,
        walltime_ms=lease.walltime_ms,
        is_in_quota=lease.in_quota,
        busy_percent=sum(slot.busy_percent or 0 for slot in measured) // len(measured) if measured else None,
        used_bytes=sum(slot.used_bytes or 0 for slot in measured) if measured else None,
        memory_bytes=sum(slot.memory_bytes for slot in slots),
        idle_ms=_idle_ms(lease, measured),
    )


def _idle_ms(lease: PoolLease, measured: Sequence[PoolSlot]) -> int:
    """Compute for how long none of a lease's slots has done anything; 0 where that is not long, or not measured."""
    idle_ms = min((min(slot.idle_ms, lease.for_ms) for slot in measured), default=0)
    return idle_ms if idle_ms >= IDLE_MS else 0


def _receipt(row: EndedRow, slot_word: str, sizes: Sequence[int]) -> CellReceipt:
    return CellReceipt(
        cell=row.cell,
        label=row.label,
        project=row.project,
        qos=row.qos,
        node=row.node,
        outcome=row.outcome,
        ended=describe_outcome(row.outcome),
        ended_at_ms=row.ended_at_ms,
        ran_ms=row.ran_ms,
        held_ms=row.held_ms,
        in_quota_ms=row.in_quota_ms,
        borrowed_ms=row.borrowed_ms,
        refunded_ms=row.refunded_ms,
        slots=len(row.slots),
        bytes_sent=row.bytes_sent,
        bytes_returned=row.bytes_returned,
        peak_memory_bytes=row.peak_memory_bytes,
        mean_utilization=row.mean_utilization,
        charged_ms=row.charged_ms,
        runs=row.runs,
        waited_ms=row.waited_ms,
        is_exclusive=row.is_exclusive,
        advice=next(_advise(row, slot_word, sizes), ""),
    )


def _advise(row: EndedRow, slot_word: str, sizes: Sequence[int]) -> Iterator[str]:
    """Yield what would serve the person better next time, as the receipt below a cell says it."""
    if row.ran_ms < _TELLING_MS * row.runs or row.outcome is not CellOutcome.RETURNED:
        return
    busy, peak = row.mean_utilization, row.peak_memory_bytes
    if busy is not None and busy < _IDLE:
        yield (
            f"The {slot_word} was idle {1 - busy:.0%} of the time: the cell would run as well without one, and not "
            "wait."
        )
    elif peak is not None and len(row.slots) == 1 and sizes:
        fitting = [size for size in sizes if _ROOM * peak <= size]
        if fitting and fitting[0] < sizes[-1]:
            yield (
                f"The cell used {show_size(peak)}: a {slot_word} or slice of {show_size(fitting[0])} would do, and may "
                "be free sooner."
            )
