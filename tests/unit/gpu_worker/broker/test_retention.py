"""What ended long ago goes, whole leases at a time, and nothing else; the database refuses to delete as before."""

import asyncio

import msgspec
import pytest
from sqlalchemy.exc import DBAPIError

from bulletin.codes import LeaseEnd
from bulletin.ids import CellId, LeaseId
from bulletin.units import DAY_MS
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.meter import Meter
from gpu_worker.broker.node_notes import NODES
from gpu_worker.broker.records import CreditRecord, LedgerEvent, Record
from gpu_worker.broker.retention import Retention, forget_some
from tests.unit.gpu_worker.broker.ledger_records import LEASE, record, rows

NOW_MS = 100 * DAY_MS
TABLES = ("events", "cells", "lease_spans", "leases")


def lease(name: str, began_ms: int, *, is_over: bool = True) -> list[Record]:
    """What is told of a lease with a cell and hot time after it."""
    granted = msgspec.structs.replace(LEASE, lease=LeaseId(name), granted_at_ms=began_ms)
    meter, cell = Meter(granted), CellId(f"cell-of-{name}")
    meter.begin(cell, is_in_quota=True, at_ms=began_ms)
    told: list[Record] = [granted, *meter.end(record(cell, lease=name), began_ms + 1_000)]
    return [*told, *meter.close(LeaseEnd.LEFT, began_ms + 2_000)] if is_over else told


def forget(ledger: Ledger, before_ms: int) -> int:
    total = 0
    while some := forget_some(ledger.database, before_ms):
        total += some
    return total


def test_old_leases_go_with_all_that_they_did_and_nothing_else_does(ledger: Ledger, url: str) -> None:
    credit = CreditRecord(credit="k1", project="ml", gpu_ms=7, at_ms=1, cause="lent")  # type: ignore[arg-type]
    old = [*lease("old", 0), *lease("older", DAY_MS), credit]
    ledger.append("node-drained", {"node": "n1"}, at_ms=5)
    ledger.record(old, at_ms=5)
    ledger.record([*lease("open", DAY_MS, is_over=False), *lease("young", 60 * DAY_MS)], at_ms=60 * DAY_MS)
    young = ledger.usage("user", since_ms=50 * DAY_MS)
    opened = ledger.open_leases()
    assert forget(ledger, 50 * DAY_MS) > 0
    assert {cell.lease for cell in ledger.cells()} == {"open", "young"}
    assert list(ledger.audit()) == []
    assert ledger.usage("user", since_ms=50 * DAY_MS) == young
    assert ledger.open_leases() == opened
    assert ledger.event_payloads("node-drained") == [{"node": "n1"}]
    assert ledger.balances() == {"ml": 7}
    assert not any("older" in str(row) for table in TABLES for row in rows(url, f"SELECT * FROM {table}"))
    assert forget(ledger, 50 * DAY_MS) == 0
    for table in TABLES:
        with pytest.raises(DBAPIError, match="only appended to"):
            rows(url, f"DELETE FROM {table}")


@pytest.mark.parametrize("keep_ms", [62 * DAY_MS, None])
def test_a_broker_forgets_what_is_older_than_it_is_told_to_keep(ledger: Ledger, keep_ms: int | None) -> None:
    ledger.record([*lease("old", 0), *lease("young", 60 * DAY_MS)], at_ms=0)
    gone = asyncio.run(Retention(ledger.database, keep_ms, lambda: NOW_MS).forget_old())
    assert bool(gone) == (keep_ms is not None)
    assert {cell.lease for cell in ledger.cells()} == ({"young"} if keep_ms else {"young", "old"})


def test_of_the_nodes_that_were_there_the_last_word_alone_stays_however_long_all_is_kept(ledger: Ledger) -> None:
    said = [
        LedgerEvent(id=f"{NODES}{at_ms:015}", kind="nodes-there", payload={"nodes": [f"n{at_ms}"]}, at_ms=at_ms)
        for at_ms in range(3)
    ]
    ledger.record(said, at_ms=3)
    ledger.append("node-drained", {"node": "n1"}, at_ms=5)
    assert asyncio.run(Retention(ledger.database, None, lambda: NOW_MS).forget_old()) == 2
    assert ledger.event_payloads("nodes-there") == [{"nodes": ["n2"]}]
    assert ledger.event_payloads("node-drained") == [{"node": "n1"}]
    assert ledger.last_event(NODES) == said[-1]
    assert asyncio.run(Retention(ledger.database, None, lambda: NOW_MS).forget_old()) == 0
