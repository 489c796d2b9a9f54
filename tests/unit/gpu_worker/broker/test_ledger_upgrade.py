"""The ledger's tables over the years: every step keeps what was there, and none leads back."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from bulletin.codes import CellOutcome
from bulletin.errors import BadConfig
from gpu_worker.broker import migrations
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.tables import metadata
from tests.unit.gpu_worker.broker.ledger_records import record, rows

HEAD = "0010"
OLD_CELL = (
    "INSERT INTO cells VALUES (:cell, 'l', 's', 'ann', 'ml', 'interactive', 'n1', '[\"gpu-0\",\"gpu-1\"]', 'gpu', 2, "
    "1000, 1000 + :held, :held, :held, 2 * :held, 2 * :held, 'returned', NULL, 0.5, 1, 2, 'é')"
)


def at_version(url: str, version: str, *statements: str, **values: object) -> None:
    """Bring an empty database to a version, as the Bulletin of then did, and run statements there."""

    def run(connection: Connection) -> None:
        command.upgrade(config_of(connection), version)
        for statement in statements:
            connection.execute(text(statement), values)

    transact(url, run)


def downgrade(url: str, version: str) -> None:
    def run(connection: Connection) -> None:
        command.downgrade(config_of(connection), version)

    transact(url, run)


def config_of(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def transact(url: str, run) -> None:  # type: ignore[no-untyped-def]
    engine = create_engine(url)
    if url.startswith("sqlite"):
        event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            run(connection)
    finally:
        engine.dispose()


def test_the_steps_lead_exactly_to_the_tables(empty_url: str) -> None:
    Ledger.open(empty_url).close()

    def compare(connection: Connection) -> None:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
        keys = connection.dialect.get_pk_constraint(connection, "cells")["constrained_columns"]
        assert keys == ["cell", "attempt"], "a key is not compared"

    transact(empty_url, compare)


def test_what_the_first_version_wrote_is_kept_and_adds_up(empty_url: str) -> None:
    note = "INSERT INTO events (at, kind, payload) VALUES (7, 'lease-granted', '{}')"
    at_version(empty_url, "0001", note, OLD_CELL, cell="c1", held=2_990)
    at_version(empty_url, "0001", OLD_CELL, cell="c2", held=0)
    with Ledger.open(empty_url) as ledger:
        by_name = {cell.cell: cell for cell in ledger.cells()}
        assert by_name["c1"] == record(
            "c1", ended_at_ms=3_990, ran_ms=2_990, mean_utilization=0.5, bytes_sent=1, bytes_returned=2, label="é"
        )
        assert (by_name["c1"].in_quota_ms, by_name["c1"].borrowed_ms, by_name["c1"].attempt) == (2_990, 0, 1)
        assert list(ledger.audit()) == []
        (usage,) = ledger.usage("user")
        assert (usage.cells, usage.in_quota_ms, usage.borrowed_ms, usage.refunded_ms) == (2, 5_980, 0, 0)
        assert ledger.record([record("c1"), record("c2"), record("c3")], at_ms=0) == [record("c3")]
    assert rows(empty_url, "SELECT seq, at, kind FROM events ORDER BY seq")[0] == (1, 7, "lease-granted")
    spans = "SELECT in_quota_ms, started_at_ms, ended_at_ms FROM cells JOIN lease_spans USING "
    spans += "(cell, started_at_ms, ended_at_ms)"
    assert rows(empty_url, spans) == [(2_990, 1_000, 3_990)]
    with pytest.raises(DBAPIError, match="only appended to"):
        rows(empty_url, "DELETE FROM cells")


def test_a_lease_that_is_open_while_the_tables_change_goes_on_with_whole_slots(empty_url: str) -> None:
    lease = (
        "INSERT INTO leases VALUES ('l', 's', 'ann', 'ml', 'interactive', 'n1', '[\"gpu-0\",\"gpu-1\"]', 'gpu', 1000, "
        "NULL, '')"
    )
    hot = (
        "INSERT INTO lease_spans VALUES ('l', '', 0, 1000, 1500, true, 2, 'gpu', 'ann', 'ml', 'interactive')",
        "INSERT INTO credits VALUES ('k', 'ml', 7, 1, 'lent', NULL, NULL)",
    )
    at_version(empty_url, "0002", lease, *hot)
    with Ledger.open(empty_url) as ledger:
        (one,) = ledger.open_leases()
        assert (one.lease.milli, one.lease.slots_milli, one.accounted_until_ms) == (None, 2_000, 1_500)
        assert ledger.usage("user")[0].hot_ms == 1_000
        assert ledger.balances() == {"ml": 7}
        assert [entry.own_users for entry in ledger.credits()] == [False]


def test_what_older_versions_called_the_end_of_a_cell_or_a_lease_has_the_one_word_for_it_now(empty_url: str) -> None:
    cell = (
        "INSERT INTO cells VALUES (:name, 'l', 's', 'ann', 'ml', 'interactive', 'n1', '[]', 'cpu', 0, 0, 0, 0, 0, 0, "
        '0, :word, NULL, NULL, 0, 0, \'"outcome":"died"\', 1, 0, 0, 0, NULL)'
    )
    lease = (
        "INSERT INTO leases VALUES (:name, 's', 'ann', 'ml', 'interactive', 'n1', '[]', 'cpu', 0, :ended, :word, NULL)"
    )
    event = "INSERT INTO events (at, kind, payload) VALUES (1, :kind, :payload)"
    at_version(empty_url, "0004")
    for name, word in {"a": "died", "b": "session-over", "c": "unknown", "d": "returned", "e": "node-lost"}.items():
        at_version(empty_url, "0004", cell, name=name, word=word)
    for name, word in {"a": "session-over", "b": "unknown", "c": "", "d": "reclaimed"}.items():
        at_version(empty_url, "0004", lease, name=name, word=word, ended=5)
    at_version(empty_url, "0004", lease, name="e", word="", ended=None)
    labelled = r'{"cell":"a","outcome":"died","label":"\"outcome\":\"died\""}'
    for kind, payload in (
        ("cell-recorded", labelled),
        ("lease-ended", '{"lease":"c","why":""}'),
        ("lease-granted", '{"lease":"c","why":""}'),
        ("policy", '{"outcome":"died"}'),
    ):
        at_version(empty_url, "0004", event, kind=kind, payload=payload)

    with Ledger.open(empty_url) as ledger:
        assert {cell.cell: cell.outcome for cell in ledger.cells()} == {
            "a": CellOutcome.EXECUTOR_DIED,
            "b": CellOutcome.EXECUTOR_DIED,
            "c": CellOutcome.NO_SUCH_LEASE,
            "d": CellOutcome.RETURNED,
            "e": CellOutcome.NODE_LOST,
        }
        assert {cell.label for cell in ledger.cells()} == {'"outcome":"died"'}
        (held,) = ledger.open_leases()
        assert (held.lease.lease, held.lease.why) == ("e", None)
    assert rows(empty_url, "SELECT lease, why FROM leases ORDER BY lease") == [
        ("a", "executor-died"),
        ("b", "no-such-lease"),
        ("c", "unrecognized"),
        ("d", "reclaimed"),
        ("e", ""),
    ]
    assert rows(empty_url, "SELECT kind, payload FROM events ORDER BY seq") == [
        ("cell-recorded", labelled.replace(':"died"', ':"executor-died"')),
        ("lease-ended", '{"lease":"c","why":"unrecognized"}'),
        ("lease-granted", '{"lease":"c","why":""}'),
        ("policy", '{"outcome":"died"}'),
    ]
    for change in ("UPDATE cells SET outcome = 'x'", "UPDATE leases SET why = 'x'", "UPDATE events SET kind = 'x'"):
        with pytest.raises(DBAPIError, match="only appended to"):
            rows(empty_url, change)


def test_an_upgrade_that_fails_changes_nothing(empty_url: str) -> None:
    at_version(empty_url, "0001", OLD_CELL, "CREATE TABLE credits (mine INTEGER)", cell="c1", held=1)
    with pytest.raises(BadConfig, match="credits"):
        Ledger.open(empty_url)
    assert rows(empty_url, "SELECT version_num FROM alembic_version") == [("0001",)]
    assert rows(empty_url, "SELECT cell FROM cells") == [("c1",)]
    rows(empty_url, "DROP TABLE credits")
    with Ledger.open(empty_url) as ledger:
        assert [cell.cell for cell in ledger.cells()] == ["c1"]


@pytest.mark.parametrize("to", ["0001", "base"])
def test_no_step_leads_back(empty_url: str, to: str) -> None:
    with Ledger.open(empty_url) as ledger:
        ledger.record_cell(record("c1"), at_ms=0)

    with pytest.raises(BadConfig, match=r"only goes forward.* the backup of the database from before the upgrade"):
        downgrade(empty_url, to)
    assert rows(empty_url, "SELECT version_num FROM alembic_version") == [(HEAD,)]
    with Ledger.open(empty_url) as ledger:
        assert ledger.cells() == [record("c1")]


def test_the_first_step_does_not_lead_back_either(empty_url: str) -> None:
    at_version(empty_url, "0001", OLD_CELL, cell="c1", held=1)

    with pytest.raises(BadConfig, match="only goes forward"):
        downgrade(empty_url, "base")
    assert rows(empty_url, "SELECT cell FROM cells") == [("c1",)]


def test_a_database_of_a_newer_bulletin_is_left_alone_with_a_clear_error(url: str) -> None:
    rows(url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(BadConfig, match=r" has version 9999, .* a newer one wrote it\. Upgrade Bulletin"):
        Ledger.open(url)
    assert rows(url, "SELECT version_num FROM alembic_version") == [("9999",)]


def test_who_only_reads_makes_no_ledger_and_upgrades_none(empty_url: str, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"no ledger|older Bulletin"):
        Ledger.open(empty_url, upgrade=False)
    assert list(tmp_path.iterdir()) == []
    at_version(empty_url, "0001")
    with pytest.raises(BadConfig, match=r"older Bulletin\. Start the pool once"):
        Ledger.open(empty_url, upgrade=False)
    assert rows(empty_url, "SELECT version_num FROM alembic_version") == [("0001",)]
    Ledger.open(empty_url).close()
    with Ledger.open(empty_url, upgrade=False) as ledger:
        assert ledger.cells() == []


def test_who_opens_a_ledger_that_is_up_to_date_waits_for_no_migrations(empty_url: str) -> None:
    Ledger.open(empty_url).close()
    opens = (
        "import sys; from gpu_worker.broker.ledger import Ledger; Ledger.open(sys.argv[1]).close(); print(*sys.modules)"
    )
    began = subprocess.run([sys.executable, "-c", opens, empty_url], capture_output=True, text=True, check=True)
    assert "alembic" not in began.stdout.split()


def test_brokers_that_open_a_new_ledger_at_once_all_find_it_made(empty_url: str) -> None:
    begin, opened = threading.Barrier(6), []

    def open_() -> None:
        begin.wait()
        with Ledger.open(empty_url) as ledger:
            opened.append(ledger.cells())

    threads = [threading.Thread(target=open_) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [[]] * 6
    assert rows(empty_url, "SELECT version_num FROM alembic_version") == [(HEAD,)]


def test_what_was_held_before_there_were_prices_was_charged_as_it_was_held(empty_url: str) -> None:
    cell = (
        "INSERT INTO cells VALUES (:name, 'l', 's', 'ann', 'ml', 'interactive', 'n1', '[\"gpu-0\"]', 'gpu', 1, 0, "
        "1000, 1000, 1000, 1000, 1000, 'returned', NULL, NULL, 0, 0, '', 1, 1000, 0, 0, :milli)"
    )
    for name, milli in {"a": None, "b": 1000, "c": 125}.items():
        at_version(empty_url, "0005", cell, name=name, milli=milli)
    with Ledger.open(empty_url) as ledger:
        assert {one.cell: (one.charged_milli, one.charged) for one in ledger.cells()} == {
            "a": (None, 1000),
            "b": (1000, 1000),
            "c": (125, 125),
        }
        assert not ledger.has_prices()
    with pytest.raises(DBAPIError, match="only appended to"):
        rows(empty_url, "UPDATE cells SET charged_milli = 1")
