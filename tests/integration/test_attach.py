"""A notebook is killed in the middle of a cell: the cell goes on, and another notebook of the user has all of it."""

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, PoolProcess, until
from tests.integration.long_cells import BEFORE, LONG, ROUNDS, VALUES, id_when, listed, shown, start


def kill(notebook: Notebook) -> None:
    process = notebook.manager.provisioner.process  # type: ignore[union-attr]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_running_cell_is_joined_by_another_notebook(
    number: int, pool: PoolProcess, open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    first, second = open_notebook(pool), open_notebook(pool)
    draw = random.Random(os.urandom(8) if ROUNDS > 3 else number)
    gate = start(first, tmp_path, stop=draw.randrange(1, 300))
    kill(first)
    name = id_when(second, "running")
    joined = second.run_until(f"%gpu attach {name}", shows="started", then=gate.touch)
    assert joined.error is None, joined.shown
    assert second.value(VALUES) == "(20480000, {'n': 2}, 8, True, False)"
    assert second.value("_") == "(20480000, {'n': 2}, 8, True, False)"
    third = open_notebook(pool)
    third.run(BEFORE.format(marker=str(tmp_path / "over"), gate=str(gate), stop=0))
    undisturbed = third.run(LONG)
    assert shown(joined) == shown(undisturbed)
    assert second.run("%%gpu\nprint(doubled(4))").stream() == "10\n"
    assert "of yours that this notebook could join." in listed(second)


def test_a_finished_cell_outlives_its_notebook_and_its_executor(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    """Somebody else has its slot by then."""
    pool = start_pool("--slots", "1", "--Pool.away=2")
    first, second = open_notebook(pool), open_notebook(pool)
    gate = start(first, tmp_path)
    kill(first)
    gate.touch()
    executor = pool.part("executor")
    other = second.run("%%gpu\nprint('mine')")
    assert other.stream() == "mine\n"
    assert not executor.is_running()
    name = id_when(second, "finished")
    joined = second.run(f"%gpu attach {name}")
    assert joined.error is None, joined.shown
    assert joined.stream().startswith("started\n0 xxx")
    assert second.value(VALUES) == "(20480000, {'n': 2}, 8, True, False)"


def test_a_cell_whose_notebook_is_there_is_not_handed_over(
    pool: PoolProcess, open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    first, second = open_notebook(pool), open_notebook(pool)
    gate = start(first, tmp_path)
    name = id_when(second, "in a notebook that is there")
    refused = second.run(f"%gpu attach {name}")
    assert refused.error is not None
    assert "is still there" in refused.error["evalue"]
    gate.touch()
    until(lambda: (tmp_path / "over").exists(), "the cell to end")
    assert first.value("table") == "{'n': 2}"


def test_a_cell_that_shall_not_outlive_its_notebook_is_ended(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    pool = start_pool("--slots", "1", "--Pool.away=2")
    first = open_notebook(pool)
    first.run("%config BulletinMagics.on_restart = 'cancel'")
    start(first, tmp_path)
    executor = pool.part("executor")
    kill(first)
    until(lambda: not executor.is_running(), "the cell to be ended")
