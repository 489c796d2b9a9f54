# ruff: noqa: E501  cells are one line each
"""A cell under way while the notebook goes on: nothing that the notebook did meanwhile is lost, or overwritten unsaid."""

from collections.abc import Callable

import pytest

from bulletin import state

from .notebook import Executor, Notebook


def send(notebook: Notebook, source: str, *, is_aside: bool = False) -> Callable[[], state.Applied]:
    """Capture a cell, run it, and hand over the way to take in what it did, for later."""
    captured = state.capture(notebook.ns, state.needs(source, notebook.ns), table=notebook.table)
    meanwhile = state.depart(notebook.ns, captured, is_aside=is_aside)

    def land() -> state.Applied:
        answer = notebook.executor.ask(source, captured.parts)
        assert "failed" not in answer, answer
        return state.apply(answer["parts"], notebook.ns, sent=captured, meanwhile=meanwhile)

    return land


def test_what_only_the_cell_changed_lands_in_place(notebook: Notebook) -> None:
    notebook.local("a = [1]\nalso = a\nb = {'x': a}\nn = 1")
    land = send(notebook, "a.append(2)\nb['y'] = a\nn += 1\nnew = 5")
    notebook.local("other = [9]\nother2 = other")
    applied = land()
    assert (applied.aside, notebook["a"], notebook["also"] is notebook["a"]) == ({}, [1, 2], True)
    assert notebook["b"] == {"x": [1, 2], "y": [1, 2]}
    assert notebook["b"]["y"] is notebook["a"]
    assert (notebook["n"], notebook["new"], notebook["other"]) == (2, 5, [9])


def test_the_cell_sees_the_notebook_as_it_was(notebook: Notebook) -> None:
    notebook.local("a = [1]\nn = 1")
    land = send(notebook, "seen = (list(a), n)")
    notebook.local("a.append(2)\nn = 2")
    assert land().aside == {}
    assert (notebook["seen"], notebook["a"], notebook["n"]) == (([1], 1), [1, 2], 2)


def test_a_name_that_the_notebook_has_bound_since_keeps_its_value(notebook: Notebook) -> None:
    notebook.local("a = [1]\nn = 1\ngone = 3")
    land = send(notebook, "a = [2]\nn = 2\nmade = 1\ngone = 4")
    notebook.local("a = 'mine'\nmade = 'mine'\ndel gone")
    applied = land()
    assert applied.aside == {"a": [2], "made": 1, "gone": 4}
    assert (notebook["a"], notebook["n"], notebook["made"], "gone" in notebook.ns) == ("mine", 2, "mine", False)


def test_another_name_for_what_the_notebook_has_is_no_change_of_the_notebook(notebook: Notebook) -> None:
    notebook.local("a = [1]\nb = [2]\nname = 0")
    applied = send(notebook, "new = a\nname = b\nb.append(3)")()
    assert applied.aside == {}
    assert (notebook["new"] is notebook["a"], notebook["name"] is notebook["b"], notebook["b"]) == (True, True, [2, 3])


def test_a_value_that_both_have_changed_is_laid_aside_whole(notebook: Notebook) -> None:
    notebook.local("a = [1]\nalso = a\nfree = [0]")
    land = send(notebook, "a.append(2)\nfree.append(1)")
    notebook.local("a.append('mine')")
    applied = land()
    assert applied.aside == {"a": [1, 2], "also": [1, 2]}
    assert applied.aside["a"] is applied.aside["also"]
    assert (notebook["a"], notebook["also"] is notebook["a"], notebook["free"]) == ([1, "mine"], True, [0, 1])


def test_what_shares_something_with_it_stays_with_it(notebook: Notebook) -> None:
    notebook.local("inner = []\na = [inner]\nb = [inner]")
    land = send(notebook, "a[0].append(1)\nb.append(2)")
    notebook.local("a.append('mine')")
    aside = land().aside
    assert aside["a"] == [[1]]
    assert aside["b"] == [[1], 2]
    assert aside["a"][0] is aside["b"][0]
    assert (notebook["a"], notebook["b"], notebook["inner"]) == ([[], "mine"], [[]], [])


def test_an_instance_that_is_laid_aside_is_of_the_notebooks_class(notebook: Notebook) -> None:
    notebook.local("class Net:\n  def __init__(self): self.w = 0\n  def step(self): self.w += k\nk = 1\nnet = Net()")
    land = send(notebook, "net.step()")
    notebook.local("net.w = 10")
    aside = land().aside
    assert type(aside["net"]) is notebook["Net"]
    assert (aside["net"].w, notebook["net"].w) == (1, 10)
    notebook.local("k = 5")
    aside["net"].step()
    assert aside["net"].w == 6


