"""Many short cells are few rows, and the ledger adds up as if each had its own."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bulletin.codes import CellOutcome, LeaseEnd
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.meter import Meter
from gpu_worker.broker.metering import Metering
from gpu_worker.broker.records import CellRecord, Record
from gpu_worker.broker.short_cells import MOST, OWN_ROWS, ShortCells, ToWrite
from gpu_worker.scheduler.machine import Scheduler
from tests.unit.gpu_worker.broker.ledger_records import LEASE, record

FLOOD = 2_500


async def nothing() -> None:
    """What an agent hears, or not."""


def told(lengths_ms: list[tuple[int, int, bool, CellOutcome]], *, is_over: bool = True) -> list[list[Record]]:
    """What is told of a lease with cells of these lengths after these pauses, in quota or borrowed, cell by cell."""
    meter, at_ms, said = Meter(LEASE), LEASE.granted_at_ms, list[list[Record]]([[LEASE]])
    for number, (pause_ms, length_ms, is_in_quota, outcome) in enumerate(lengths_ms):
        name = f"c{number}"
        at_ms += pause_ms
        meter.begin(name, is_in_quota=is_in_quota, at_ms=at_ms)  # type: ignore[arg-type]
        at_ms += length_ms
        plain = record(name, ran_ms=length_ms, outcome=outcome, bytes_sent=number, lease="l")
        said.append([*meter.end(plain, at_ms, is_refunded=outcome is CellOutcome.RECLAIMED)])
    return [*said, [*meter.close(LeaseEnd.LEFT, at_ms + 10)]] if is_over else said


def written(said: list[list[Record]]) -> list[ToWrite]:
    """What comes of it, where time goes on as the records say."""
    short_cells, found, now_ms = ShortCells(), list[ToWrite](), 0
    for records in said:
        now_ms = max([now_ms, *(getattr(one, "ended_at_ms", None) or 0 for one in records)])
        found += short_cells.take(records, nothing, now_ms)
    return [*found, *short_cells.close_all()]


def sums(file: Path, all_records: list[Record]) -> tuple[object, ...]:
    """What people ask of a ledger, which has no rows, once it has these."""
    with Ledger.open(f"sqlite:///{file}") as ledger:
        ledger.record(all_records, 0)
        assert list(ledger.audit()) == []
        found = ledger.cells(limit=10_000)
        by_day = ledger.usage("user", period="day")
        charged = ledger.charged(0, 10**9)
        return by_day, charged, ledger.past_use(0), sum(one.runs for one in found), sum(one.bytes_sent for one in found)


lengths = st.tuples(
    st.integers(0, 40) | st.integers(0, 1_500),
    st.integers(0, 40) | st.integers(0, 1_500),
    st.booleans(),
    st.sampled_from([*[CellOutcome.RETURNED] * 3, CellOutcome.RAISED, CellOutcome.RECLAIMED]),
)


@given(st.lists(lengths, min_size=OWN_ROWS, max_size=80))
def test_what_is_charged_is_the_same_whether_cells_have_rows_of_their_own(
    tmp_path_factory: pytest.TempPathFactory,
    sqlite_template: Path,
    cells: list[tuple[int, int, bool, CellOutcome]],
) -> None:
    folder = tmp_path_factory.mktemp("ledgers")
    said = told(cells)
    plain = [record for records in said for record in records]
    merged = [record for one in written(said) for record in one.records]
    files = (shutil.copy(sqlite_template, folder / name) for name in ("merged.sqlite", "plain.sqlite"))
    assert sums(next(files), merged) == sums(next(files), plain)


def flood(outcomes: list[CellOutcome]) -> list[list[Record]]:
    return told([(1, 1, True, outcomes[number % len(outcomes)]) for number in range(FLOOD)])


@pytest.mark.parametrize(
    "outcomes",
    [[CellOutcome.RETURNED], [CellOutcome.RETURNED, CellOutcome.RAISED, CellOutcome.INTERRUPTED]],
    ids=["alike", "alternating"],
)
def test_a_flood_of_cells_is_a_few_rows_and_the_first_ones_have_their_own(outcomes: list[CellOutcome]) -> None:
    rows = [one for write in written(flood(outcomes)) for one in write.records if isinstance(one, CellRecord)]
    assert [row.runs for row in rows[:OWN_ROWS]] == [1] * OWN_ROWS
    assert sum(row.runs for row in rows) == FLOOD
    assert len(rows) <= OWN_ROWS + FLOOD // MOST + 2


def test_agents_hear_of_each_cell_when_its_row_is_there() -> None:
    found = written(flood([CellOutcome.RETURNED]))
    assert sum(len(one.then) for one in found) == FLOOD + 2  # the lease's beginning and its end, too
    for one in found:
        runs = sum(row.runs for row in one.records if isinstance(row, CellRecord))
        assert len(one.then) == runs or not runs


def test_what_is_said_again_is_answered_after_what_was_held_back() -> None:
    short_cells = ShortCells()
    for number, records in enumerate(flood([CellOutcome.RETURNED])[: OWN_ROWS + 5]):
        list(short_cells.take(records, nothing, number))
    held_back, again = short_cells.take([], nothing, 100)
    assert [row.runs for row in held_back.records if isinstance(row, CellRecord)] == [4]
    assert again == ToWrite([], (nothing,))


def test_a_broker_that_starts_again_knows_each_cell_of_a_row(tmp_path: Path) -> None:
    said = told([(1, 1, True, CellOutcome.RETURNED)] * (OWN_ROWS + 10), is_over=False)
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        ledger.record([record for one in written(said) for record in one.records], 0)
        metering = Metering(Scheduler().state, ledger.open_leases(), [], now_ms=10_000)
        ended = [one for records in said for one in records if isinstance(one, CellRecord)]
        assert [metering.end_cell(one, 0, 10_000) for one in ended] == [[]] * len(ended)
        new = record("new", lease="l", held_ms=5)
        assert metering.end_cell(new, 0, 10_000)
        assert all(ledger.has_run(one.cell, one.lease) for one in ended)
        assert not ledger.has_run(new.cell, new.lease)
        assert [(row["cell"], row["runs"]) for row in ledger.about(ended[-1].cell)] == [(f"c{OWN_ROWS}", 10)]
