"""The door to the ledger's database: SQLite or PostgreSQL by URL, tables up to date, troubles in words."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    TimeoutError as NoConnection,
)

from bulletin.errors import BadConfig, LedgerAway

_BUSY_MS = 10_000
_READS = "ledger_reads"
#: How long a server may take to accept a connection, and to acknowledge what it was sent, in libpq's units.
_PATIENCE = {"connect_timeout": 5, "tcp_user_timeout": 10_000, "keepalives_idle": 10, "keepalives_interval": 5}
#: What PostgreSQL answers while it is lost, starts, stops, has no room, or waits for a lock or a disk: it may not soon.
_PASSING = ("08", "53", "57", "58", "25P03", "25P04", "40001", "40P01", "55P03")
#: What it says of a ledger that was open and is a standby now, or that somebody has taken away, or the right to it.
_TAKEN = ("25006", "28", "3D000", "3F000", "42501", "42P01")
#: What SQLite answers while there is no room on its disk, that cannot be written or read, or somebody else writes.
_FILE_PASSING = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY)
#: And what it says of a file that was in order: somebody has taken it away, or the right to it, or has spoilt it.
_FILE_TAKEN = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_SCHEMA,
)
#: What PostgreSQL says to those who will never get in as they are.
_TURNED_DOWN = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "pg_hba.conf",
    "permission denied",
    "not permitted",
)
#: Serializes the brokers that bring the same database up to date. Any number that nobody else locks.
_UPGRADE_LOCK = 0x62756C6C6574696E
_MIGRATIONS = Path(__file__).with_name("migrations")


class Database:
    """One database, open. Connections are the caller's for the length of a `with`; any thread may take one."""

    def __init__(self, engine: Engine, shown: str) -> None:
        self._engine, self._shown, self._is_open = engine, shown, False

    @classmethod
    def open(cls, url: str, *, upgrade: bool = True) -> Self:
        """Open the database at an SQLAlchemy URL: a private file for SQLite; psycopg for plain "postgresql://".

        With `upgrade`, it is made where it is not there, and its tables are brought up to date, by one process at a
        time. Without, both are for a broker to do.

        Raises
        ------
        BadConfig
            If it cannot be opened as things are, or was written by a newer Bulletin (or an older one, not to be
            brought up to date).
        LedgerAway
            If its server does not answer, or not yet; or the file's disk is full.
        """
        parsed = _parse(url)
        shown = _without_secrets(parsed)
        try:
            engine = _engine(parsed, make=upgrade)
        except FileNotFoundError:
            raise BadConfig(f"There is no ledger at {shown}: no pool with this setting has run yet.") from None
        except ModuleNotFoundError as error:
            raise BadConfig(
                f"The ledger at {shown} cannot be opened: there is no module {error.name!r}. "
                "For PostgreSQL: pip install 'bulletin[postgresql]'."
            ) from error
        except (ArgumentError, NoSuchModuleError, ImportError, OSError) as error:
            raise BadConfig(f"The ledger at {shown} cannot be opened: {error}.") from error
        database = cls(engine, shown)
        try:
            with database.writing() if upgrade else database.reading() as connection:
                if connection.dialect.name == "postgresql" and upgrade:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _UPGRADE_LOCK})
                _bring_up_to_date(connection, shown, upgrade=upgrade)
        except DBAPIError as error:
            engine.dispose()
            raise BadConfig(f"The ledger at {shown} cannot be opened: {_words(error)}.") from error
        except BaseException:
            engine.dispose()
            raise
        database._is_open = True
        return database

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction: it has happened when the block has ended, or nothing of it, where the block raised.

        Raises
        ------
        LedgerAway
            If the server does not answer, or has no room, or somebody has taken the ledger away; or the file's disk
            is full, or the file cannot be used any more; or all connections are in use. Where it went away while it
            committed, it may have happened all the same.
        """
        with self._in_words(), self._engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Show one moment of the database for as long as the block takes; raises `LedgerAway` as `writing` does."""
        options: dict[str, Any] = {_READS: True}
        if self._engine.dialect.name == "postgresql":
            options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._in_words(), self._engine.connect().execution_options(**options) as connection:
            yield connection

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except NoConnection as error:
            raise LedgerAway(self._shown, "all of the pool's connections to it are in use") from error
        except DBAPIError as error:
            is_file = isinstance(error.orig, sqlite3.Error)
            if _is_out_of_order(error, was_open=self._is_open) if is_file else _is_away(error, was_open=self._is_open):
                raise LedgerAway(self._shown, _words(error)) from error
            raise


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:  # the sentence of SQLAlchemy repeats the URL, and with it a password
        raise BadConfig("The ledger's database URL is not one. Write it as in 'sqlite:////srv/ledger.db'.") from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed


