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
    sys.modules.pop("made_by_hand", None)


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
