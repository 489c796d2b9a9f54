"""A sweep takes the places that are free, and gives one up between two elements to a user who waits."""

from collections.abc import Callable
from pathlib import Path

from tests.integration.conftest import Notebook, PoolProcess, until

ELEMENTS = 200


def test_a_sweep_keeps_another_users_cell_waiting_for_an_element_at_most(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    pool = start_pool("--slots", "2")
    sweep, other = open_notebook(pool), open_notebook(pool)
    begun = tmp_path / "begun"
    begun.mkdir()
    sweep.run(f"numbers, folder = list(range({ELEMENTS})), {str(begun)!r}")
    each = "%%gpu --each numbers\nimport pathlib\n(pathlib.Path(folder) / str(each)).touch()\neach * each"
    all_of_them = sweep.start(each)
    until(lambda: len(list(begun.iterdir())) >= 5, "the sweep to be under way")
    assert other.run("%%gpu\nprint('mine')").stream() == "mine\n"
    assert len(list(begun.iterdir())) < ELEMENTS  # the sweep is not over yet
    assert sweep.collect(all_of_them).error is None
    assert sweep.value("_ == [one * one for one in numbers]") == "True"
    assert len(list(begun.iterdir())) == ELEMENTS
