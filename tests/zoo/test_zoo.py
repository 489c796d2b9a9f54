"""Notebooks of many libraries come to the same whether their cells run here, on the executor, or by turns."""

import subprocess
import sys

import pytest

from tests.zoo.comparing import Difference, Kind, differences, play_all, unexplained
from tests.zoo.known import KNOWN
from tests.zoo.playing import Shown, Way
from tests.zoo.soak import LIBRARIES, libraries
from tests.zoo.specimens import names, specimen

#: What differs with all cells on the executor differs by turns too, nearly always; the soak plays both.
BY_TURNS: tuple[Way, ...] = ("turns",)


@pytest.mark.parametrize("name", names())
def test_a_library_does_the_same_everywhere(name: str) -> None:
    material = specimen(name)
    if material.missing:
        pytest.skip(f"{', '.join(material.missing)} not installed: python -m tests.zoo.soak plays it")
    new, gone = unexplained(name, differences(material, play_all(name, ways=BY_TURNS)), BY_TURNS)
    assert not new, f"{len(new)} differences\n" + "\n".join(map(str, new))
    assert not gone, "these no longer differ; take them out of known.py"
    if causes := [row.why for row in KNOWN if row.name == name and row.turns]:
        pytest.xfail("; ".join(dict.fromkeys(causes)))


def test_what_is_mended_must_go_from_the_list() -> None:
    row = KNOWN[0]
    left = [Difference(way, cell, Kind.SILENT, Shown("1", None), Shown("2", None)) for way, cell in sorted(row.cells)]
    assert unexplained(row.name, left) == ([], [])
    assert unexplained(row.name, left[1:]) == ([], [f"{left[0].way}, cell {left[0].cell}"])


def test_each_row_of_the_list_names_cells_that_are_there() -> None:
    cells = {name: len(specimen(name).cells) for name in names()}
    assert [row.name for row in KNOWN if any(cell >= cells.get(row.name, 0) for _, cell in row.cells)] == []
    assert [row.name for row in KNOWN if not row.cells] == []
    assert len({row.name for row in KNOWN}) == len(KNOWN)


def test_the_libraries_of_the_soak_are_pinned_and_carry_no_address() -> None:
    assert all(line.count("==") == 1 and "/" not in line and "@" not in line for line in libraries())
    assert libraries() == sorted(libraries(), key=str.lower), LIBRARIES


def test_the_soak_says_how_it_is_called() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "tests.zoo.soak", "--help"], capture_output=True, text=True, check=True
    )
    assert "tests.zoo.soak" in said.stdout
