"""`--max-wait` beside `--background` and `--each`: who waits for longer gives up, says so, and what can run, runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, PoolProcess, until


@pytest.fixture
def busy_pool(start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]) -> Iterator[PoolProcess]:
    """A pool of two CPU slots, one of which is another notebook's for as long as the test runs."""
    pool = start_pool("--slots", "2")
    other = open_notebook(pool)
    message = other.start_until("%%gpu\nprint('started')\ninput()", shows="started")
    yield pool
    other.answer("go")
    other.collect(message)


def test_a_background_cell_that_waits_for_longer_ends_and_says_why(
    busy_pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(busy_pool)
    holder = notebook.start_until("%%gpu\nprint('mine')\ninput()", shows="mine")
    waiting = open_notebook(busy_pool)
    waiting.run("%%gpu --background late --max-wait 1s\nx = 1")
    given_up = waiting.run("late.result()")
    assert given_up.error is not None
    assert given_up.error["ename"] == "WaitedTooLong"
    assert waiting.value("late").startswith("late: ✗ No CPU slot came free within 1.0 s. Nothing was run;")
    assert waiting.value("late.done(), 'x' in globals()") == "(True, False)"
    assert not busy_pool.picture().waiting
    waiting.run("values = [1, 2]")
    swept = waiting.run("%%gpu --each values --max-wait 1s\neach")
    assert swept.error is not None
    assert swept.error["ename"] == "WaitedTooLong"
    assert not busy_pool.picture().waiting
    notebook.answer("go")
    notebook.collect(holder)


def test_a_sweep_goes_on_with_the_slots_that_it_got_in_time(
    busy_pool: PoolProcess, open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    notebook = open_notebook(busy_pool)
    gate = tmp_path / "go"
    notebook.run(f"import pathlib\nvalues, gate = [1, 2, 3], pathlib.Path({str(gate)!r})")
    sweep = notebook.start("%%gpu --each values --max-wait 1s\nwhile not gate.exists():\n    pass\neach * 10")
    until(lambda: busy_pool.picture().waiting, "the sweep to ask for a second slot")
    until(lambda: not busy_pool.picture().waiting, "the sweep to do without it")
    gate.touch()
    assert notebook.collect(sweep).result == "[10, 20, 30]"


@pytest.mark.parametrize("way", ["--background late", "--each values"])
def test_a_cell_that_runs_on_the_pool_only_takes_no_fallback(way: str, open_notebook: Callable[..., Notebook]) -> None:
    notebook = open_notebook(BULLETIN_CONNECTION_FILE="/nowhere/connection.json")
    notebook.run("values = [1]")
    refused = notebook.run(f"%%gpu {way} --fallback cpu\nprint('ran')")
    assert f"--fallback and {way.partition(' ')[0]} cannot stand together" in refused.shown
    assert "Nothing was run." in refused.shown
    assert refused.stream() == ""
