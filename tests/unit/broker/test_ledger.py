"""The ledger on real SQLite files."""

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, make_url
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from bulletin.errors import BadConfig
from gpu_worker.broker.ledger import CellRecord, Ledger, Usage
from gpu_worker.broker.tables import metadata


def record(cell: str, **changes: object) -> CellRecord:
    plain = CellRecord(
        cell=cell, lease="l", session="s", user="ann", project="ml", qos="interactive", node="n1",
        slots=("gpu-0", "gpu-1"), kind="gpu", gpus=2, started_at_ms=1_000, ended_at_ms=4_000,
        held_ms=2_990, ran_ms=2_900, outcome="returned",
    )  # type: ignore[arg-type]  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path):
    with Ledger.open(f"sqlite:///{path}") as ledger:
        yield ledger


def rows(path: Path, query: str) -> list[tuple]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_events_are_kept_in_order(ledger: Ledger, path: Path) -> None:
    ledger.append("lease-granted", {"lease": "l1", "slots": ["gpu-0"]}, at_ms=1_700_000_000_000)
    ledger.append("lease-ended", {"lease": "l1"}, at_ms=1_700_000_000_000)
    kept = rows(path, "SELECT seq, at, kind, payload FROM events")
    assert [(seq, at, kind) for seq, at, kind, _ in kept] == [
        (1, 1_700_000_000_000, "lease-granted"),
        (2, 1_700_000_000_000, "lease-ended"),
    ]
    assert json.loads(kept[0][3]) == {"lease": "l1", "slots": ["gpu-0"]}


def test_a_cell_is_accounted_once_however_often_it_is_reported(ledger: Ledger, path: Path) -> None:
    assert ledger.record_cell(record("c1"), at_ms=5_000) is True
    assert ledger.record_cell(record("c1", held_ms=9), at_ms=6_000) is False
    assert ledger.cells() == [record("c1")]
    assert rows(path, "SELECT kind, at FROM events") == [("cell-recorded", 5_000)]
    assert rows(path, "SELECT gpu_ms, slot_ms FROM cells") == [(5_980, 5_980)]


