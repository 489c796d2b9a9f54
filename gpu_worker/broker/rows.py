"""How the ledger's records become rows, each once however often it is said, and rows become records again."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, assert_never

import msgspec
from sqlalchemy import Connection, Table, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from bulletin.ids import CellId
from gpu_worker.broker.records import (
    CellRecord,
    ConfigChange,
    CreditRecord,
    HotRecord,
    LeaseHolder,
    LeaseRecord,
    LedgerEvent,
    Record,
    first_name,
)
from gpu_worker.broker.tables import cells, config_changes, credit_entries, events, lease_spans, leases

#: In the column `why` of a lease that holds.
_NO_END = ""
_Kind = TypeVar("_Kind", CellRecord, LeaseRecord, CreditRecord, ConfigChange)


def _write_cells(connection: Connection, records: list[CellRecord]) -> list[CellRecord]:
    kept = _insert_new(connection, cells, [_cell_row(record) for record in records])
    new = [record for record in records if (clean(record.cell), record.attempt) in kept]
    spans = [
        _span_row(
            record, record.cell, record.attempt, span.started_at_ms, span.ended_at_ms, is_in_quota=span.is_in_quota
        )
        for record in new
        for span in record.held
    ]
    if spans:
        connection.execute(insert(lease_spans), spans)
    return new


def _write_hot(connection: Connection, records: list[HotRecord]) -> list[HotRecord]:
    spans = [_span_row(record, "", 0, record.started_at_ms, record.ended_at_ms, is_in_quota=True) for record in records]
    kept = _insert_new(connection, lease_spans, spans)
    return [record for record in records if (clean(record.lease), "", 0, record.started_at_ms) in kept]


def _write_leases(connection: Connection, records: list[LeaseRecord]) -> list[LeaseRecord]:
    """Write leases, and the ends of leases. In whatever order they come, the end stays."""
    begun = [record for record in records if record.ended_at_ms is None]
    ended = [record for record in records if record.ended_at_ms is not None]
    kept = _insert_new(connection, leases, [_row(record) for record in begun])
    ends: set[str] = set()
    if ended:
        found = connection.execute(_end_leases(connection.dialect.name), [_row(record) for record in ended])
        ends = {row.lease for row in found}
    return [
        record
        for record in records
        if (clean(record.lease) in ends if record.ended_at_ms is not None else (clean(record.lease),) in kept)
    ]


@cache
def _end_leases(dialect: str) -> Any:
    """Make the statement that writes ends of leases: built once, since that takes longer than to execute it."""
    statement = _inserts(dialect)(leases)
    return statement.on_conflict_do_update(
        index_elements=[leases.c.lease],
        set_={"ended_at_ms": statement.excluded.ended_at_ms, "why": statement.excluded.why},
        where=leases.c.ended_at_ms.is_(None),
    ).returning(leases.c.lease)


def _write_credits(connection: Connection, records: list[CreditRecord]) -> list[CreditRecord]:
    kept = _insert_new(connection, credit_entries, [_row(record) for record in records])
    return [record for record in records if (clean(record.credit),) in kept]


def _write_changes(connection: Connection, records: list[ConfigChange]) -> list[ConfigChange]:
    kept = _insert_new(connection, config_changes, [_row(record) for record in records])
    return [record for record in records if (clean(record.change),) in kept]


def _write_ledger_events(connection: Connection, records: list[LedgerEvent]) -> list[LedgerEvent]:
    events_of = [
        {"at": record.at_ms, "kind": record.kind, "payload": to_json(record.payload), "id": clean(record.id)}
        for record in records
    ]
    kept = {row.id for row in connection.execute(_add_events(connection.dialect.name), events_of)} if records else set()
    return [record for record in records if clean(record.id) in kept]


@cache
def _add_events(dialect: str) -> Any:
    return _inserts(dialect)(events).on_conflict_do_nothing(index_elements=["id"]).returning(events.c.id)


#: In this order, so that two writers of the same tables wait for each other and never in a circle.
WRITERS: dict[type[Record], Callable[[Connection, list[Any]], Sequence[Record]]] = {
    LeaseRecord: _write_leases,
    CellRecord: _write_cells,
    HotRecord: _write_hot,
    CreditRecord: _write_credits,
    ConfigChange: _write_changes,
    LedgerEvent: _write_ledger_events,
}


def count_runs(connection: Connection, records: Sequence[Record]) -> list[Record]:
    """Fill in the attempt of each cell that has none yet: a cell has one for each lease that it ran in.

    The other records come back as they are, in the same order.
    """
    uncounted = [record.cell for record in records if isinstance(record, CellRecord) and not record.attempt]
    known = attempts(connection, uncounted)
    last: dict[str, int] = {}
    for (cell, _), attempt in known.items():
        last[cell] = max(last.get(cell, 0), attempt)
    counted: list[Record] = []
    for record in records:
        if isinstance(record, CellRecord) and not record.attempt:
            run = clean(record.cell), first_name(record.lease)
            if run not in known:
                known[run] = last[run[0]] = last.get(run[0], 0) + 1
            counted.append(msgspec.structs.replace(record, attempt=known[run]))
        else:
            counted.append(record)
    return counted


def attempts(connection: Connection, names: Sequence[CellId]) -> dict[tuple[str, str], int]:
    """Look up the runs of these cells in the ledger: by cell and the lease's first name, which attempt each was."""
    if not names:
        return {}
    wanted = sorted({clean(cell) for cell in names})
    query = select(cells.c.cell, cells.c.lease, cells.c.attempt).where(cells.c.cell.in_(wanted))
    return {(row.cell, first_name(row.lease)): row.attempt for row in connection.execute(query)}


