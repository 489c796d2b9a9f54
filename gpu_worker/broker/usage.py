"""Who used how much, of which kind, and when: the questions that people ask of the ledger."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from sqlalchemy import BigInteger, Column, ColumnElement, Connection, Select, case, func, literal_column, select

from bulletin.ids import ProjectId, UserName
from bulletin.kept_time import PREFIX
from bulletin.units import HOUR_MS
from gpu_worker.broker.tables import cells, lease_spans
from gpu_worker.scheduler.policy.periods import Period, period_at
from gpu_worker.scheduler.policy.projects import GPU_MILLI

By = Literal["user", "project", "qos", "label"]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What one user, project, QoS or label used of one kind of slots in one stretch of time.

    Slot time is in slots times milliseconds, a MIG slice as its part of a GPU, and each sum is rounded down: of the
    kind "gpu" it is GPU-milliseconds.
    """

    of: str
    kind: Literal["gpu", "cpu"]
    from_ms: int = 0  #: of the stretch, milliseconds since 1970, UTC
    until_ms: int = 0
    cells: int = 0  #: runs that ended in it, each attempt counted
    ran_ms: int = 0  #: how long their code ran, whenever that was
    in_quota_ms: int = 0  #: slot time of cells in it, whenever they ended
    borrowed_ms: int = 0
    refunded_ms: int = 0  #: slot time given back to cells that ended in it; contained in the two above
    hot_ms: int = 0  #: slot time held without a cell, which nobody pays
    charged_ms: int = 0  #: slot time of cells in it at the price of their GPUs, without what was refunded of it

    @property
    def slot_ms(self) -> int:
        """Slot time of cells: in quota and borrowed."""
        return self.in_quota_ms + self.borrowed_ms

    @property
    def gpu_ms(self) -> int:
        """Slot time of cells, where the slots are GPUs."""
        return self.slot_ms if self.kind == "gpu" else 0


#: What adds up: numbers, and slot time, which is summed in thousandths.
_NUMBERS = ("cells", "ran_ms")
_TIMES = ("in_quota_ms", "borrowed_ms", "refunded_ms", "hot_ms", "charged_ms")


