"""What the ledger says of cells, to the row: whose label it has, how long it was held, how it ended."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from bulletin.codes import CellOutcome
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.records import CellRecord
from gpu_worker.broker.short_cells import OWN_ROWS
from tests.integration.conftest import Notebook, PoolProcess, until


def cells_of(pool: PoolProcess) -> list[CellRecord]:
    """The cells that the ledger has, the first one first."""
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        assert list(ledger.audit()) == []
        return ledger.cells()[::-1]


def test_each_cell_of_a_hot_session_has_its_own_label(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    for options in ("--label first", "--label 'second one'", ""):
        output = notebook.run(f"%%gpu {options}\nprint('ran')")
        assert output.stream() == "ran\n", output.shown
    cells = until(lambda: found if len(found := cells_of(pool)) == 3 else None, "three cells in the ledger")
    assert len({cell.lease for cell in cells}) == 1
    assert [cell.label for cell in cells] == ["first", "second one", ""]


def test_many_short_cells_are_few_rows_and_each_counts_once_though_the_broker_is_killed(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    many = f"for number in range({3 * OWN_ROWS}):\n    with gpu:\n        seen = number"
    assert notebook.run(many).error is None
    pool.part("broker").send_signal(signal.SIGKILL)  # some of them are held back, and their agent still has them
    assert notebook.run(many).error is None
    notebook.run("%gpu off")
    until(lambda: sum(cell.runs for cell in cells_of(pool)) == 6 * OWN_ROWS, "all of them in the ledger")
    cells = cells_of(pool)
    assert len(cells) < 6 * OWN_ROWS
    assert max(cell.runs for cell in cells) > 1
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        assert [(row.cells, row.ran_ms) for row in ledger.usage("user")] == [
            (6 * OWN_ROWS, sum(cell.ran_ms for cell in cells))
        ]


def test_cells_are_held_for_as_long_as_their_agent_says_while_the_broker_stands_still(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    began_s = time.monotonic()
    first = notebook.start("%%gpu --label first\nprint('started')\ninput()")
    notebook.wait_until("started")
    until(lambda: [slot.state for slot in pool.picture().slots] == ["busy"], "the broker to hear of it")
    broker = pool.part("broker")
    broker.send_signal(signal.SIGSTOP)
    try:
        notebook.answer("go")
        notebook.collect(first)
        for label in ("second", "third"):
            output = notebook.run(f"%%gpu --label {label}\nimport time\ntime.sleep(1.5)")
            assert output.error is None, output.shown
    finally:
        broker.send_signal(signal.SIGCONT)
    over_s = time.monotonic()
    cells = until(lambda: found if len(found := cells_of(pool)) == 3 else None, "three cells in the ledger")
    held_ms = {cell.label: cell.held_ms for cell in cells}
    assert held_ms["second"] >= 1_500
    assert held_ms["third"] >= 1_500
    assert held_ms["first"] <= (over_s - began_s) * 1_000 - 2 * 1_500, "the others ran after it"


def test_a_cell_whose_kernel_died_while_it_was_sent_is_not_charged_for_the_waiting(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    away_s = 3
    pool = start_pool("--slots", "1", f"--Pool.away={away_s}")
    notebook = open_notebook(pool)
    notebook.run("%%gpu\n1")
    executor = pool.part("executor")
    executor.send_signal(signal.SIGSTOP)  # it takes nothing in
    notebook.run("import numpy\nlarge = numpy.ones(100_000_000)")
    notebook.start("%%gpu --label large\nlarge[0] = 2")
    until(lambda: [slot.state for slot in pool.picture().slots] == ["busy"], "the cell to be under way")
    os.kill(notebook.manager.provisioner.process.pid, signal.SIGKILL)  # type: ignore[union-attr]
    until(lambda: [slot.state for slot in pool.picture().slots] == ["free"], "the session to be ended")
    cells = until(lambda: found if len(found := cells_of(pool)) == 2 else None, "two cells in the ledger")
    assert (cells[1].label, cells[1].outcome, cells[1].ran_ms) == ("large", CellOutcome.KERNEL_GONE, 0)
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        *_, last = ledger.event_payloads("hot-recorded")
    assert last["started_at_ms"] == cells[1].ended_at_ms
    assert last["ended_at_ms"] - last["started_at_ms"] >= away_s * 1_000, "the agent waited for the kernel"


ENDLESS = "print('started')\nimport time\nwhile True: time.sleep(0.1)"


def test_a_cell_that_was_lost_with_its_agent_is_in_the_ledger_as_soon_as_another_agent_has_come(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    notebook.run("%%gpu --label hot\n1")
    began_s = time.monotonic()

    def kill() -> None:
        until(lambda: [slot.state for slot in pool.picture().slots] == ["busy"], "the broker to hear of it")
        pool.part("agent").send_signal(signal.SIGKILL)

    output = notebook.run_until(f"%%gpu --label lost\n{ENDLESS}", shows="started", then=kill)
    lost_s = time.monotonic()
    assert output.error is not None
    assert "restarted" in output.error["evalue"]
    assert notebook.run("%%gpu --label next\nprint('next')").stream() == "next\n"
    until(lambda: cells_of(pool)[-1].label == "next", "the next cell in the ledger")
    cells = cells_of(pool)
    assert [cell.outcome for cell in cells] == [CellOutcome.RETURNED, CellOutcome.NOT_HELD, CellOutcome.RETURNED]
    assert 0 < cells[1].held_ms <= (lost_s - began_s) * 1_000


def test_a_cell_that_was_lost_with_the_whole_pool_is_in_the_ledger(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    pool = start_pool("--slots", "1")
    url = f"sqlite:///{pool.folder / 'ledger.sqlite'}"
    notebook = open_notebook(pool)
    notebook.start_until(f"%%gpu\n{ENDLESS}", shows="started")
    with Ledger.open(url, upgrade=False) as ledger:
        until(lambda: ledger.event_payloads("cell-runs"), "the cell to be noted")
    pool.stop()
    again = PoolProcess(pool.folder, "--slots", "1", "--Pool.preload=numpy")
    try:
        (cell,) = until(lambda: cells_of(again), "the lost cell in the ledger")
    finally:
        again.stop()
    assert cell.outcome is CellOutcome.NOT_HELD
    assert cell.held_ms >= 1_000, "it was noted when it had run for a second, and ran until the pool ended"


def test_a_lease_that_is_new_when_the_broker_is_back_is_kept_however_often_the_agent_says_who_it_is(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    """The agent's pings wait for the broker; each is answered with Unknown, and each of those with a registration."""
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    notebook.run("%%gpu\n1")
    notebook.run("%gpu stop")
    pool.process.send_signal(signal.SIGSTOP)  # nobody starts the broker again for now
    try:
        pool.part("broker").send_signal(signal.SIGKILL)
        cell = notebook.start_until("%%gpu\nprint('ran')", shows="does not answer")
    finally:
        pool.process.send_signal(signal.SIGCONT)
    output = notebook.collect(cell)
    assert "ran" in output.stream(), output.shown
    until(lambda: len(cells_of(pool)) == 2, "two cells in the ledger")
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        assert len(ledger.event_payloads("lease-granted")) == 2