def test_an_array_that_both_have_changed(notebook: Notebook) -> None:
    numpy = pytest.importorskip("numpy")
    notebook.local("import numpy as np\na = np.zeros(400_000)\nview = a[:2]\nfree = np.zeros(3)")
    land = send(notebook, "a[0] = 1\nfree[0] = 1")
    notebook.local("a[399_999] = 7")
    applied = land()
    assert sorted(applied.aside) == ["a"]
    laid = applied.aside["a"]
    assert (laid[0], laid[-1], notebook["a"][0], notebook["a"][-1]) == (1, 0, 0, 7)
    assert not numpy.shares_memory(laid, notebook["a"])
    assert notebook["view"].base is notebook["a"]
    assert notebook["free"].tolist() == [1, 0, 0]


def test_an_array_that_the_notebook_changed_while_it_was_sent_is_sent_as_it_was(notebook: Notebook) -> None:
    pytest.importorskip("numpy")
    notebook.local("import numpy as np\na = np.zeros(400_000)")
    land = send(notebook, "total = float(a.sum())")
    notebook.local("a += 1")
    assert land().aside == {}
    assert (notebook["total"], notebook["a"][0]) == (0, 1)


def test_deleted_names(notebook: Notebook) -> None:
    notebook.local("a = 1\nb = 2")
    land = send(notebook, "del a, b")
    notebook.local("b = 3")
    applied = land()
    assert (applied.deleted, "a" in notebook.ns, notebook["b"]) == (("a",), False, 3)


def test_the_notebooks_random_state_and_folder_are_its_own(notebook: Notebook) -> None:
    notebook.local("import random\nrandom.seed(1)")
    land = send(notebook, "import random, os\nrandom.seed(2)\nos.environ['BULLETIN_TEST_MEANWHILE'] = '1'")
    expected = notebook.local("random.seed(3); state = random.getstate()\nstate")
    land()
    assert notebook.local("import os\nrandom.getstate()") == expected
    assert notebook.local("os.environ.get('BULLETIN_TEST_MEANWHILE')") is None


def test_all_of_it_can_be_laid_aside(notebook: Notebook) -> None:
    notebook.local("a = [1]\nn = 1\ndef f(x):\n  a.append(x)\n  return a")
    land = send(notebook, "got = f(2)\nn = 2", is_aside=True)
    applied = land()
    assert applied.aside["got"] == [1, 2]
    assert applied.aside["got"] is applied.aside["a"]
    assert (applied.aside["n"], notebook["a"], notebook["n"], "got" in notebook.ns) == (2, [1], 1, False)
    again = send(notebook, "got = f(3)", is_aside=True)()
    assert (again.aside["got"], notebook["a"]) == ([1, 3], [1])


def test_the_value_and_the_error_of_the_cell_come_as_they_do(notebook: Notebook) -> None:
    notebook.local("a = [1]")
    assert send(notebook, "a[0] + 1")().extra["result"] == 2
    assert isinstance(send(notebook, "a[5]")().extra["error"], IndexError)


def test_a_function_of_the_notebook_that_was_defined_again(notebook: Notebook) -> None:
    notebook.local("def f(): return 1\nx = 0")
    land = send(notebook, "x = f()\ndef f(): return 3")
    notebook.local("def f(): return 2")
    applied = land()
    assert (notebook["x"], notebook.local("f()"), applied.aside["f"]()) == (1, 2, 3)


def test_cells_that_run_side_by_side(notebook: Notebook) -> None:
    executors = [Executor(), Executor()]
    try:
        books = [Notebook(executor) for executor in executors]
        notebook.local("total = {'a': 0, 'b': 0}\nparts = [[], []]")
        lands = []
        for number, book in enumerate(books):
            book.ns = notebook.ns
            lands.append(send(book, f"parts[{number}].append({number})\ntotal['{'ab'[number]}'] = 1"))
        first, second = (land() for land in lands)
        assert first.aside == {}
        assert sorted(second.aside) == ["parts", "total"]  # the first has changed both meanwhile
        assert notebook["parts"] == [[0], []]
        assert second.aside["total"] == {"a": 0, "b": 1}
    finally:
        for executor in executors:
            executor.close()