def ask(
    connection: Connection,
    by: By,
    period: Period | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
    parents: Mapping[ProjectId, ProjectId | None] | None = None,
) -> Iterator[Usage]:
    """Sum usage by user, project, QoS or label; period by period, and those with the most GPU time first.

    Time that slots were held counts when it passed: a cell that runs over midnight is in both days, with what it held
    in each. What a cell has only once (that it ended, how long its code ran, what was refunded) counts where it ended.

    Parameters
    ----------
    connection
        A moment of the ledger's database.
    by
        Whose sums.
    period
        Days, weeks from Monday or months, all from 0:00 UTC; those in which something was held or ended. None is all
        of the time as one.
    since_ms, until_ms
        From the one until before the other, in milliseconds since 1970, UTC. None is from the first and to the last.
        A period that they cut counts with what is inside.
    parents
        For projects: of each project the one that it is in. What is used in a project then counts for all that it is
        in, too, so that the rows of a period together are more than the whole.
    """
    for from_ms, before_ms in _stretches(connection, period, since_ms, until_ms):
        found: dict[tuple[str, Literal["gpu", "cpu"]], dict[str, int]] = {}
        for query in (_spans(by, from_ms, before_ms), _cells(by, from_ms, before_ms)):
            for row in connection.execute(query).mappings():
                for of in paths(row["of"], parents if by == "project" else None):
                    sums = found.setdefault((of, row["kind"]), dict.fromkeys(_NUMBERS + _TIMES, 0))
                    for name in sums:
                        sums[name] += int(row.get(name) or 0)
        rows = []
        for (of, kind), sums in found.items():
            times = {name: sums[name] // GPU_MILLI if name in _TIMES else sums[name] for name in sums}
            rows.append(Usage(of=of, kind=kind, from_ms=from_ms, until_ms=before_ms, **times))
        yield from sorted(rows, key=lambda row: (-row.gpu_ms, -row.slot_ms, row.of, row.kind))


class HourUse(msgspec.Struct, frozen=True):
    """What a user's cells were charged that ended in one hour, in one project and QoS."""

    until_ms: int  #: when the hour ends
    project: ProjectId
    user: UserName
    qos: str
    kind: Literal["gpu", "cpu"]
    amount: int  #: thousandths of a slot, at its price, times milliseconds


def by_hour(connection: Connection, since_ms: int) -> Iterator[HourUse]:
    """Sum what cells that ended from `since_ms` on were charged, less refunds, by the hour of their end, in its order.

    In thousandths of a slot, at its price, times milliseconds, stamped with the end of the hour. Cells on nodes that
    users have brought for themselves are left out: they count nothing, and tell nothing of the pool.
    """
    hour = (cells.c.ended_at_ms // HOUR_MS).label("hour")
    milli = func.coalesce(cells.c.charged_milli, _milli_of_cell())
    used = func.sum((cells.c.held_ms - cells.c.refunded_ms) * milli).label("amount")
    of = (cells.c.project, cells.c.user, cells.c.qos, cells.c.kind)
    query = select(hour, *of, used).where(cells.c.ended_at_ms >= since_ms, is_of_pool(cells.c.milli))
    for row in connection.execute(query.group_by(hour, *of).order_by(hour, *of)):
        yield HourUse((row.hour + 1) * HOUR_MS, row.project, row.user, row.qos, row.kind, int(row.amount))


def charged(connection: Connection, since_ms: int, until_ms: int) -> Iterator[tuple[ProjectId, str, int]]:
    """Sum what cells were charged in a stretch of time and not refunded, by project and kind of slot.

    In thousandths of a slot, at its price, times milliseconds. Of a cell that is refunded in part, each moment is in
    the same part.
    """
    spans = lease_spans.c
    amount = func.sum(_charge_of_span(since_ms, until_ms))
    query = select(spans.project, spans.kind, amount).select_from(lease_spans.join(cells, is_of_cell()))
    query = query.where(spans.ended_at_ms > since_ms, spans.started_at_ms < until_ms)
    for row in connection.execute(query.group_by(spans.project, spans.kind).order_by(spans.project, spans.kind)):
        yield ProjectId(row[0]), row[1], int(row[2])


def is_of_pool(milli: Column[int | None]) -> ColumnElement[bool]:
    """Make the condition that what held so much was on the pool's slots: a user's own count nothing."""
    return milli.is_(None) | (milli > 0)


def within(query: Select[Any], column: Column[Any], since_ms: int | None, until_ms: int | None) -> Select[Any]:
    """Narrow the query to rows from `since_ms` until before `until_ms`; None leaves that end open."""
    if since_ms is not None:
        query = query.where(column >= since_ms)
    if until_ms is not None:
        query = query.where(column < until_ms)
    return query


def _spans(by: By, from_ms: int, until_ms: int) -> Select[Any]:
    """Select the slot time that leases held in a stretch of time: in quota, borrowed and hot.

    What began before the stretch, or ended after it, counts with what is inside.
    """
    spans = lease_spans.c
    slot_ms = length_in(from_ms, until_ms) * milli_of_span()
    parts: list[tuple[str, ColumnElement[bool]]] = [
        ("in_quota_ms", (spans.cell != "") & spans.in_quota.is_(True)),
        ("borrowed_ms", (spans.cell != "") & spans.in_quota.is_(False)),
        ("hot_ms", spans.cell == ""),
    ]
    sums = [func.sum(case((is_part, slot_ms), else_=0)).label(name) for name, is_part in parts]
    charged = case((cells.c.cell.is_not(None), _charge_of_span(from_ms, until_ms)), else_=0)
    sums.append(func.sum(charged).label("charged_ms"))
    of = _label() if by == "label" else spans[by]
    query = select(of.label("of"), spans.kind.label("kind"), *sums).group_by(of, spans.kind)
    query = query.select_from(lease_spans.outerjoin(cells, is_of_cell()))
    return query.where(spans.ended_at_ms > from_ms, spans.started_at_ms < until_ms)


def _label() -> ColumnElement[str]:
    """Find what a cell's user calls it; empty where no cell ran, and where it was called nothing."""
    return func.coalesce(cells.c.label, literal_column("''"))


def is_of_cell() -> ColumnElement[bool]:
    """Match the spans of a cell's run with its row."""
    return (lease_spans.c.cell == cells.c.cell) & (lease_spans.c.attempt == cells.c.attempt)


def _charge_of_span(from_ms: int, until_ms: int) -> ColumnElement[int]:
    """Compute what a span is charged in a stretch of time: at its cell's price, without its part of the refund."""
    length = length_in(from_ms, until_ms)
    lost = length * cells.c.refunded_ms // func.nullif(cells.c.held_ms, 0, type_=BigInteger)
    return (length - func.coalesce(lost, 0)) * func.coalesce(cells.c.charged_milli, milli_of_span())


def length_in(from_ms: int, until_ms: int) -> ColumnElement[int]:
    """Compute how many milliseconds of a span are in a stretch that overlaps it."""
    spans = lease_spans.c
    start = case((spans.started_at_ms < from_ms, from_ms), else_=spans.started_at_ms)
    end = case((spans.ended_at_ms > until_ms, until_ms), else_=spans.ended_at_ms)
    return end - start


def _cells(by: By, from_ms: int, until_ms: int) -> Select[Any]:
    """Select how many cells ended in a stretch of time, how long their code ran, and what of them was refunded."""
    sums = [
        func.sum(case((cells.c.cell.startswith(PREFIX), 0), else_=cells.c.runs)).label("cells"),
        func.sum(cells.c.ran_ms).label("ran_ms"),
        func.sum(cells.c.refunded_ms * _milli_of_cell()).label("refunded_ms"),
    ]
    of = _label() if by == "label" else cells.c[by]
    query = select(of.label("of"), cells.c.kind.label("kind"), *sums).group_by(of, cells.c.kind)
    return within(query, cells.c.ended_at_ms, from_ms, until_ms)


def milli_of_span() -> ColumnElement[int]:
    """Compute how many thousandths of a slot a span held; in the rows of an older Bulletin all slots are whole."""
    return func.coalesce(lease_spans.c.milli, lease_spans.c.slots * GPU_MILLI)


def _milli_of_cell() -> ColumnElement[int]:
    """Compute how many thousandths of a slot a cell held; one that held them for no time counts as none.

    Rows of an older Bulletin have only slot time, of whole slots: divided by the time held, it leaves no remainder.
    """
    slots = cells.c.slot_ms // func.nullif(cells.c.held_ms, 0, type_=BigInteger)
    return func.coalesce(cells.c.milli, slots * GPU_MILLI, 0)


def _stretches(
    connection: Connection, period: Period | None, since_ms: int | None, until_ms: int | None
) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each period, cut at `since_ms` and `until_ms`, from the first row to the last."""
    spans, ends = lease_spans.c, cells.c.ended_at_ms
    firsts = (func.min(spans.started_at_ms), func.min(ends), func.max(spans.ended_at_ms), func.max(ends))
    found = [connection.scalar(select(value)) for value in firsts]
    if found[0] is None and found[1] is None:
        return
    first_ms = min(value for value in found[:2] if value is not None)
    after_ms = max(value for value in found[2:] if value is not None) + 1  # a cell may have ended at the last instant
    at_ms = first_ms if since_ms is None else since_ms
    end_ms = after_ms if until_ms is None else until_ms
    if period is None:
        if at_ms < end_ms:
            yield at_ms, end_ms
        return
    end_ms = min(end_ms, after_ms)
    start_ms, next_ms = period_at(period, max(at_ms, first_ms))
    while start_ms < end_ms:
        yield (
            start_ms if since_ms is None else max(start_ms, since_ms),
            next_ms if until_ms is None else min(next_ms, until_ms),
        )
        start_ms, next_ms = period_at(period, next_ms)


def paths(of: str, parents: Mapping[ProjectId, ProjectId | None] | None) -> Iterator[str]:
    """Yield a project and all that it is in, from the inside out and once each; without `parents`, itself alone."""
    seen: set[str] = set()
    at: str | None = of
    while at is not None and at not in seen:
        seen.add(at)
        yield at
        at = None if parents is None else parents.get(ProjectId(at))
