# ruff: noqa: E501  cells are one line each
"""Answers that cannot land as they are: what does not load is undone and said, and later names stay."""

from collections.abc import Callable

import pytest

from bulletin import state
from bulletin.errors import CannotReturn, CannotSend, StayedBehind
from bulletin.state import load_transaction

from .notebook import Executor, Notebook


def answered(notebook: Notebook, executor: Executor, setup: str, cell: str) -> tuple[state.Captured, list[bytearray]]:
    notebook.local(setup)
    captured = state.capture(notebook.ns, state.needs(cell, notebook.ns))
    return captured, executor.ask(cell, captured.parts)["parts"]


FRAGILE = "x = [1]\ny = 'keep'\nclass P:\n  n = 1\n  def up(self): return 1\np = P()\ndef f(): return 1\nf.calls = 0"
BREAKING = "x = [2]\nP.n = 2\nf.calls = 5\ndel y\nclass Bomb:\n  def __reduce__(self): return (int, ('not a number',))\nzz = p.b = Bomb()\np.a = 3; f"


def facts(notebook: Notebook) -> tuple[object, ...]:
    return notebook["x"], notebook["y"], notebook["P"].n, notebook["f"].calls, vars(notebook["p"]), sorted(notebook.ns)


def test_an_answer_that_does_not_load_leaves_everything_as_it_was(notebook: Notebook, executor: Executor) -> None:
    captured, parts = answered(notebook, executor, FRAGILE, BREAKING)
    before = facts(notebook)
    with pytest.raises(CannotReturn) as caught:
        state.apply(parts, notebook.ns, sent=captured)
    assert caught.value.name == "p"
    assert facts(notebook) == before


def test_a_new_value_that_does_not_load_stays_on_the_pool_and_costs_no_other(notebook: Notebook) -> None:
    notebook.local(FRAGILE)
    code = "class Bomb:\n  def __init__(self): self.arms = [1]\n  def __reduce__(self): return (int, ('no number',))\n"
    applied = notebook.gpu(f"{code}zz = [Bomb()]\nsame = zz\nx.append(2)\nw = 'new'\np.a = 3; f.calls = 5")
    assert (notebook["x"], notebook["w"], notebook["p"].a, notebook["f"].calls) == ([1, 2], "new", 3, 5)
    assert [(one.name, one.path) for one in applied.stayed] == [("zz", "zz")]
    assert "ValueError: invalid literal for int()" in applied.stayed[0].kind
    with pytest.raises(StayedBehind, match="zz is a value that fails to load here and stayed on the pool"):
        notebook["zz"].append(1)
    assert notebook.gpu("zz is same, zz[0].arms").extra["result"] == (True, [1])
    assert notebook["same"] is notebook["zz"]
    notebook.gpu("zz = same = zz[0].arms")
    assert notebook["zz"] == [1]


def test_memory_of_a_value_that_did_not_load_is_known_when_another_value_shows_it(notebook: Notebook) -> None:
    code = "import numpy as np\nclass Bomb:\n  def __init__(self, a): self.a = a\n  def __setstate__(self, state): int(self.__class__.word)\n  word = '1'\n"
    notebook.gpu(f"{code}Bomb.word = 'no number'\nzz = [Bomb(np.arange(5))]")
    notebook.gpu("part = zz[0].a[1:]")
    assert notebook["part"].tolist() == [1, 2, 3, 4]
    notebook.local("part[0] = 7")
    assert notebook.gpu("part[0], zz[0].a[1]").extra["result"] == (7, 7)


def test_what_looks_for_a_name_where_it_is_loaded_finds_those_of_the_notebook(notebook: Notebook) -> None:
    code = "import sys\nclass Formula:\n  def __init__(self, text): self.text = text\n  def __setstate__(self, state):\n    self.text = state['text']; self.value = eval(self.text, sys._getframe(1).f_globals)\n"
    notebook.gpu(f"{code}rate = 3\nformula = Formula('rate + 1')")
    assert notebook["formula"].value == 4
    notebook.local("rate = 5\nformula.text = 'rate + 2'")
    assert notebook.gpu("rate, formula.value").extra["result"] == (5, 7)


def test_what_was_lost_before_it_could_be_loaded_is_called_a_value(notebook: Notebook) -> None:
    code = "class Bomb:\n  def __reduce__(self): return (int, ('no number',))\n"
    notebook.gpu(f"{code}zz = Bomb()")
    notebook.table.clear()
    with pytest.raises(CannotSend, match="it is a value that was lost with the process that held it"):
        notebook.gpu("zz")


def test_a_damaged_answer_leaves_everything_as_it_was(notebook: Notebook, executor: Executor) -> None:
    captured, parts = answered(notebook, executor, FRAGILE, BREAKING.replace("zz = Bomb()", ""))
    assert len(parts) == 1
    before = facts(notebook)
    places = range(0, len(parts[0]), 37)
    for damaged in [*(parts[0][:place] for place in places), *(flipped(parts[0], place) for place in places)]:
        with pytest.raises(CannotReturn):
            state.apply([damaged], notebook.ns, sent=captured)
    assert facts(notebook) == before


def flipped(stream: bytearray, place: int) -> bytearray:
    return stream[:place] + bytes([stream[place] ^ 0x10]) + stream[place + 1 :]


def test_a_missing_buffer_leaves_everything_as_it_was(notebook: Notebook, executor: Executor) -> None:
    pytest.importorskip("numpy")
    captured, parts = answered(notebook, executor, "import numpy as np\nn = 1", "n = 2\na = np.ones(50_000)")
    assert len(parts) == 2
    with pytest.raises(CannotReturn):
        state.apply(parts[:1], notebook.ns, sent=captured)
    assert (notebook["n"], "a" in notebook.ns) == (1, False)


def test_a_failure_while_existing_classes_change_is_undone(
    notebook: Notebook, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured, parts = answered(notebook, executor, FRAGILE, BREAKING.replace("zz = Bomb()", ""))
    before = facts(notebook)
    made = load_transaction.LoadTransaction.later

    def then_fail(self: load_transaction.LoadTransaction, change: Callable[[], None], undo: Callable[[], None]) -> None:
        made(self, change, undo)
        made(self, lambda: 1 / 0, lambda: None)  # type: ignore[arg-type, return-value]

    monkeypatch.setattr(load_transaction.LoadTransaction, "later", then_fail)
    with pytest.raises(CannotReturn):
        state.apply(parts, notebook.ns, sent=captured)
    assert facts(notebook) == before


def test_a_name_bound_anew_while_the_cell_ran_does_not_mislead_the_answer(
    notebook: Notebook, executor: Executor
) -> None:
    captured, parts = answered(notebook, executor, "x = [1]\nkept = x", "y = [x]")
    notebook.local("x = 'other'")
    state.apply(parts, notebook.ns, sent=captured)
    assert notebook["y"][0] is notebook["kept"]