def _without_secrets(url: URL) -> str:
    """Return the URL as it may be shown: without passwords, also those that drivers take among their options."""
    hidden = {name: "***" for name in url.query if "pass" in name.lower()}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def _is_away(error: DBAPIError, *, was_open: bool) -> bool:
    """Tell whether PostgreSQL may soon answer the same otherwise: it was lost, not reached, or not ready.

    Of a ledger that was open, something has gone that may come back; at the start it is a setting that is wrong.
    """
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state.startswith(_PASSING) or (was_open and state.startswith(_TAKEN))
    is_lost = error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
    return is_lost and (was_open or not _is_turned_down(error))


def _is_out_of_order(error: DBAPIError, *, was_open: bool) -> bool:
    """Tell whether a file may soon be read and written again: its disk is full or fails, or somebody else has it."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is None:
        return False
    known = _FILE_PASSING + _FILE_TAKEN if was_open else _FILE_PASSING
    return code & 0xFF in known  # without what SQLite adds to the code


def _is_turned_down(error: DBAPIError) -> bool:
    """Tell whether a connection was refused for what it said of itself. libpq knows this only as words."""
    return any(words in str(error.orig) for words in _TURNED_DOWN)


def _words(error: DBAPIError) -> str:
    """Return what the driver says, on one line: no statement, no values; and no driver repeats a password."""
    return " ".join(str(error.orig).split()).rstrip(".")


def _engine(url: URL, *, make: bool) -> Engine:
    if url.get_backend_name() != "sqlite":
        wanted = _PATIENCE if url.get_backend_name() == "postgresql" else {}
        arguments = {name: value for name, value in wanted.items() if name not in url.query}
        return create_engine(url, pool_pre_ping=True, hide_parameters=True, connect_args=arguments)
    if url.database and url.database != ":memory:":
        path = Path(url.database)
        if make:
            _make_private(path)
        else:
            path.stat()
    engine = create_engine(url, hide_parameters=True)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_private(path: Path) -> None:
    """Only the pool's user may read who ran what. SQLite gives its side files the mode of the database."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver would otherwise commit before each change of a table
    for pragma in (f"busy_timeout = {_BUSY_MS}", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    _write_ahead(connection)


def _write_ahead(connection: Any) -> None:
    """Switch to a write-ahead log, and wait for whoever makes the same new file: `busy_timeout` does not count here."""
    until_s = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # without what SQLite adds to the code
            if not is_busy or time.monotonic() > until_s:
                raise
        time.sleep(0.005)


def _begin_sqlite(connection: Connection) -> None:
    """Take the lock before the first statement of a writer: a reader that turns writer meets an error, not a wait."""
    reads = connection.get_execution_options().get(_READS, False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _bring_up_to_date(connection: Connection, shown: str, *, upgrade: bool) -> None:
    """Upgrade an older database, or raise BadConfig. Most are up to date: Alembic takes longer than all else here."""
    if _read_version(connection) == _find_newest():
        return
    from gpu_worker.broker.database_versions import bring_up_to_date

    bring_up_to_date(connection, _MIGRATIONS, shown, upgrade=upgrade)


def _read_version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _find_newest() -> str:
    """Find the version to which the last step leads, by the names of their files."""
    return max(step.name.partition("_")[0] for step in (_MIGRATIONS / "versions").glob("[0-9]*_*.py"))