def test_two_threads_that_report_the_same_cells_account_each_once(ledger: Ledger, path: Path) -> None:
    accounted: list[bool] = []

    def report() -> None:
        accounted.extend([ledger.record_cell(record(f"c{number}"), at_ms=0) for number in range(50)])

    threads = [threading.Thread(target=report) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(accounted) == [False] * 50 + [True] * 50
    assert rows(path, "SELECT COUNT(*) FROM events") == [(50,)]


def test_cells_come_last_first_and_by_user(ledger: Ledger) -> None:
    full = record(
        "c3",
        user="bob",
        ended_at_ms=9_000,
        peak_memory_bytes=80 * 10**9,
        mean_utilization=0.5,
        bytes_sent=2**40,
        label="é",
    )
    for one in (record("c1", ended_at_ms=2_000), record("c2", ended_at_ms=3_000), full):
        ledger.record_cell(one, at_ms=0)
    assert [one.cell for one in ledger.cells()] == ["c3", "c2", "c1"]
    assert [one.cell for one in ledger.cells(limit=2)] == ["c3", "c2"]
    assert ledger.cells(user="bob") == [full]
    assert ledger.cells(user="nobody") == []


def test_usage_adds_up_and_cpu_slots_use_no_gpu_time(ledger: Ledger) -> None:
    ledger.record_cell(record("c1"), at_ms=0)
    ledger.record_cell(record("c2", kind="cpu", slots=("cpu-0",), held_ms=10, ran_ms=10), at_ms=0)
    ledger.record_cell(record("c3", user="bob", project="bio", slots=("gpu-0",), held_ms=7, ran_ms=7), at_ms=0)
    assert ledger.usage(by="user") == [Usage("ann", 2, 2_910, 5_980, 5_990), Usage("bob", 1, 7, 7, 7)]
    assert ledger.usage(by="project") == [Usage("ml", 2, 2_910, 5_980, 5_990), Usage("bio", 1, 7, 7, 7)]
    assert ledger.usage(by="qos") == [Usage("interactive", 3, 2_917, 5_987, 5_997)]


def test_only_the_owner_may_read_the_files(ledger: Ledger, path: Path) -> None:
    ledger.append("x", {}, at_ms=0)
    files = sorted(path.parent.iterdir())
    assert path in files
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_ledger_that_was_readable_by_all_is_made_private(path: Path) -> None:
    path.touch()
    path.chmod(0o644)
    Ledger.open(f"sqlite:///{path}").close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_opens_again_with_all_that_was_in_it(path: Path) -> None:
    for number in range(3):
        with Ledger.open(f"sqlite:///{path}") as ledger:
            assert len(ledger.cells()) == number
            ledger.record_cell(record(f"c{number}"), at_ms=0)


def test_the_steps_lead_exactly_to_the_tables(ledger: Ledger, path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_the_tables_can_be_written_for_postgresql() -> None:
    script = "".join(str(CreateTable(table).compile(dialect=postgresql.dialect())) for table in metadata.sorted_tables)
    assert "seq BIGSERIAL" in script
    assert '"user" VARCHAR(255)' in script


def test_a_database_of_a_newer_bulletin_is_left_alone_with_a_clear_error(path: Path) -> None:
    Ledger.open(f"sqlite:///{path}").close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    with pytest.raises(BadConfig, match=r"ledger.db has version 9999, .* a newer one wrote it\. Upgrade Bulletin"):
        Ledger.open(f"sqlite:///{path}")
    assert rows(path, "SELECT version_num FROM alembic_version") == [("9999",)]


@pytest.mark.parametrize("url", ["nonsense", "nosuch://host/db", "sqlite:////nosuch/folder/ledger.db"])
def test_what_cannot_be_opened_is_a_clear_error(url: str) -> None:
    with pytest.raises(BadConfig, match="ledger"):
        Ledger.open(url)


def test_a_file_that_is_no_database_is_a_clear_error_and_stays_as_it_is(path: Path) -> None:
    path.write_text("notes of a person, not of a program\n" * 100)
    before = path.read_bytes()
    with pytest.raises(BadConfig, match="not a database"):
        Ledger.open(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_password_is_not_shown() -> None:
    with pytest.raises(BadConfig) as caught:
        Ledger.open("nosuch://ann:secret@host/db")
    assert "secret" not in str(caught.value)
    assert make_url("nosuch://ann:secret@host/db").password == "secret"


WRITER = """
import sys
from gpu_worker.broker.ledger import CellRecord, Ledger
ledger = Ledger.open(sys.argv[1])
for number in range(100_000):
    cell = CellRecord(cell=f"c{number}", lease="l", session="s", user="u", project="p", qos="q", node="n",
                      slots=("gpu-0",), kind="gpu", gpus=1, started_at_ms=0, ended_at_ms=number,
                      held_ms=1, ran_ms=1, outcome="returned")
    assert ledger.record_cell(cell, at_ms=number)
    print(number, flush=True)
"""


def test_a_broker_that_is_killed_loses_nothing_that_it_was_told_is_kept(path: Path) -> None:
    root = Path(__file__).parents[3]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, f"sqlite:///{path}"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) >= 30:
            break
    writer.send_signal(signal.SIGKILL)
    told = int([line, *writer.stdout.readlines()][-1])
    writer.stdout.close()
    writer.wait()
    with Ledger.open(f"sqlite:///{path}") as ledger:
        kept = len(ledger.cells(limit=1_000_000))
        assert kept in (told + 1, told + 2), "all that was told, and at most the one that was on its way"
        assert rows(path, "SELECT COUNT(*) FROM events") == [(kept,)]
        assert ledger.record_cell(record("c0"), at_ms=0) is False
        assert ledger.record_cell(record("next"), at_ms=0) is True
