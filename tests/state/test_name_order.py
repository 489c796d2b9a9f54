"""A namespace lists its names as it would if all cells had run in one process."""

import pytest

from bulletin.state.name_order import late_names, put_last

from .notebook import Notebook

CELLS = (
    "b = 1; a = 2",
    "c = 3; x = 4\ndef q(): pass\nclass K: pass\ne = [1]; f = q; g = e",
    "z = 1; y = [2]; b = 9; del a; a = 3; w = 't'",
    "import math as m, os; t = (1,); u = lambda: t",
    "del K; K = 5; a = 4; v = 0",
)
#: Asked of the notebook itself, and of a cell on the executor.
ASK = "[name for name in globals() if name[:1] != '_'], [name for name in list(vars()) if name[:1] != '_']"


def asked(way: int) -> list[object]:
    namespace: dict[str, object] = {}
    for cell in CELLS[: way + 1]:
        exec(cell, namespace)
    return [name for name in namespace if name[:1] != "_"]


@pytest.mark.parametrize("on_pool", [{0, 1, 2, 3, 4}, {1, 3}, {0, 2, 4}])
def test_names_are_listed_as_they_were_bound(notebook: Notebook, on_pool: set[int]) -> None:
    for place, cell in enumerate(CELLS):
        (notebook.gpu if place in on_pool else notebook.local)(cell)
        assert [name for name in notebook.ns if name[:1] != "_"] == asked(place)
        assert notebook.gpu(ASK).extra["result"] == (asked(place), asked(place))


@pytest.mark.parametrize("cell", [
    "def drop():\n    global a\n    del a\nz = 1", "z = drop = 1\na = 2",
    "def drop(): pass\nz = 1\nglobal a\ndel a\na = 3",
])  # fmt: skip
def test_only_what_the_cell_deletes_itself_comes_last(notebook: Notebook, cell: str) -> None:
    notebook.local("a = 1; last = 2")
    namespace: dict[str, object] = {}
    exec("a = 1; last = 2", namespace)
    exec(cell, namespace)
    notebook.gpu(cell)
    assert [name for name in notebook.ns if name[:1] != "_"] == [name for name in namespace if name[:1] != "_"]


def test_what_is_bound_late_is_told_by_the_order_alone() -> None:
    assert late_names(["a", "b", "c"], ["a", "b", "c"], ()) == ([], [])
    assert late_names(["a", "b", "c"], ["b", "c", "n", "a"], ()) == (["n", "a"], ["a"])
    assert late_names(["a", "b"], ["a", "b"], {"b"}) == (["b"], ["b"])
    assert late_names(["a", "b"], ["b"], {"a"}) == ([], [])


def test_names_that_are_gone_are_put_nowhere() -> None:
    namespace = {"a": 1, "b": 2, "c": 3}
    put_last(namespace, ["b", "gone", "a"])
    assert list(namespace.items()) == [("c", 3), ("b", 2), ("a", 1)]