def name(record: Record) -> tuple[str | int, ...]:
    """Return what makes a record the same one, among those of its kind."""
    match record:
        case CellRecord():
            return clean(record.cell), record.attempt
        case HotRecord():
            return clean(record.lease), record.started_at_ms
        case LeaseRecord():
            return clean(record.lease), record.ended_at_ms is not None
        case CreditRecord():
            return (clean(record.credit),)
        case ConfigChange():
            return (clean(record.change),)
        case LedgerEvent():
            return (clean(record.id),)
    assert_never(record)


def append_events(connection: Connection, new: Sequence[Record], at_ms: int) -> None:
    """Put records into the events; a `LedgerEvent` is there already."""
    notes = [
        {"at": at_ms, "kind": _event_kind(record), "payload": to_json(record)}
        for record in new
        if not isinstance(record, LedgerEvent)
    ]
    if notes:
        connection.execute(insert(events), notes)


def _event_kind(record: Record) -> str:
    match record:
        case CellRecord():
            return "cell-recorded"
        case HotRecord():
            return "hot-recorded"
        case LeaseRecord():
            return "lease-granted" if record.ended_at_ms is None else "lease-ended"
        case CreditRecord():
            return "credit-recorded"
        case ConfigChange():
            return "config-changed"
        case LedgerEvent():
            return record.kind
    assert_never(record)


def _inserts(dialect: str) -> Callable[[Table], Any]:
    """Return the dialect's own INSERT, which knows what to do about rows that are there."""
    return postgresql.insert if dialect == "postgresql" else sqlite.insert


@cache
def _insert(dialect: str, table: Table) -> Any:
    return _inserts(dialect)(table).on_conflict_do_nothing().returning(*table.primary_key.columns)


def _insert_new(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    """Insert the rows whose keys are not there yet, also where another writer is at it: the keys inserted."""
    if not rows:
        return set()
    return {tuple(key) for key in connection.execute(_insert(connection.dialect.name, table), rows)}


def clean(text: str) -> str:
    """Replace what a database does not take. PostgreSQL has no NUL: a cell with one in its name would be lost."""
    return text.replace("\0", "\ufffd")


def _row(record: Record) -> dict[str, Any]:
    fields = msgspec.structs.asdict(record)
    if isinstance(record, ConfigChange):
        fields |= {"before": to_json(record.before), "after": to_json(record.after)}
    if isinstance(record, LeaseHolder):
        fields["slots"] = to_json(record.slots)
    if isinstance(record, LeaseRecord):
        fields["why"] = record.why or _NO_END
    return {name: clean(value) if isinstance(value, str) else value for name, value in fields.items()}


def _cell_row(record: CellRecord) -> dict[str, Any]:
    row = _row(record)
    del row["spans"]
    sums = ("gpu_ms", "slot_ms", "in_quota_ms", "borrowed_ms")
    return {**row, **{name: getattr(record, name) for name in sums}}


def _span_row(
    holder: LeaseHolder, cell: str, attempt: int, started_at_ms: int, ended_at_ms: int, *, is_in_quota: bool
) -> dict[str, Any]:
    texts = {"lease": holder.lease, "cell": cell, "user": holder.user, "project": holder.project, "qos": holder.qos}
    return {
        **{name: clean(text) for name, text in texts.items()},
        "attempt": attempt,
        "started_at_ms": started_at_ms,
        "ended_at_ms": ended_at_ms,
        "in_quota": is_in_quota,
        "slots": len(holder.slots),
        "milli": holder.milli,
        "kind": holder.kind,
    }


def to_record(row: Mapping[Any, Any], kind: type[_Kind]) -> _Kind:
    """Turn a row into the record that it was made of."""
    fields = {str(name): value for name, value in row.items()}  # the keys are of a str of SQLAlchemy's own
    for name in ("slots", "before", "after"):
        if name in fields:
            fields[name] = msgspec.json.decode(fields[name])
    if fields.get("why") == _NO_END:
        fields["why"] = None
    return msgspec.convert(fields, kind)


def to_json(value: object) -> str:
    """Encode a value as the text of a column."""
    return msgspec.json.encode(value).decode()
