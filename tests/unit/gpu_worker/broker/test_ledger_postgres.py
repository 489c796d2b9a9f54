"""The ledger while its PostgreSQL server dies, comes back, or lets nobody in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bulletin.errors import BadConfig, LedgerAway
from gpu_worker.broker.ledger import Ledger
from tests.unit.gpu_worker.broker.ledger_records import record, rows
from tests.unit.gpu_worker.broker.postgres import PASSWORD, Server

WRITER = """
import os, sys
from bulletin.codes import CellOutcome
from bulletin.errors import LedgerAway
from gpu_worker.broker.ledger import CellRecord, Ledger
ledger = Ledger.open(os.environ["LEDGER"])
try:
    for number in range(1_000_000):
        cell = CellRecord(cell=f"c{number}", lease="l", session="s", user="u", project="p", qos="q", node="n",
                          slots=("gpu-0",), kind="gpu", gpus=1, started_at_ms=0, ended_at_ms=number + 1,
                          held_ms=1, ran_ms=1, outcome=CellOutcome.RETURNED)
        assert ledger.record_cell(cell, at_ms=number)
        print(number, flush=True)
except LedgerAway as error:
    print(error, flush=True)
    sys.stdin.readline()  # the server is back
    print(ledger.record_cell(cell, at_ms=number), flush=True)
"""


def test_a_server_that_is_killed_amid_writes_has_kept_all_that_it_said_and_the_ledger_finds_it_again(
    own_postgres: Server,
) -> None:
    root = Path(__file__).parents[4]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "LEDGER": own_postgres.url(), "PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
    )
    assert writer.stdout is not None
    assert writer.stdin is not None
    for line in writer.stdout:
        if int(line) >= 30:
            break
    own_postgres.kill()
    told = int(line)
    while (line := writer.stdout.readline().strip()).isdigit():
        told = int(line)
    assert line.startswith("The ledger at postgresql+psycopg://bulletin:***@/postgres"), line
    assert PASSWORD not in line
    own_postgres.start()
    writer.stdin.write("\n")
    writer.stdin.flush()
    was_new = writer.stdout.readline().strip()
    assert writer.wait() == 0
    writer.stdin.close()
    writer.stdout.close()
    with Ledger.open(own_postgres.url()) as ledger:
        kept = [cell.cell for cell in ledger.cells(limit=1_000_000)]
        assert kept == [f"c{number}" for number in range(told + 1, -1, -1)], "all that was told, and the one repeated"
        assert was_new in ("True", "False"), "whether it had been kept before the server could say so"
        assert list(ledger.audit()) == []
        (usage,) = ledger.usage("user")
        assert (usage.cells, usage.slot_ms) == (told + 2, told + 2)
    assert rows(own_postgres.url(), "SELECT COUNT(*) FROM events") == [(told + 2,)]


def test_a_ledger_whose_server_comes_back_needs_nothing_but_another_try(own_postgres: Server) -> None:
    with Ledger.open(own_postgres.url()) as ledger:
        ledger.record_cell(record("c1"), at_ms=0)
        own_postgres.kill()
        for ask in (ledger.cells, lambda: ledger.record([record("c2")], at_ms=0), lambda: ledger.usage("user")):
            with pytest.raises(LedgerAway) as caught:
                ask()
            assert PASSWORD not in str(caught.value)
            assert caught.value.retryable
        own_postgres.start()
        assert ledger.record_cell(record("c1"), at_ms=0) is False
        assert ledger.record_cell(record("c2"), at_ms=0) is True
        own_postgres.kill()
        own_postgres.start()
        assert [cell.cell for cell in ledger.cells()] == ["c1", "c2"], "nobody had asked meanwhile, and nobody notices"


def test_a_server_that_does_not_run_is_waited_for_and_one_that_turns_us_down_is_a_matter_of_configuration(
    postgres: Server, tmp_path: Path
) -> None:
    with pytest.raises(LedgerAway, match="does not answer"):
        Ledger.open(f"postgresql://ann:{PASSWORD}@/pool?host={tmp_path}")
    with pytest.raises(BadConfig, match="nosuch"):
        Ledger.open(postgres.url("nosuch"))
    with pytest.raises(BadConfig, match="password authentication failed"):
        Ledger.open(postgres.url(password="wr0ng"))


def test_a_server_that_turns_an_open_ledger_down_is_waited_for(postgres: Server) -> None:
    postgres.make_database("locked")
    rows(postgres.url(), f"CREATE ROLE guest LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
    url = postgres.url("locked").replace("//bulletin:", "//guest:")
    change = "ALTER ROLE guest PASSWORD '{}'"
    with Ledger.open(url) as ledger:
        ledger.record_cell(record("c1"), at_ms=0)
        rows(postgres.url(), change.format("another"))
        rows(postgres.url(), "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'guest'")
        with pytest.raises(LedgerAway, match="password authentication failed"):
            ledger.cells()
        with pytest.raises(BadConfig, match="password authentication failed"):
            Ledger.open(url)
        rows(postgres.url(), change.format(PASSWORD))
        assert ledger.record_cell(record("c2"), at_ms=0) is True


def test_a_server_without_room_is_waited_for(postgres: Server) -> None:
    postgres.make_database("full")
    rows(postgres.url(), f"CREATE ROLE crowd LOGIN CONNECTION LIMIT 0 PASSWORD '{PASSWORD}'")
    with pytest.raises(LedgerAway, match="too many connections"):
        Ledger.open(postgres.url("full").replace("//bulletin:", "//crowd:"))


@pytest.mark.parametrize("database", ["postgres", "nosuch"])
@pytest.mark.parametrize("password", [PASSWORD, "wr0ng-one"])
def test_no_password_is_in_any_message_or_in_what_led_to_it(postgres: Server, database: str, password: str) -> None:
    secret = f"{password}-x"
    for url in (
        postgres.url(database, secret),
        f"postgresql://bulletin@/{database}?host={postgres.folder}&password={secret}",
        f"postgresql://bulletin:{secret}@/{database}?host={postgres.folder}/nosuch",
        f"nosuch://bulletin:{secret}@host/{database}",
        f"bulletin:{secret}@host/{database}",
    ):
        with pytest.raises((BadConfig, LedgerAway)) as caught:
            Ledger.open(url)
        error: BaseException | None = caught.value
        while error is not None:
            assert secret not in str(error)
            error = error.__cause__
        assert secret not in repr(caught.value)


def test_a_plain_address_is_reached_through_psycopg(postgres: Server) -> None:
    url = postgres.make_database("plain")
    with Ledger.open(url.replace("postgresql+psycopg", "postgresql")) as ledger:
        assert ledger.cells() == []
