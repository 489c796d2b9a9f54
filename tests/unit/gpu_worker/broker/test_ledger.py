"""The ledger on real databases: what it is told is kept once, in SQLite files and on a PostgreSQL server alike."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.errors import BadConfig
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.records import (
    ConfigChange,
    CreditRecord,
    HotRecord,
    LedgerEvent,
    OpenLease,
    Span,
)
from tests.unit.gpu_worker.broker.ledger_records import HOLDER, LEASE, record, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def sqlite_ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{path}") as ledger:
        yield ledger


def test_events_are_kept_in_order(ledger: Ledger, url: str) -> None:
    ledger.append("lease-granted", {"lease": "l1", "slots": ["gpu-0"]}, at_ms=1_700_000_000_000)
    ledger.append("lease-ended", {"lease": "l1"}, at_ms=1_700_000_000_000)
    kept = rows(url, "SELECT seq, at, kind, payload FROM events")
    assert [(seq, at, kind) for seq, at, kind, _ in kept] == [
        (1, 1_700_000_000_000, "lease-granted"),
        (2, 1_700_000_000_000, "lease-ended"),
    ]
    assert json.loads(kept[0][3]) == {"lease": "l1", "slots": ["gpu-0"]}


def test_a_cell_is_accounted_once_however_often_it_is_reported(ledger: Ledger, url: str) -> None:
    assert ledger.record_cell(record("c1"), at_ms=5_000) is True
    assert ledger.record_cell(record("c1", held_ms=9), at_ms=6_000) is False
    assert ledger.cells() == [record("c1")]
    assert rows(url, "SELECT kind, at FROM events") == [("cell-recorded", 5_000)]
    assert rows(url, "SELECT gpu_ms, slot_ms FROM cells") == [(5_980, 5_980)]


def test_what_was_said_first_of_a_cell_stays_within_one_call_too(sqlite_ledger: Ledger) -> None:
    assert sqlite_ledger.record([record("c1", label="first"), record("c1", label="second")], at_ms=0) == [
        record("c1", label="first")
    ]
    assert [cell.label for cell in sqlite_ledger.cells()] == ["first"]


def test_two_threads_that_report_the_same_cells_account_each_once(ledger: Ledger, url: str) -> None:
    accounted: list[bool] = []

    def report() -> None:
        accounted.extend([ledger.record_cell(record(f"c{number}"), at_ms=0) for number in range(50)])

    threads = [threading.Thread(target=report) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(accounted) == [False] * 50 + [True] * 50
    assert rows(url, "SELECT COUNT(*) FROM events") == [(50,)]


def test_writers_that_meet_in_any_order_wait_for_each_other_and_keep_each_fact_once(ledger: Ledger, url: str) -> None:
    facts = [
        *(record(f"c{number}", lease=f"l{number}") for number in range(20)),
        *(msgspec.structs.replace(LEASE, lease=f"l{number}") for number in range(20)),
        *(CreditRecord(credit=f"k{n}", project="ml", gpu_ms=n, at_ms=0, cause="lent") for n in range(20)),  # type: ignore[arg-type]
    ]
    new: list[object] = []
    begin = threading.Barrier(2)

    def tell(order: int) -> None:
        begin.wait()
        for start in range(0, 60, 6):
            new.extend(ledger.record(facts[::order][start : start + 30], at_ms=0))

    threads = [threading.Thread(target=tell, args=[order]) for order in (1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(new) == 60
    assert rows(url, "SELECT COUNT(*) FROM events") == [(60,)]
    assert ledger.balances() == {"ml": sum(range(20))}


def test_each_attempt_of_a_cell_is_a_row(ledger: Ledger) -> None:
    first = record(
        "c1", outcome=CellOutcome.RECLAIMED, refunded_ms=2_990, spans=(Span(1_010, 4_000, is_in_quota=False),)
    )
    second = record("c1", attempt=2, started_at_ms=9_000, ended_at_ms=11_990)
    assert ledger.record([second, first, first], at_ms=0) == [first, second]
    assert ledger.record([first, second], at_ms=0) == []
    assert [(row.attempt, row.refunded_ms) for row in ledger.cells()] == [(2, 0), (1, 2_990)]


def test_a_cell_is_in_quota_and_borrowed_by_its_spans_to_the_millisecond(ledger: Ledger, url: str) -> None:
    spans = (Span(1_000, 1_500, is_in_quota=False), Span(1_500, 3_990))
    assert ledger.record_cell(record("c1", spans=spans), at_ms=0)
    assert ledger.record_cell(record("c2"), at_ms=0)
    assert rows(url, "SELECT in_quota_ms, borrowed_ms FROM cells ORDER BY cell") == [(2_490, 500), (2_990, 0)]
    assert list(ledger.audit()) == []


def test_the_ledger_counts_attempts_one_for_each_lease_that_a_cell_ran_in(ledger: Ledger) -> None:
    runs = [record("c1", attempt=0, lease=lease) for lease in ("l1", "l2", "l1", "l1~5")]
    assert [(one.lease, one.attempt) for one in ledger.record_cells(runs[:1], at_ms=0)] == [("l1", 1)]  # type: ignore[attr-defined]
    assert [(one.lease, one.attempt) for one in ledger.record_cells(runs, at_ms=0)] == [("l2", 2)]  # type: ignore[attr-defined]
    assert ledger.has_run(runs[3].cell, runs[3].lease)
    assert not ledger.has_run(runs[3].cell, record("c1", lease="l3").lease)


def test_what_the_ledger_knows_of_open_leases_and_of_those_given_up(ledger: Ledger) -> None:
    lost = msgspec.structs.replace(LEASE, ended_at_ms=4_000, why=LeaseEnd.NODE_LOST)
    other = msgspec.structs.replace(LEASE, lease="m", granted_at_ms=1_000)
    ledger.record([lost, other], at_ms=0)
    ledger.record_cells([record("c1", attempt=0), record("c2", attempt=0, lease="m")], at_ms=0)
    assert ledger.open_leases() == [OpenLease(other, 4_000, ("c2",))]  # type: ignore[arg-type]
    assert ledger.given_up(since_ms=4_000) == [OpenLease(lost, 4_000, ("c1",))]  # type: ignore[arg-type]
    assert ledger.given_up(since_ms=4_001) == []
    assert [ledger.ended_ms(name) for name in ("l", "l~1", "m", "k")] == [4_000, 4_000, 0, 0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"spans": (Span(0, 2_989),)},
        {"spans": (Span(0, 1_000), Span(999, 2_989))},
        {"spans": (Span(0, 3_000), Span(3_000, 2_990))},
        {"spans": ()},
        {"refunded_ms": 2_991},
        {"refunded_ms": -1},
        {"attempt": -1},
        {"held_ms": -1},
    ],
)
def test_a_cell_that_does_not_add_up_is_refused_with_all_that_came_with_it(
    sqlite_ledger: Ledger, changes: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match="cell 'c2'"):
        sqlite_ledger.record([record("c1"), record("c2", **changes)], at_ms=0)
    assert sqlite_ledger.cells() == []


def test_hot_time_without_length_would_take_the_place_of_real_one_and_is_refused(sqlite_ledger: Ledger) -> None:
    hot = HotRecord(**HOLDER, started_at_ms=1_000, ended_at_ms=1_400)  # type: ignore[arg-type]
    for ended_at_ms in (999, 1_000):
        with pytest.raises(ValueError, match="no length"):
            sqlite_ledger.record([msgspec.structs.replace(hot, ended_at_ms=ended_at_ms)], at_ms=0)
    with pytest.raises(ValueError, match="before it is granted"):
        sqlite_ledger.record([msgspec.structs.replace(LEASE, ended_at_ms=999)], at_ms=0)
    assert sqlite_ledger.record([hot], at_ms=0) == [hot]


def test_the_end_of_a_lease_is_kept_once_and_stays_whatever_is_said_first(ledger: Ledger, url: str) -> None:
    end = msgspec.structs.replace(LEASE, ended_at_ms=9_000, why=LeaseEnd.LEFT)
    other = msgspec.structs.replace(end, lease="l2")
    assert ledger.record([LEASE], at_ms=0) == [LEASE]
    assert ledger.record([LEASE, end], at_ms=0) == [end]
    assert ledger.record([LEASE, end, msgspec.structs.replace(end, ended_at_ms=8_000)], at_ms=0) == []
    assert ledger.record([other], at_ms=0) == [other]
    assert ledger.record([msgspec.structs.replace(LEASE, lease="l2")], at_ms=0) == []
    ended = rows(url, "SELECT lease, granted_at_ms, ended_at_ms, why FROM leases ORDER BY lease")
    assert ended == [("l", 1_000, 9_000, "left"), ("l2", 1_000, 9_000, "left")]


def test_a_broker_that_starts_again_finds_the_leases_that_hold_and_until_when_they_are_accounted(
    ledger: Ledger,
) -> None:
    leases = [msgspec.structs.replace(LEASE, lease=f"l{number}") for number in range(3)]
    hot = HotRecord(**{**HOLDER, "lease": "l1"}, started_at_ms=1_000, ended_at_ms=1_400)
    ended = msgspec.structs.replace(leases[2], ended_at_ms=1_000)
    ledger.record([*leases, hot, record("c", lease="l1", held_ms=2_600, ran_ms=1), ended], at_ms=0)
    found = [(one.lease, one.accounted_until_ms) for one in ledger.open_leases()]
    assert found == [(leases[0], 1_000), (leases[1], 4_000)]


@pytest.mark.parametrize(
    ("spans", "sentence"),
    [
        ([(1_000, 4_000), (4_500, 9_000)], "The lease l did nothing known, or two things, from 4000 to 4500."),
        ([(1_000, 4_000), (3_999, 9_000)], "The lease l did nothing known, or two things, from 4000 to 3999."),
        ([(1_001, 9_000)], "The lease l did nothing known, or two things, from 1000 to 1001."),
        ([(1_000, 8_999)], "The lease l ended at 9000, and what it did at 8999."),
        ([(1_000, 9_001)], "The lease l ended at 9000, and what it did at 9001."),
        ([], "The lease l ended at 9000, and what it did at 1000."),
    ],
)
def test_an_audit_says_where_a_lease_is_not_what_it_did(
    sqlite_ledger: Ledger, spans: list[tuple[int, int]], sentence: str
) -> None:
    hot = [HotRecord(**HOLDER, started_at_ms=start, ended_at_ms=end) for start, end in spans]  # type: ignore[arg-type]
    other = msgspec.structs.replace(LEASE, lease="m", ended_at_ms=1_000)
    sqlite_ledger.record([*hot, msgspec.structs.replace(LEASE, ended_at_ms=9_000), other], at_ms=0)
    assert list(sqlite_ledger.audit()) == [sentence]


def test_an_audit_says_which_cell_is_not_its_spans(ledger: Ledger, url: str) -> None:
    ledger.record([record("c1"), record("c2")], at_ms=0)
    rows(
        url,
        "INSERT INTO lease_spans SELECT lease, cell, attempt, 9000, 9005, false, slots, kind, "
        '"user", project, qos, milli '
        "FROM lease_spans WHERE cell = 'c1'",
    )
    assert list(ledger.audit()) == ["The cell c1, attempt 1, has borrowed_ms 0, and its spans 5."]


def test_credits_add_up(ledger: Ledger) -> None:
    entries = [
        CreditRecord(credit="k1", project="ml", gpu_ms=700, at_ms=10, cause="lent", counterpart="bio", lease="l"),
        CreditRecord(credit="k2", project="bio", gpu_ms=-700, at_ms=10, cause="borrowed", counterpart="ml", lease="l"),
        CreditRecord(credit="k3", project="ml", gpu_ms=-(2**40), at_ms=20, cause="borrowed"),
    ]  # type: ignore[list-item]
    assert ledger.balances() == {}
    assert ledger.record(entries, at_ms=0) == entries
    assert ledger.record(entries, at_ms=0) == []
    assert ledger.balances() == {"bio": -700, "ml": 700 - 2**40}
    assert ledger.balances(until_ms=20) == {"bio": -700, "ml": 700}
    assert list(ledger.credits()) == [entries[0], entries[1], entries[2]]
    assert list(ledger.credits("bio")) == [entries[1]]  # type: ignore[arg-type]


def test_who_changed_what_is_kept_with_what_it_was(ledger: Ledger) -> None:
    change = ConfigChange(
        change="f1", at_ms=5, who="root", what="project ml", field="guaranteed", before=None, after={"gpus": 1.5}
    )  # type: ignore[arg-type]
    later = msgspec.structs.replace(change, change="f2", at_ms=6, before={"gpus": 1.5}, after=[1, "é", None])
    assert ledger.record([change, change, later], at_ms=7) == [change, later]
    assert ledger.record([change], at_ms=8) == []
    assert ledger.config_changes() == [later, change]


def test_a_happening_is_noted_once(ledger: Ledger, url: str) -> None:
    event = LedgerEvent(id="h1", kind="node-lost", payload={"node": "n1"}, at_ms=3)
    assert ledger.record([event, event], at_ms=9) == [event]
    assert ledger.record([event], at_ms=9) == []
    assert rows(url, "SELECT at, kind, payload FROM events") == [(3, "node-lost", '{"node":"n1"}')]


def test_a_name_with_a_nul_or_of_full_length_is_accounted_all_the_same(ledger: Ledger) -> None:
    sly = record("c\0", label="\0", project="p" * 256, qos="q" * 256)
    long = record("c" * 256)
    assert ledger.record([sly, long], at_ms=0) == [long, sly]
    assert ledger.record([sly, long], at_ms=0) == []
    assert {cell.cell for cell in ledger.cells()} == {"c\ufffd", "c" * 256}


FINAL = ["events", "cells", "lease_spans", "credits", "config_changes"]


@pytest.mark.parametrize("table", [*FINAL, "leases"])
def test_the_database_itself_refuses_to_change_or_delete_what_was_written(ledger: Ledger, url: str, table: str) -> None:
    end = msgspec.structs.replace(LEASE, ended_at_ms=9_000)
    credit = CreditRecord(credit="k1", project="ml", gpu_ms=7, at_ms=1, cause="lent")  # type: ignore[arg-type]
    change = ConfigChange(change="f1", at_ms=5, who="root", what="pool", field="slots", before=1, after=2)  # type: ignore[arg-type]
    ledger.record([record("c1"), end, credit, change], at_ms=0)
    column = {"credits": "cause", "config_changes": "field", "leases": "why"}.get(table, "kind")
    before = rows(url, f"SELECT * FROM {table}")
    assert before
    statements = [f"UPDATE {table} SET {column} = 'x'", f"DELETE FROM {table}"]
    if url.startswith("postgresql"):
        statements.append(f"TRUNCATE {table}")
    if url.startswith("sqlite") and table == "events":
        statements.append("REPLACE INTO events (seq, at, kind, payload) VALUES (1, 1, 'x', '{}')")
    for statement in statements:
        with pytest.raises(DBAPIError, match=f"the table {table} is only appended to"):
            rows(url, statement)
    assert rows(url, f"SELECT * FROM {table}") == before


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


def test_only_the_owner_may_read_the_files(sqlite_ledger: Ledger, path: Path) -> None:
    sqlite_ledger.append("x", {}, at_ms=0)
    files = sorted(path.parent.iterdir())
    assert path in files
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_ledger_that_was_readable_by_all_is_made_private(path: Path) -> None:
    path.touch()
    path.chmod(0o644)
    Ledger.open(f"sqlite:///{path}").close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_opens_again_with_all_that_was_in_it(url: str) -> None:
    for number in range(3):
        with Ledger.open(url) as ledger:
            assert len(ledger.cells()) == number
            ledger.record_cell(record(f"c{number}"), at_ms=0)


@pytest.mark.parametrize("address", ["nonsense", "nosuch://host/db", "sqlite:////nosuch/folder/ledger.db"])
def test_what_cannot_be_opened_is_a_clear_error(address: str) -> None:
    with pytest.raises(BadConfig, match="ledger"):
        Ledger.open(address)


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
from bulletin.codes import CellOutcome
from gpu_worker.broker.ledger import CellRecord, Ledger
ledger = Ledger.open(sys.argv[1])
for number in range(100_000):
    cell = CellRecord(cell=f"c{number}", lease="l", session="s", user="u", project="p", qos="q", node="n",
                      slots=("gpu-0",), kind="gpu", gpus=1, started_at_ms=0, ended_at_ms=number,
                      held_ms=1, ran_ms=1, outcome=CellOutcome.RETURNED)
    assert ledger.record_cell(cell, at_ms=number)
    print(number, flush=True)
"""


def test_a_broker_that_is_killed_loses_nothing_that_it_was_told_is_kept(path: Path) -> None:
    root = Path(__file__).parents[4]
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
        assert rows(f"sqlite:///{path}", "SELECT COUNT(*) FROM events") == [(kept,)]
        assert ledger.record_cell(record("c0"), at_ms=0) is False
        assert ledger.record_cell(record("next"), at_ms=0) is True
