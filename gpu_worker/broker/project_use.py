"""What a project, with all that is in it, used over time: by stretches, by its users, by labels; and who lent most.

Of a cell, the ledger has what it held when it has ended: what runs now is added to it (`use_under_way`).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, select

from bulletin.ids import CellId, ProjectId, UserName
from bulletin.units import HOUR_MS
from bulletin.wire.page_requests import Lender, Stretch, UseOf, UsePart
from gpu_worker.broker.tables import cells, credit_entries, lease_spans
from gpu_worker.broker.usage import is_of_cell, length_in, milli_of_span
from gpu_worker.scheduler.policy.periods import period_at
from gpu_worker.scheduler.policy.projects import GPU_MILLI

#: So many users, labels and lenders are told, those with most.
_MOST_ROWS = 100
#: A pool of many projects is asked for so many of them at once: databases limit what one question may name.
MOST_PROJECTS = 500


def stretches(stretch: Stretch, count: int, now_ms: int) -> list[tuple[int, int]]:
    """List the last stretches of time, the oldest first; the last one ends now. In UTC."""
    found: list[tuple[int, int]] = []
    until_ms = now_ms
    while len(found) < count:
        if stretch == "hour":
            from_ms = (until_ms - 1) // HOUR_MS * HOUR_MS
        else:
            from_ms, _ = period_at(stretch, until_ms - 1)
        found.append((from_ms, until_ms))
        until_ms = from_ms
    return found[::-1]


def read_use(
    connection: Connection,
    project: ProjectId,
    inside: Sequence[ProjectId],
    parts: Sequence[tuple[int, int]],
    *,
    kind: str,
    guaranteed_milli: int,
) -> tuple[tuple[UsePart, ...], tuple[UseOf, ...], tuple[UseOf, ...]]:
    """Sum what the projects `inside` used in each of the stretches, and in all of them by users and by labels."""
    shown = [_part(connection, project, inside, *part, kind=kind, guaranteed_milli=guaranteed_milli) for part in parts]
    since_ms, until_ms = parts[0][0], parts[-1][1]
    users = _by(connection, inside, since_ms, until_ms, kind, [lease_spans.c.user])
    labels = _by(connection, inside, since_ms, until_ms, kind, [cells.c.label, lease_spans.c.user])
    return tuple(shown), tuple(users), tuple(one for one in labels if one.name)


def read_ends(connection: Connection, names: Sequence[CellId]) -> dict[CellId, int]:
    """Find until when the ledger knows of cells, of those that it knows."""
    spans, found = lease_spans.c, dict[CellId, int]()
    for at in range(0, len(names), MOST_PROJECTS):
        query = select(spans.cell, func.max(spans.ended_at_ms)).where(spans.cell.in_(names[at : at + MOST_PROJECTS]))
        found |= {CellId(row[0]): int(row[1]) for row in connection.execute(query.group_by(spans.cell))}
    return found


def read_lenders(connection: Connection, since_ms: int) -> tuple[Lender, ...]:
    """List which projects lent most of their guarantees to others since then, those with most first."""
    entry = credit_entries.c
    lent = func.sum(entry.gpu_ms)
    query = select(entry.project, lent).where(entry.cause == "lent", entry.own_users.is_(False))
    query = query.where(entry.at_ms >= since_ms).group_by(entry.project).order_by(lent.desc(), entry.project)
    rows = connection.execute(query.limit(_MOST_ROWS))
    return tuple(Lender(project=ProjectId(row[0]), lent_ms=int(row[1])) for row in rows if row[1] > 0)


def _part(
    connection: Connection,
    project: ProjectId,
    inside: Sequence[ProjectId],
    from_ms: int,
    until_ms: int,
    *,
    kind: str,
    guaranteed_milli: int,
) -> UsePart:
    spans = lease_spans.c
    slot_ms = length_in(from_ms, until_ms) * milli_of_span()
    is_cell = spans.cell != ""
    sums = (
        _sum_if(is_cell & spans.in_quota.is_(True), slot_ms),
        _sum_if(is_cell & spans.in_quota.is_(False), slot_ms),
        _sum_if(spans.cell == "", slot_ms),
    )
    found = connection.execute(select(*sums).where(*_within(inside, from_ms, until_ms, kind))).one()
    entry = credit_entries.c
    lent = select(func.sum(entry.gpu_ms)).where(entry.project == project, entry.cause == "lent")
    lent = lent.where(entry.own_users.is_(False), entry.at_ms > from_ms, entry.at_ms <= until_ms)
    in_quota, borrowed, hot = (int(value or 0) // GPU_MILLI for value in found)
    return UsePart(
        from_ms=from_ms,
        until_ms=until_ms,
        in_quota_ms=in_quota,
        borrowed_ms=borrowed,
        hot_ms=hot,
        lent_ms=int(connection.scalar(lent) or 0),
        guaranteed_ms=guaranteed_milli * (until_ms - from_ms) // GPU_MILLI,
    )


def _by(
    connection: Connection,
    inside: Sequence[ProjectId],
    since_ms: int,
    until_ms: int,
    kind: str,
    names: list[Any],
) -> Iterable[UseOf]:
    spans = lease_spans.c
    slot_ms = length_in(since_ms, until_ms) * milli_of_span()
    total = func.sum(slot_ms)
    query = select(
        *names, total, _sum_if(spans.in_quota.is_(False), slot_ms), func.count(func.distinct(spans.cell))
    ).select_from(lease_spans.outerjoin(cells, is_of_cell()))
    query = query.where(spans.cell != "", *_within(inside, since_ms, until_ms, kind))
    for row in connection.execute(query.group_by(*names).order_by(total.desc(), *names).limit(_MOST_ROWS)):
        yield UseOf(
            name=row[0] or "",
            user=UserName(row[len(names) - 1]),
            slot_ms=int(row[-3]) // GPU_MILLI,
            borrowed_ms=int(row[-2] or 0) // GPU_MILLI,
            cells=int(row[-1]),
        )


def _within(inside: Sequence[ProjectId], from_ms: int, until_ms: int, kind: str) -> tuple[ColumnElement[bool], ...]:
    spans = lease_spans.c
    return (
        spans.project.in_(inside[:MOST_PROJECTS]),
        spans.kind == kind,
        spans.ended_at_ms > from_ms,
        spans.started_at_ms < until_ms,
    )


def _sum_if(is_part: ColumnElement[bool], value: ColumnElement[int]) -> ColumnElement[int]:
    return func.sum(case((is_part, value), else_=0))
