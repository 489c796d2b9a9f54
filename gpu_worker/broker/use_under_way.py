"""What cells that run have used until now, added to what the ledger has of those that have ended. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import structs

from bulletin.ids import CellId, UserName
from bulletin.wire.page_requests import UseOf, UsePart, UseReport
from gpu_worker.broker.meter import CellUnderWay
from gpu_worker.scheduler.policy.projects import GPU_MILLI

#: So many users and labels are told, those with most.
_MOST_ROWS = 100


class LabelledCell(NamedTuple):
    """A cell that runs, and its label."""

    held: CellUnderWay
    label: str


def drop_ended(cells: Iterable[LabelledCell], ended_ms: Mapping[CellId, int]) -> list[LabelledCell]:
    """Leave out those that have ended since they were listed: the ledger has them, until `ended_ms`.

    One that runs again has ended before, under the same name.
    """
    return [one for one in cells if ended_ms.get(one.held.cell, 0) <= one.held.spans[0].started_at_ms]


def add_under_way(report: UseReport, cells: Iterable[LabelledCell]) -> UseReport:
    """Add what these cells used in the report's time to its stretches, users and labels."""
    since_ms, until_ms = report.parts[0].from_ms, report.parts[-1].until_ms
    parts, users, labels = list(report.parts), _Rows(report.users), _Rows(report.labels)
    for cell, label in cells:
        parts = [_add(part, cell) for part in parts]
        in_quota, borrowed = _sums(cell, since_ms, until_ms)
        users.add(cell.holder.user, cell.holder.user, in_quota, borrowed)
        if label:
            labels.add(label, cell.holder.user, in_quota, borrowed)
    return structs.replace(report, parts=tuple(parts), users=users.listed(), labels=labels.listed())


class _Rows:
    """Rows of a report that grow."""

    def __init__(self, rows: Iterable[UseOf]) -> None:
        self._rows = {(row.name, row.user): row for row in rows}
        self._most = max(len(self._rows), _MOST_ROWS)

    def add(self, name: str, user: UserName, in_quota_ms: int, borrowed_ms: int) -> None:
        """Add a cell to the row of this name and user."""
        row = self._rows.get((name, user)) or UseOf(name=name, user=user, slot_ms=0, borrowed_ms=0, cells=0)
        self._rows[name, user] = structs.replace(
            row,
            slot_ms=row.slot_ms + in_quota_ms + borrowed_ms,
            borrowed_ms=row.borrowed_ms + borrowed_ms,
            cells=row.cells + 1,
        )

    def listed(self) -> tuple[UseOf, ...]:
        """List them, those with most first."""
        return tuple(sorted(self._rows.values(), key=lambda one: (-one.slot_ms, one.name, one.user))[: self._most])


def _add(part: UsePart, cell: CellUnderWay) -> UsePart:
    in_quota, borrowed = _sums(cell, part.from_ms, part.until_ms)
    return structs.replace(part, in_quota_ms=part.in_quota_ms + in_quota, borrowed_ms=part.borrowed_ms + borrowed)


def _sums(cell: CellUnderWay, from_ms: int, until_ms: int) -> tuple[int, int]:
    """Sum what a cell held between two times, in quota and borrowed, in slot-milliseconds."""
    sums = {True: 0, False: 0}
    for span in cell.spans:
        length_ms = min(span.ended_at_ms, until_ms) - max(span.started_at_ms, from_ms)
        sums[span.is_in_quota] += max(0, length_ms) * cell.holder.slots_milli
    return sums[True] // GPU_MILLI, sums[False] // GPU_MILLI
