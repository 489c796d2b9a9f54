"""The page of the simulation and what writes it: each table has its place, and is put there whole."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gpu_worker.simulator.workloads import WORKLOADS

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program, imported as it runs, and forgotten after: other tests would take it for a module of the user."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module("simulation")
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == BENCHMARKS:
            del sys.modules[name]


def test_the_page_has_every_table_below_the_command_that_makes_it(program: ModuleType) -> None:
    page = program.PAGE.read_text()
    for name in (program.WEEKS, *program.TABLES):
        _, begin, rest = page.partition(program.begin_mark(name))
        text, end, _ = rest.partition(program.end_mark(name))
        assert begin, name
        assert end, name
        assert text.startswith(f"```sh\npython benchmarks/simulation.py {name}")
        assert "| --- |" in text
    assert page.count("written by benchmarks/simulation.py") == 1 + len(program.TABLES)


def test_all_tables_of_the_page_are_of_the_pool_that_it_leads_with_and_of_one_week(program: ModuleType) -> None:
    page = program.PAGE.read_text()
    found = re.findall(r"^python benchmarks/simulation\.py (\S+) --gpus (\d+) --seed (\d+)$", page, re.MULTILINE)
    assert sorted(name for name, _, _ in found) == sorted(program.TABLES)
    [(gpus, _)] = {(gpus, seed) for _, gpus, seed in found}
    assert page.partition(program.begin_mark(program.WEEKS))[2].count(f"**{gpus} GPUs**") == 1


def test_a_table_is_put_between_its_marks_and_nothing_else_changes(program: ModuleType) -> None:
    page = f"before\n{program.begin_mark('one')}old\n{program.end_mark('one')}between\n"
    page += f"{program.begin_mark('two')}{program.end_mark('two')}after\n"
    filled = program.fill(page, {"two": "2\n", "one": "1\n"})
    assert filled == (
        f"before\n{program.begin_mark('one')}1\n{program.end_mark('one')}between\n"
        f"{program.begin_mark('two')}2\n{program.end_mark('two')}after\n"
    )
    assert program.fill(filled, {"two": "2\n"}) == filled
    with pytest.raises(KeyError, match="three"):
        program.fill(page, {"three": ""})


@pytest.mark.parametrize("name", ["costs", "keep"])
def test_a_table_is_made(name: str, program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"course": (WORKLOADS["course"][0], 4), "lesson": (WORKLOADS["lesson"][0], 2)}
    for workload, made in few.items():
        monkeypatch.setitem(WORKLOADS, workload, made)
    lines = program.TABLES[name](program.Standard(8, 1))
    assert len({line.count("|") for line in lines}) == 1
    assert len(lines) > 4
