"""What happened and who used what, kept for good: events are appended, and each ended cell is one row, once."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, RowMapping, create_engine, event, func, insert, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from bulletin.errors import BadConfig
from bulletin.ids import CellId, LeaseId, ProjectId, SessionId, SlotId, UserName
from gpu_worker.broker.tables import cells, events

_BUSY_MS = 10_000
_READS = {"ledger_reads": True}


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One cell that has ended, as it is accounted."""

    cell: CellId
    lease: LeaseId
    session: SessionId
    user: UserName
    project: ProjectId
    qos: str
    node: str
    slots: tuple[SlotId, ...]  #: those it held
    kind: Literal["gpu", "cpu"]  #: what they are; a MIG slice counts as a GPU
    gpus: int  #: how many it asked for
    started_at_ms: int  #: milliseconds since 1970, UTC
    ended_at_ms: int
    held_ms: int  #: from the cell's arrival to the last byte of its results, by the agent's steady clock: what counts
    ran_ms: int  #: of that, the time in which the user's code ran
    outcome: str  #: returned, raised, interrupted, walltime, died, node-lost …
    peak_memory_bytes: int | None = None
    mean_utilization: float | None = None  #: 0 to 1
    bytes_sent: int = 0
    bytes_returned: int = 0
    label: str = ""

    @property
    def slot_ms(self) -> int:
        """Slots held, times how long."""
        return len(self.slots) * self.held_ms

    @property
    def gpu_ms(self) -> int:
        """GPU time used: nothing on CPU slots."""
        return self.slot_ms if self.kind == "gpu" else 0


class Usage(msgspec.Struct, frozen=True):
    """The sum over the cells of one user, project or QoS."""

    of: str
    cells: int
    ran_ms: int
    gpu_ms: int
    slot_ms: int


class Ledger:
    """The database of a pool. Every call is one transaction and has happened when it returns; any thread may call."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, url: str) -> Self:
        """Open the database at an SQLAlchemy URL, make it where it is not there, and bring its tables up to date.

        Raises
        ------
        BadConfig
            If it cannot be opened, or was written by a newer Bulletin.
        """
        try:
            parsed = make_url(url)
        except ArgumentError:  # the sentence of SQLAlchemy repeats the URL, and with it a password
            raise BadConfig(
                "The ledger's database URL is not one. Write it as in 'sqlite:////srv/ledger.db'."
            ) from None
        shown = parsed.render_as_string(hide_password=True)
        try:
            engine = _engine(parsed)
        except (ArgumentError, NoSuchModuleError, ImportError, OSError) as error:
            raise BadConfig(f"The ledger at {shown} cannot be opened: {error}.") from error
        try:
            with engine.begin() as connection:
                _upgrade(connection, shown)
        except DBAPIError as error:
            engine.dispose()
            raise BadConfig(f"The ledger at {shown} cannot be opened: {error.orig}.") from error
        except BaseException:
            engine.dispose()
            raise
        return cls(engine)

    def append(self, kind: str, payload: Mapping[str, Any], at_ms: int) -> None:
        """Note that something happened."""
        with self._engine.begin() as connection:
            _append(connection, kind, payload, at_ms)

    def record_cell(self, record: CellRecord, at_ms: int) -> bool:
        """Account a cell that has ended, once: False, and nothing changes, where it has been accounted already."""
        return bool(self.record_cells([record], at_ms))

    def record_cells(self, records: Sequence[CellRecord], at_ms: int) -> list[CellRecord]:
        """Account cells that have ended, in one transaction: those that had not been accounted before."""
        by_cell = {record.cell: record for record in records}
        with self._engine.begin() as connection:
            known = set(connection.scalars(select(cells.c.cell).where(cells.c.cell.in_(by_cell))))
            new = [record for record in by_cell.values() if record.cell not in known]
            if new:
                connection.execute(insert(cells), [_row(record) for record in new])
            for record in new:
                _append(connection, "cell-recorded", msgspec.to_builtins(record), at_ms)
        return new

    def cells(self, user: str | None = None, limit: int = 100) -> list[CellRecord]:
        """Cells that have ended, the last one first."""
        query = select(cells).order_by(cells.c.ended_at_ms.desc(), cells.c.cell).limit(limit)
        if user is not None:
            query = query.where(cells.c.user == user)
        with self._engine.connect().execution_options(**_READS) as connection:
            rows = connection.execute(query).mappings().all()
        return [_record(row) for row in rows]

    def usage(self, by: Literal["user", "project", "qos"]) -> list[Usage]:
        """Sums over all cells, those with the most GPU time first."""
        column = cells.c[by]
        sums = [func.sum(cells.c[name]) for name in ("ran_ms", "gpu_ms", "slot_ms")]
        query = select(column, func.count(), *sums).group_by(column)
        with self._engine.connect().execution_options(**_READS) as connection:
            rows = connection.execute(query).all()
        found = [Usage(str(of), *(int(number) for number in numbers)) for of, *numbers in rows]
        return sorted(found, key=lambda usage: (-usage.gpu_ms, -usage.slot_ms, usage.of))

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _append(connection: Connection, kind: str, payload: Mapping[str, Any], at_ms: int) -> None:
    connection.execute(insert(events).values(at=at_ms, kind=kind, payload=_json(payload)))


def _row(record: CellRecord) -> dict[str, Any]:
    fields = msgspec.structs.asdict(record)
    return {**fields, "slots": _json(record.slots), "gpu_ms": record.gpu_ms, "slot_ms": record.slot_ms}


def _record(row: RowMapping) -> CellRecord:
    fields = {str(name): value for name, value in row.items()}  # the keys are of a str of SQLAlchemy's own
    return msgspec.convert({**fields, "slots": msgspec.json.decode(row["slots"])}, CellRecord)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    if url.database and url.database != ":memory:":
        _make_private(Path(url.database))
    engine = create_engine(url)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_private(path: Path) -> None:
    """Only the pool's user may read who ran what. SQLite gives its side files the mode of the database."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver would otherwise commit before each change of a table
    for pragma in ("journal_mode = WAL", "synchronous = FULL", f"busy_timeout = {_BUSY_MS}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """Who will write takes the lock first: a reader that turns writer meets an error instead of a wait."""
    reads = connection.get_execution_options().get("ledger_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _upgrade(connection: Connection, shown: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    known = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
    for version in MigrationContext.configure(connection).get_current_heads():
        if version not in known:
            raise BadConfig(
                f"The ledger at {shown} has version {version}, which this Bulletin does not know: "
                "a newer one wrote it. Upgrade Bulletin, or give it another ledger. Nothing was changed."
            )
    command.upgrade(config, "head")
