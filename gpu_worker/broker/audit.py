"""Whether the ledger adds up, to the millisecond: cells are their spans, leases are cells and hot time."""

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import RowMapping, Select, func, select

from gpu_worker.broker.tables import cells, lease_spans, leases

#: Runs a query, row by row.
Each = Callable[[Select[Any]], Iterator[RowMapping]]


def cells_are_their_spans(each: Each) -> Iterator[str]:
    """Find cells whose time, in quota or borrowed, is not that of their spans."""
    length = lease_spans.c.ended_at_ms - lease_spans.c.started_at_ms
    sums = select(
        lease_spans.c.cell, lease_spans.c.attempt, lease_spans.c.in_quota, func.sum(length).label("sum_ms")
    ).where(lease_spans.c.cell != "")
    sums = sums.group_by(lease_spans.c.cell, lease_spans.c.attempt, lease_spans.c.in_quota)
    for flag, column in ((True, cells.c.in_quota_ms), (False, cells.c.borrowed_ms)):
        parts = sums.where(lease_spans.c.in_quota.is_(flag)).subquery()
        found = func.coalesce(parts.c.sum_ms, 0)
        joined = cells.outerjoin(parts, (cells.c.cell == parts.c.cell) & (cells.c.attempt == parts.c.attempt))
        query = select(cells.c.cell, cells.c.attempt, column.label("ms"), found.label("sum_ms")).select_from(joined)
        for row in each(query.where(column != found)):
            yield (
                f"The cell {row['cell']}, attempt {row['attempt']}, has {column.name} {row['ms']}, "
                f"and its spans {row['sum_ms']}."
            )


def leases_are_cells_and_hot_time(each: Each) -> Iterator[str]:
    """Find leases that have ended, and what they did has a gap, an overlap, or another end."""
    spans = select(leases.c.lease, leases.c.granted_at_ms, leases.c.ended_at_ms.label("over_ms"))
    spans = spans.add_columns(lease_spans.c.started_at_ms, lease_spans.c.ended_at_ms)
    spans = spans.select_from(leases.outerjoin(lease_spans, leases.c.lease == lease_spans.c.lease))
    spans = spans.where(leases.c.ended_at_ms.is_not(None)).order_by(leases.c.lease, lease_spans.c.started_at_ms)
    lease, until_ms, over_ms = None, 0, 0
    for row in each(spans):
        if row["lease"] != lease:
            if lease is not None and until_ms != over_ms:
                yield f"The lease {lease} ended at {over_ms}, and what it did at {until_ms}."
            lease, until_ms, over_ms = row["lease"], row["granted_at_ms"], row["over_ms"]
        if row["started_at_ms"] is None:
            continue
        if row["started_at_ms"] != until_ms:
            yield f"The lease {lease} did nothing known, or two things, from {until_ms} to {row['started_at_ms']}."
        until_ms = max(until_ms, row["ended_at_ms"])
    if lease is not None and until_ms != over_ms:
        yield f"The lease {lease} ended at {over_ms}, and what it did at {until_ms}."


QUESTIONS = (cells_are_their_spans, leases_are_cells_and_hot_time)
