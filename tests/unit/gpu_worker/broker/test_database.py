"""What a database answers that may be otherwise soon is a ledger that is away; what a bug of ours meets is not."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from bulletin.errors import BadConfig, LedgerAway
from gpu_worker.broker.database import Database
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.writer import Writer
from tests.unit.gpu_worker.broker.ledger_records import record, rows
from tests.unit.gpu_worker.broker.postgres import Server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def test_a_ledger_whose_connections_are_all_in_use_is_away(path: Path) -> None:
    database = Database(create_engine(f"sqlite:///{path}", pool_size=1, max_overflow=0, pool_timeout=0.05), "it")
    with database.reading(), pytest.raises(LedgerAway, match="in use"), database.writing():
        pass
    with database.reading() as connection:
        assert connection.scalar(text("SELECT 1")) == 1
    database.close()


@contextlib.contextmanager
def spoiled(path: Path) -> Iterator[None]:
    """Turn a ledger to what is none, and back."""
    kept = path.read_bytes()
    path.write_bytes(b"nothing that SQLite knows" * 1000)
    yield
    path.write_bytes(kept)


def test_a_file_that_was_in_order_and_is_spoiled_is_waited_for_and_at_the_start_it_is_a_wrong_setting(
    path: Path,
) -> None:
    Ledger.open(f"sqlite:///{path}").close()
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.database.close()  # connections are made anew
        with spoiled(path):
            with pytest.raises(LedgerAway, match="not a database"):
                ledger.record_cell(record("c1"), at_ms=0)
            with pytest.raises(BadConfig, match="not a database"):
                Ledger.open(f"sqlite:///{path}")
        assert ledger.record_cell(record("c1"), at_ms=0) is True


def test_a_table_that_is_not_there_is_no_ledger_that_is_away(path: Path) -> None:
    with Ledger.open(f"sqlite:///{path}") as ledger:
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("DROP TABLE cells")
        with pytest.raises(DBAPIError, match="no such table"):
            ledger.cells()


REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '{}'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON cells FOR EACH ROW EXECUTE FUNCTION refuse()
"""


@pytest.mark.parametrize(
    "state",
    ["25006", "40001", "40P01", "42501", "42P01", "53100", "53200", "55P03", "57014", "58030"],
    ids=["standby", "serialize", "deadlock", "right", "table", "disk", "memory", "lock", "canceled", "input-output"],
)
def test_what_a_server_does_not_take_now_it_takes_when_it_is_put_right(postgres: Server, state: str) -> None:
    url = postgres.make_database(f"ledger_{state.lower()}")
    with Ledger.open(url) as ledger:
        rows(url, REFUSE.format(state))
        with pytest.raises(LedgerAway, match="not now"):
            ledger.record_cell(record("c1"), at_ms=0)
        rows(url, "DROP TRIGGER refuse ON cells")
        assert ledger.record_cell(record("c1"), at_ms=0) is True


def test_a_record_that_the_database_does_not_allow_harms_no_other(
    postgres: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres.make_database("ledger_strict")
    with Ledger.open(url) as ledger:
        rows(url, "ALTER TABLE cells ADD CHECK (cell <> 'c2')")
        writer = Writer(ledger, lambda: 0)
        writer.keep([record("c1"), record("c2"), record("c3")])
        writer.close()
        assert {one.cell for one in ledger.cells()} == {"c1", "c3"}
    assert "the ledger refuses a record" in "".join(capsys.readouterr())
