"""Random programs run here and through another process: what they leave, step by step, cannot be told apart."""

import copy
import os
import random
import types
from collections.abc import Callable
from typing import Any, Protocol

import pytest

from .census import Census, Difference, Form, difference
from .grammar import NUMPY
from .graphs import Cell, Program, as_main, program
from .notebook import Executor, Notebook, run_cell

#: Fixed, whatever else is loaded; of no meaning, so that they are spread over what the grammar can say.
SEEDS = [random.Random(number).getrandbits(32) for number in range(int(os.environ.get("BULLETIN_EXAMPLES", "60")))]


class Side(Protocol):
    """Where a program runs."""

    module: types.ModuleType

    def run(self, cell: Cell) -> dict[str, object]:
        """Run the cell; `{"result": ...}` or `{"error": ...}`."""


class Here:
    """All cells run in this process, the `%%gpu` ones too; then `fault`, if there is one, does its harm."""

    def __init__(self, fault: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.module = types.ModuleType("__main__")
        self._fault = fault

    def run(self, cell: Cell) -> dict[str, object]:
        outcome = _outcome(cell.source, self.module.__dict__)
        if cell.is_gpu and self._fault is not None:
            self._fault(self.module.__dict__)
        return outcome


class There:
    """`%%gpu` cells go through the executor."""

    def __init__(self, executor: Executor) -> None:
        self.book = Notebook(executor)
        self.module = self.book.module

    def run(self, cell: Cell) -> dict[str, object]:
        if not cell.is_gpu:
            return _outcome(cell.source, self.book.ns)
        applied = self.book.gpu(cell.source)
        return {**applied.extra, **({"losses": repr(applied.stayed)} if applied.stayed else {})}


def _outcome(source: str, namespace: dict[str, Any]) -> dict[str, object]:
    try:
        return {"result": run_cell(source, namespace, "<cell>")}
    except Exception as error:  # noqa: BLE001  whatever a cell raises is compared
        return {"error": error}


def history(found: Program, side: Side) -> list[Form | str]:
    """A form for each cell; the text of a failure, which ends it, if a cell could not even be run."""
    forms: list[Form | str] = []
    census = Census()
    with as_main(side.module):
        for cell in found.cells:
            try:
                outcome = side.run(cell)
            except Exception as problem:  # noqa: BLE001  told as the failure that it is
                forms.append(f"{type(problem).__name__}: {problem}".strip())
                break
            forms.append(census.take(side.module.__dict__, {f"the cell's {key}": outcome[key] for key in outcome}))
    return forms


def parting(found: Program, side: Side) -> tuple[int, Difference] | None:
    """The first cell after which the side can be told from a local run, and how."""
    expected = history(found, Here())
    for place, (one, other) in enumerate(zip(expected, history(found, side), strict=False)):
        assert isinstance(one, Form), one
        if isinstance(other, str):
            line = other.splitlines()[-1]
            return place, Difference(f"failed: {line.partition(':')[0]}", "the cell", "a local run", other)
        if (parted := difference(one, other)) is not None:
            return place, parted
    return None


def smallest(found: Program, side: Callable[[], Side]) -> Program:
    """The program with everything left out that its parting does not need; the parting stays of its kind."""
    parted = parting(found, side())
    while parted is not None:
        found = Program(found.cells[: parted[0] + 1])
        for candidate in found.smaller():
            less = parting(candidate, side()) if candidate.cells else None
            if less is not None and less[1].kind == parted[1].kind:
                found, parted = candidate, less
                break
        else:
            break
    return found


def report(found: Program, side: Callable[[], Side]) -> str:
    """How the smallest such program differs, its source, and a row for `test_as_if_local`."""
    found = smallest(found, side)
    parted = parting(found, side())
    if parted is None:
        return f"differs only after what the executor ran before:\n{found}"
    place, parting_at = parted
    kept, checks = None, [parting_at.path] if not parting_at.path.startswith("the cell") else []
    if parting_at.number is not None and checks:
        now, before = history(found, Here())[place], history(found, Here())[max(0, place - 1)]
        assert isinstance(now, Form)
        assert isinstance(before, Form)
        old = before.entries.get(parting_at.number)
        kept = old.path if old is not None else None
        checks.append(f"{parting_at.path} is {'kept' if kept else now.entries[parting_at.number].path}")
    return f"{parting_at}\n\n{found}\n\n{found.as_row(parting_at.kind, kept, checks)}"


@pytest.fixture(autouse=True)
def _libraries() -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("pandas")


def test_a_program_leaves_the_notebook_as_if_all_its_cells_had_run_there(executor: Executor) -> None:
    for seed in SEEDS:
        found = program(seed)
        if parting(found, There(executor)) is not None:
            pytest.fail(f"seed {seed}: {report(found, lambda: There(executor))}", pytrace=False)


def test_the_same_program_gives_the_same_forms_twice() -> None:
    for seed in SEEDS:
        assert parting(program(seed), Here()) is None
        assert program(seed) == program(seed)


def _copy_all(namespace: dict[str, Any]) -> None:
    namespace["a"] = copy.deepcopy(namespace["a"])


def _copy_inside(namespace: dict[str, Any]) -> None:
    namespace["a"][0] = copy.copy(namespace["a"][0])


def _forget(namespace: dict[str, Any]) -> None:
    del namespace["a"][-1]


def _true_for_one(namespace: dict[str, Any]) -> None:
    namespace["n"] = namespace["n"] == 1


def _new_memory(namespace: dict[str, Any]) -> None:
    namespace["view"] = namespace["view"].copy()


def _new_cell(namespace: dict[str, Any]) -> None:
    was = namespace["get"]
    namespace["get"] = types.FunctionType(was.__code__, was.__globals__, closure=(types.CellType([]),))


def _new_method(namespace: dict[str, Any]) -> None:
    namespace["P"].get = lambda s: 1


def _reorder(namespace: dict[str, Any]) -> None:
    namespace["d"]["x"] = namespace["d"].pop("x")


def _minus_zero(namespace: dict[str, Any]) -> None:
    namespace["arr"][0] = -0.0


GRAPH = Program(
    (
        Cell(
            False,
            (
                NUMPY,
                "class P:\n  def get(s): return s",
                "def make(x):\n  def put(): x.append(1)\n  def get(): return x\n  return put, get",
                "a = [[1], P()]\nb = a[0]\nc = a\nn = 1\nd = {'x': 1, 'y': 2}",
                "arr = np.zeros(4)\nview = arr[1:]\nput, get = make([])",
            ),
        ),
        Cell(True, ("b.append(2)", "put()")),
    )
)


@pytest.mark.parametrize(
    "fault",
    [_copy_all, _copy_inside, _forget, _true_for_one, _new_memory, _new_cell, _new_method, _reorder, _minus_zero],
)
def test_each_planted_fault_is_seen(fault: Callable[[dict[str, Any]], None]) -> None:
    assert parting(GRAPH, Here()) is None
    assert parting(GRAPH, Here(fault)) is not None
