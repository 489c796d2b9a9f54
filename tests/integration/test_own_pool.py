"""Without a hub and without configuration, a cell starts a pool of one's own."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, until
from tests.integration.own_pools import pools
from tests.processes import has_ended


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "runtime"
    yield folder
    for pool in pools(folder):
        pool.terminate()
        until(partial(has_ended, pool), "the pool to end")


def test_the_first_cell_starts_a_pool_that_all_notebooks_share(
    runtime: Path, open_notebook: Callable[..., Notebook]
) -> None:
    first = open_notebook(BULLETIN_RUNTIME_DIR=str(runtime))
    output = first.run("%%gpu\nimport os\nthere = os.getpid()\nprint('hello from the pool')")
    assert output.error is None, output.shown
    assert "hello from the pool" in output.stream()
    assert "Starting a pool of your own" in output.shown
    second = open_notebook(BULLETIN_RUNTIME_DIR=str(runtime))
    again = second.run("%%gpu\nimport os\nthere = os.getpid()")
    assert again.error is None, again.shown
    assert "Starting" not in again.shown
    assert first.value("there") != second.value("there")
    assert len(pools(runtime)) == 1
    assert "of your own" in first.run("%gpu").shown
    asked = first.run("%%gpu --project nope\nprint('runs all the same')")
    assert "runs all the same" in asked.stream()
    assert "--project nope counts for nothing here" in asked.shown
    assert "counts for nothing" not in first.run("%%gpu --project nope\nprint('is said once')").shown


def test_a_cell_starts_the_pool_again_when_it_was_ended_meanwhile(
    runtime: Path, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(BULLETIN_RUNTIME_DIR=str(runtime))
    notebook.run("%%gpu\nx = 1")
    (pool,) = pools(runtime)
    pool.terminate()
    until(lambda: not pools(runtime), "the pool to end")
    output = notebook.run("%%gpu\nx += 1\nprint('back')")
    assert output.error is None, output.shown
    assert notebook.value("x") == "2"


def test_without_the_pools_libraries_the_cell_says_what_to_install(
    runtime: Path, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(BULLETIN_RUNTIME_DIR=str(runtime))
    notebook.run(
        "import importlib.util, sys\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'sqlalchemy' else find(name, *a)"
    )
    output = notebook.run("%%gpu\nprint(1)")
    assert output.error is not None
    assert output.error["ename"] == "NoPool"
    assert "pip install" in output.error["evalue"]
    assert not pools(runtime)
