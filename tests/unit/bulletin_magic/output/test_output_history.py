"""What is kept of all cells: the newest, what still runs, and nothing of what had to go."""

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell

from bulletin.ids import CellId
from bulletin_magic.output.cell_outputs import CellOutputs
from bulletin_magic.output.output_history import OutputHistory, first_telling_line

LIMIT = 400_000


@pytest.fixture
def shown() -> Iterator[OutputHistory]:
    yield OutputHistory(InteractiveShell.instance(), lambda: LIMIT, lambda: 5_000)
    InteractiveShell.clear_instance()


def fill(shown: OutputHistory, name: str, *, ends: bool = True) -> CellOutputs:
    cell = shown.begin(CellId(name))
    shown.add(cell, "stream", {"name": "stdout", "text": "x" * 60_000}, 60_000)
    if ends:
        shown.end(cell)
    return cell


def test_the_oldest_cells_go_whole_and_one_that_runs_stays(shown: OutputHistory) -> None:
    runs = fill(shown, "runs", ends=False)
    cells = [fill(shown, f"cell{number}") for number in range(20)]
    kept = [cell for cell in cells if not cell.is_forgotten]
    assert kept == cells[-len(kept) :]
    assert 4 <= len(kept) <= 5
    assert not runs.is_forgotten
    assert sum(cell.size_bytes for cell in (runs, *kept)) <= LIMIT
    assert shown.find_by_id(CellId("cell0")) is None
    assert shown.find_by_id(CellId("cell19-2")) is cells[19]


def test_what_a_cell_prints_that_is_gone_is_kept_nowhere(shown: OutputHistory) -> None:
    first = fill(shown, "first")
    others = [fill(shown, f"cell{number}") for number in range(20)]
    for _ in range(20):
        shown.add(first, "stream", {"name": "stdout", "text": "late" * 10_000}, 40_000)
        shown.add_late(CellId("first"), "stream", {"name": "stdout", "text": "late" * 10_000}, 40_000)
    assert first not in shown.unseen
    assert [cell.is_forgotten for cell in others[-4:]] == [False] * 4


def test_the_words_of_a_cell_are_those_of_its_first_line_that_says_something() -> None:
    assert first_telling_line("%%gpu --gpus 2\n\n# train\nfit(model)\nmore") == "fit(model)"
    assert first_telling_line("%%gpu") == "%%gpu"
    assert first_telling_line("") == ""
