"""What happened and who used what, kept for good: facts are told to the ledger, and each is kept once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec
from sqlalchemy import RowMapping, Select, func, insert, select

from bulletin.ids import CellId, LeaseId, ProjectId
from gpu_worker.broker import audit, rows, run_notes, usage
from gpu_worker.broker.credit_book import sum_entries
from gpu_worker.broker.database import Database
from gpu_worker.broker.records import (
    UNSURE,
    CellRecord,
    ConfigChange,
    CreditRecord,
    LeaseRecord,
    LedgerEvent,
    OpenLease,
    Record,
    check,
    first_name,
    name_again,
)
from gpu_worker.broker.short_cells import mark, split_marks
from gpu_worker.broker.tables import cells, config_changes, credit_entries, events, lease_spans, leases
from gpu_worker.broker.usage import By, HourUse, Usage
from gpu_worker.scheduler.events import PastCredits
from gpu_worker.scheduler.policy.periods import Period

__all__ = ["CellRecord", "Ledger", "OpenLease", "Usage"]

#: How many rows of a long answer are in memory at once.
_CHUNK = 200
#: Of the cells of one user, so many of the latest say how long they usually wait.
_MOST_WAITS = 20_000


class Ledger:
    """The database of a pool. Every call is one transaction and has happened when it returns; any thread may call.

    Every call raises `LedgerAway` where the database's server does not answer; the same call is right again later.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, url: str, *, upgrade: bool = True) -> Self:
        """Open the database at an SQLAlchemy URL; `Database.open` says how, and what it raises."""
        return cls(Database.open(url, upgrade=upgrade))

    @property
    def database(self) -> Database:
        """Return the database in which it rests."""
        return self._database

    # --- what it is told

    def record(self, records: Iterable[Record], at_ms: int) -> list[Record]:
        """Keep facts, all or nothing: those that it did not have before, in the order of their kinds.

        A fact that it has already, by its name, changes nothing, whatever else is said of it now. The table `events`
        gets each new one. `at_ms` is now, in milliseconds since 1970, UTC.

        Raises
        ------
        ValueError
            If a record does not add up (`records.check`). Nothing of the call is kept.
        sqlalchemy.exc.DataError, sqlalchemy.exc.IntegrityError, OverflowError
            If the database has no room for a value, or does not allow it. Nothing of the call is kept.
        """
        wanted = list(records)
        for record in wanted:
            check(record)
        if not wanted:
            return []
        new: list[Record] = []
        with self._database.writing() as connection:
            wanted = rows.count_runs(connection, wanted)
            for (
                kind,
                write,
            ) in rows.WRITERS.items():  # in one order of tables, and of rows in them: writers never deadlock
                named: dict[tuple[str | int, ...], Record] = {}
                for record in wanted:
                    if isinstance(record, kind):
                        named.setdefault(rows.name(record), record)
                new += write(connection, [named[name] for name in sorted(named)])
            rows.append_events(connection, new, at_ms)
        return new

    def record_cells(self, records: Sequence[CellRecord], at_ms: int) -> list[CellRecord]:
        """Account cells that have ended, in one transaction: those that had not been accounted before."""
        return [record for record in self.record(records, at_ms) if isinstance(record, CellRecord)]

    def record_cell(self, record: CellRecord, at_ms: int) -> bool:
        """Account a cell that has ended, once: False, and nothing changes, where it has been accounted already."""
        return bool(self.record([record], at_ms))

    def append(self, kind: str, payload: Mapping[str, Any], at_ms: int) -> None:
        """Note that something happened. Said twice, it is noted twice: a `LedgerEvent` is noted once."""
        with self._database.writing() as connection:
            connection.execute(insert(events).values(at=at_ms, kind=kind, payload=rows.to_json(payload)))

    # --- what it is asked

    def cells(self, user: str | None = None, limit: int = 100) -> list[CellRecord]:
        """Return cells that have ended, the last one first. Their spans are not looked up: `spans` is None."""
        query = select(cells).order_by(cells.c.ended_at_ms.desc(), cells.c.cell, cells.c.attempt.desc()).limit(limit)
        if user is not None:
            query = query.where(cells.c.user == user)
        with self._database.reading() as connection:
            return [rows.to_record(row, CellRecord) for row in connection.execute(query).mappings()]

    def rows_of_user(self, user: str, limit: int) -> list[dict[str, Any]]:
        """Return the rows of a user's cells that have ended, the last one first."""
        query = select(cells).where(cells.c.user == user)
        query = query.order_by(cells.c.ended_at_ms.desc(), cells.c.cell, cells.c.attempt.desc()).limit(limit)
        with self._database.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def median_wait_ms(self, user: str, since_ms: int) -> int | None:
        """Find how long half of a user's cells did not exceed in line, of those that ended since then and are known.

        Of short cells that are one row, those behind the first waited for nothing. None where nothing is known.
        """
        query = select(cells.c.waited_ms, cells.c.runs).where(cells.c.user == user, cells.c.ended_at_ms >= since_ms)
        query = query.where(cells.c.waited_ms.is_not(None)).order_by(cells.c.ended_at_ms.desc()).limit(_MOST_WAITS)
        with self._database.reading() as connection:
            found = [(row.waited_ms, row.runs) for row in connection.execute(query)]
        at_once = sum(runs - 1 for _, runs in found)
        middle = (at_once + len(found) - 1) // 2
        if not found:
            return None
        return 0 if middle < at_once else int(sorted(waited_ms for waited_ms, _ in found)[middle - at_once])

    def each_cell(self, since_ms: int | None = None, until_ms: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield the rows of cells that ended from `since_ms` until before `until_ms`, by their end, a few at once.

        The iterator holds one moment of the database while it is not exhausted or closed.
        """
        query = select(cells).order_by(cells.c.ended_at_ms, cells.c.cell, cells.c.attempt)
        for row in self._each(usage.within(query, cells.c.ended_at_ms, since_ms, until_ms)):
            yield {str(name): value for name, value in row.items()}

    def each_record(self, since_ms: int, until_ms: int) -> Iterator[CellRecord]:
        """Yield the same as records, without their spans."""
        for row in self.each_cell(since_ms, until_ms):
            yield rows.to_record(row, CellRecord)

    def about(self, name: str, user: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Find the rows of a cell or a lease with this id; else of those whose id begins so. The last one comes first.

        The row of several short cells is found by the whole id of each of them.

        `user` leaves out other people's.
        """
        with self._database.reading() as connection:
            begins = [column.startswith(name, autoescape=True) for column in (cells.c.cell, cells.c.lease)]
            is_among = (cells.c.runs > 1) & cells.c.marks.contains(mark(CellId(name)))
            for fits in ((cells.c.cell == name) | (cells.c.lease == name), begins[0] | begins[1], is_among):
                query = select(cells).where(fits).limit(limit)
                if user is not None:
                    query = query.where(cells.c.user == user)
                query = query.order_by(cells.c.ended_at_ms.desc(), cells.c.cell, cells.c.attempt.desc())
                found = [dict(row) for row in connection.execute(query).mappings()]
                if found:
                    return found
        return []

    def event_payloads(self, kind: str) -> list[Any]:
        """Return what was appended to the events under this kind, as it was said, the oldest first."""
        query = select(events.c.payload).where(events.c.kind == kind).order_by(events.c.seq)
        with self._database.reading() as connection:
            return [msgspec.json.decode(payload) for payload in connection.scalars(query)]

    def timed_payloads(self, kind: str) -> list[tuple[int, Any]]:
        """Return the same, each after the time at which it happened."""
        query = select(events.c.at, events.c.payload).where(events.c.kind == kind).order_by(events.c.seq)
        with self._database.reading() as connection:
            return [(row.at, msgspec.json.decode(row.payload)) for row in connection.execute(query)]

    def usage(
        self,
        by: By,
        *,
        period: Period | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        parents: Mapping[ProjectId, ProjectId | None] | None = None,
    ) -> list[Usage]:
        """Add up who used how much: `usage.ask` says what counts where."""
        return list(self.each_usage(by, period=period, since_ms=since_ms, until_ms=until_ms, parents=parents))

    def each_usage(
        self,
        by: By,
        *,
        period: Period | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        parents: Mapping[ProjectId, ProjectId | None] | None = None,
    ) -> Iterator[Usage]:
        """Yield what `usage` returns, one period in memory at a time, of one moment of the database."""
        with self._database.reading() as connection:
            yield from usage.ask(connection, by, period, since_ms, until_ms, parents)

    def past_use(self, since_ms: int) -> list[HourUse]:
        """List by the hour, the first hour first, what cells used that ended since then, less what was refunded."""
        with self._database.reading() as connection:
            return list(usage.by_hour(connection, since_ms))

    def last_use(self, since_ms: int) -> dict[ProjectId, int]:
        """Return when a cell of each project ended last, of those in which one did since then."""
        query = select(cells.c.project, func.max(cells.c.ended_at_ms)).where(cells.c.ended_at_ms >= since_ms)
        with self._database.reading() as connection:
            return {ProjectId(row[0]): int(row[1]) for row in connection.execute(query.group_by(cells.c.project))}

    def charged(self, since_ms: int, until_ms: int) -> dict[tuple[ProjectId, str], int]:
        """Sum what cells were charged between two times and not refunded, by project and kind of slot.

        In thousandths of a slot, at its price, times milliseconds.
        """
        with self._database.reading() as connection:
            return {(project, kind): amount for project, kind, amount in usage.charged(connection, since_ms, until_ms)}

    def has_prices(self) -> bool:
        """Return whether any cell was charged something else than what it held."""
        query = select(cells.c.cell).where(cells.c.charged_milli != cells.c.milli).limit(1)
        with self._database.reading() as connection:
            return connection.scalar(query) is not None

    def slot_kinds(self) -> set[str]:
        """Return the kinds of slots of the pool that were ever leased: "gpu", "cpu"."""
        query = select(leases.c.kind).where(usage.is_of_pool(leases.c.milli)).distinct()
        with self._database.reading() as connection:
            return set(connection.scalars(query))

    def open_leases(self) -> list[OpenLease]:
        """Return leases that have not ended, oldest first: what a broker that starts again goes on to account."""
        until = select(func.max(lease_spans.c.ended_at_ms)).where(lease_spans.c.lease == leases.c.lease)
        query = select(leases, until.scalar_subquery().label("until_ms")).where(leases.c.ended_at_ms.is_(None))
        query = query.order_by(leases.c.granted_at_ms, leases.c.lease)
        open_leases = select(leases.c.lease).where(leases.c.ended_at_ms.is_(None))
        ended: dict[str, list[CellId]] = {}
        marks: dict[str, list[str]] = {}
        with self._database.reading() as connection:
            found = [
                (rows.to_record(row, LeaseRecord), row["until_ms"]) for row in connection.execute(query).mappings()
            ]
            first_ms = min((lease.granted_at_ms for lease, _ in found), default=0)
            inside = select(cells.c.lease, cells.c.cell, cells.c.marks).where(cells.c.lease.in_(open_leases))
            for row in connection.execute(inside.where(cells.c.ended_at_ms >= first_ms)) if found else ():
                ended.setdefault(row.lease, []).append(CellId(row.cell))
                marks.setdefault(row.lease, []).extend(split_marks(row.marks))
        alive = self.last_event(run_notes.ALIVE) if found else None
        return [
            OpenLease(
                lease,
                max(lease.granted_at_ms, until_ms or 0),
                tuple(ended.get(lease.lease, ())),
                frozenset(marks.get(lease.lease, ())),
                self._running(lease.lease, ended.get(lease.lease, ()), alive),
            )
            for lease, until_ms in found
        ]

    def _running(
        self, lease: LeaseId, ended: Sequence[CellId], alive: LedgerEvent | None
    ) -> tuple[CellId, int, int, int | None] | None:
        last = self.last_event(f"{run_notes.RUNS}{rows.clean(lease)}/")
        if last is None or last.payload["cell"] in ended:
            return None
        until_ms = max(last.at_ms, alive.at_ms if alive is not None else 0)
        return CellId(last.payload["cell"]), last.at_ms, until_ms, last.payload.get("charged_milli")

    def given_up(self, since_ms: int) -> list[OpenLease]:
        """Leases that ended since then and whose agents never said so, oldest first, with cells that ended with them.

        Who comes back with one finds its time until then accounted.
        """
        ends_with = (cells.c.lease == leases.c.lease) & (cells.c.ended_at_ms == leases.c.ended_at_ms)
        query = select(leases, cells.c.cell, cells.c.marks).select_from(leases.outerjoin(cells, ends_with))
        query = query.where(leases.c.why.in_(sorted(UNSURE)), leases.c.ended_at_ms >= since_ms)
        found: dict[str, OpenLease] = {}
        with self._database.reading() as connection:
            for row in connection.execute(query.order_by(leases.c.ended_at_ms, leases.c.lease)).mappings():
                lease = rows.to_record(row, LeaseRecord)
                before = found.get(lease.lease)
                own = () if row["cell"] is None else (CellId(row["cell"]),)
                known, marks = (before.cells, before.marks) if before is not None else ((), frozenset[str]())
                marks |= frozenset(split_marks(row["marks"]))
                found[lease.lease] = OpenLease(lease, lease.ended_at_ms or 0, known + own, marks)
        return list(found.values())

    def ended_ms(self, lease: LeaseId) -> int:
        """Return when a lease ended last, under whatever names it went on; 0 where it never did."""
        name = rows.clean(first_name(lease))
        is_it = (leases.c.lease == name) | leases.c.lease.startswith(name_again(LeaseId(name), ""), autoescape=True)
        with self._database.reading() as connection:
            return connection.scalar(select(func.max(leases.c.ended_at_ms)).where(is_it)) or 0

    def has_run(self, cell: CellId, lease: LeaseId) -> bool:
        """Return whether it has the run of this cell in this lease, under whatever name the lease went on."""
        with self._database.reading() as connection:
            if rows.attempts(connection, [cell]).get((rows.clean(cell), first_name(lease))) is not None:
                return True
            name = rows.clean(first_name(lease))
            is_it = (cells.c.lease == name) | cells.c.lease.startswith(name_again(LeaseId(name), ""), autoescape=True)
            query = select(cells.c.cell).where(is_it, cells.c.runs > 1, cells.c.marks.contains(mark(cell))).limit(1)
            return connection.scalar(query) is not None

    def balances(self, until_ms: int | None = None) -> dict[ProjectId, int]:
        """Return the credits of each project that ever had any, in GPU-milliseconds, as they were before `until_ms`."""
        past = self.past_credits(until_ms=until_ms)
        return {one.project: one.credits.balance for one in past if not one.own_users}

    def past_credits(self, since_ms: int | None = None, until_ms: int | None = None) -> list[PastCredits]:
        """Sum what each project earned and spent from `since_ms` until before `until_ms`.

        The project's own users, among the projects inside it, have a row of their own.
        """
        entry = credit_entries.c
        by = (entry.project, entry.own_users, entry.cause)
        query = select(*by, func.sum(entry.gpu_ms)).group_by(*by).order_by(*by)
        with self._database.reading() as connection:
            found = connection.execute(usage.within(query, entry.at_ms, since_ms, until_ms)).all()
        return sum_entries((ProjectId(row[0]), bool(row[1]), row[2], int(row[3])) for row in found)

    def credits(
        self, project: ProjectId | None = None, since_ms: int | None = None, until_ms: int | None = None
    ) -> Iterator[CreditRecord]:
        """Earnings and spendings by time, of one project or of all, from `since_ms` until before `until_ms`."""
        query = select(credit_entries).order_by(credit_entries.c.at_ms, credit_entries.c.credit)
        if project is not None:
            query = query.where(credit_entries.c.project == project)
        query = usage.within(query, credit_entries.c.at_ms, since_ms, until_ms)
        return (rows.to_record(row, CreditRecord) for row in self._each(query))

    def config_changes(self, limit: int = 100) -> list[ConfigChange]:
        """Return who changed what, the last change first."""
        query = select(config_changes).order_by(config_changes.c.at_ms.desc(), config_changes.c.change).limit(limit)
        with self._database.reading() as connection:
            return [rows.to_record(row, ConfigChange) for row in connection.execute(query).mappings()]

    def last_event(self, prefix: str) -> LedgerEvent | None:
        """Return the last of the events whose ids begin so. The rest of an id has a fixed length."""
        query = select(events).where(events.c.id >= prefix, events.c.id.startswith(prefix, autoescape=True))
        with self._database.reading() as connection:
            row = connection.execute(query.order_by(events.c.id.desc()).limit(1)).mappings().first()
        if row is None:
            return None
        payload = msgspec.json.decode(row["payload"], type=dict[str, Any])
        return LedgerEvent(id=row["id"], kind=row["kind"], payload=payload, at_ms=row["at"])

    def audit(self) -> Iterator[str]:
        """Find what does not add up, in sentences: nothing, where all is well.

        Held to the millisecond: each cell is its spans, in quota and borrowed; each lease that has ended is cells and
        hot time, from grant to end, without a gap and without an overlap.
        """
        for look in audit.QUESTIONS:
            yield from look(self._each)

    def _each(self, query: Select[Any]) -> Iterator[RowMapping]:
        with self._database.reading() as connection:
            yield from connection.execution_options(yield_per=_CHUNK).execute(query).mappings()

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
