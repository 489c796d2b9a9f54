"""A module that a cell makes and puts into `sys.modules` is one module on both sides."""

import sys
from collections.abc import Iterator

import pytest

from tests.state.notebook import Notebook

MAKE = """
import sys, types
mod = types.ModuleType("made_by_hand")
exec(\"\"\"
x = 1
def inc():
    global x
    x += 1
    return x
class C: pass
\"\"\", mod.__dict__)
sys.modules["made_by_hand"] = mod
"""
USE = """
import made_by_hand
from made_by_hand import inc, C
r = inc(), made_by_hand is mod, C.__module__, type(C()) is mod.C
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    for name in ("made_by_hand", "this"):
        sys.modules.pop(name, None)


def test_one_that_a_gpu_cell_makes_is_imported_in_the_notebook(notebook: Notebook) -> None:
    notebook.gpu(MAKE)
    notebook.local(USE)
    assert notebook.local("r") == (2, True, "made_by_hand", True)
    notebook.gpu("r = inc(), mod.x, made_by_hand is sys.modules['made_by_hand']")
    assert notebook.local("r") == (3, 3, True)


def test_one_that_the_notebook_makes_is_imported_in_a_gpu_cell(notebook: Notebook) -> None:
    notebook.local(MAKE)
    notebook.gpu(USE)
    assert notebook.local("r") == (2, True, "made_by_hand", True)
    assert notebook.local("inc(), mod.x, sys.modules['made_by_hand'] is mod") == (3, 3, True)


def test_one_that_has_no_name_but_that_of_the_import_is_imported_in_a_gpu_cell(notebook: Notebook) -> None:
    notebook.local(MAKE + "del mod")
    notebook.gpu("import made_by_hand\nr = made_by_hand.inc()")
    assert notebook.local("r, made_by_hand is sys.modules['made_by_hand'], made_by_hand.x") == (2, True, 2)


def test_one_that_only_a_function_imports_is_imported_in_a_gpu_cell(notebook: Notebook) -> None:
    notebook.local(MAKE + "del mod\ndef use():\n    from made_by_hand import inc\n    return inc()")
    notebook.gpu("r = use()")
    assert notebook.local("r, sys.modules['made_by_hand'].x") == (2, 2)


@pytest.mark.parametrize("cell", ["import this\nr = this.s", "r = stood_in.s"])
def test_one_that_stood_in_for_a_library_is_gone_where_the_notebook_has_taken_it_out(
    cell: str, notebook: Notebook
) -> None:
    notebook.local("import sys, types\nsys.modules['this'] = types.ModuleType('this'); sys.modules['this'].s = 'made'")
    notebook.gpu("import this as stood_in\nr = stood_in.s")
    assert notebook.local("r") == "made"
    notebook.local("del sys.modules['this']\nimport this as stood_in")
    notebook.gpu(cell)
    assert notebook.local("r")[:7] == "Gur Mra"
