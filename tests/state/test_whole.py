"""What a notebook gets of a cell that another one sent."""

from typing import Any

import numpy as np

from bulletin import state

from .notebook import Notebook


def joined(notebook: Notebook, source: str) -> tuple[dict[str, Any], state.Applied]:
    """Run a cell, and the namespace of another notebook that takes its results."""
    captured = state.capture(notebook.ns, state.needs(source, notebook.ns), table=notebook.table)
    answer = notebook.executor.ask(f"# for another notebook\n{source}", captured.parts)
    assert "failed" not in answer, answer
    notebook.table.clear()
    other: dict[str, Any] = {"__name__": "__main__", "mine": 1}
    applied = state.apply(answer["whole"], other, sent=state.capture({}, state.needs("", {})))
    return other, applied


def test_what_was_bound_and_what_was_changed_arrives_and_nothing_else(notebook: Notebook) -> None:
    notebook.local("a, b, read, n = [1], {'k': [2]}, [3], 4")
    other, applied = joined(notebook, "a.append(read[0])\nb['k'].append(n)\nnew = 5\ndel n")
    assert {name: other[name] for name in applied.bound} == {"a": [1, 3], "b": {"k": [2, 4]}, "new": 5}
    assert other["mine"] == 1
    assert applied.deleted == ()


def test_names_of_parts_of_what_changed_arrive_as_the_same_objects(notebook: Notebook) -> None:
    notebook.local("inner = [1]\nouter = [inner, 0]")
    other, _ = joined(notebook, "outer[0].append(2); inner")
    assert other["outer"] == [[1, 2], 0]
    assert other["inner"] is other["outer"][0]


def test_functions_bring_what_they_look_up(notebook: Notebook) -> None:
    notebook.local("k = 10\ndef helper(x): return x + k\nclass Point:\n  def far(self): return helper(self.x)")
    other, _ = joined(notebook, "def f(x): return helper(x)\np = Point()\np.x = 1")
    assert other["f"](1) == 11
    assert other["p"].far() == 11


def test_arrays_and_views_of_them_arrive_whole(notebook: Notebook) -> None:
    notebook.local("import numpy as np\na = np.zeros(300_000)\nv = a[::2]")
    other, _ = joined(notebook, "v += 1\na[1] = 5; v")
    assert np.array_equal(other["a"][:4], [1, 5, 1, 0])
    other["v"][0] = 7
    assert other["a"][0] == 7


def test_the_result_and_the_error_arrive_beside_the_names(notebook: Notebook) -> None:
    _, applied = joined(notebook, "x = 1\n{'of': [x]}")
    assert applied.extra == {"result": {"of": [1]}}
    _, applied = joined(notebook, "y = 1\nclass Mine(Exception): pass\nraise Mine('no')")
    assert (type(applied.extra["error"]).__name__, applied.extra["error"].args) == ("Mine", ("no",))
    assert "y" in applied.bound


def test_what_cannot_come_is_said(notebook: Notebook) -> None:
    _, applied = joined(notebook, "import threading\nbox = [threading.Lock()]\nbox[0].acquire()")
    assert [stayed.path for stayed in applied.stayed] == ["box[0]"]


def test_a_thousand_functions_that_lead_to_one_another_travel(notebook: Notebook) -> None:
    notebook.local(
        "def make(before):\n  def step(x): return before(x) + 1\n  return step\n"
        "last = first = lambda x: x\nfor _ in range(1000): last = make(last)"
    )
    assert (
        notebook.gpu("before = last.__closure__[0].cell_contents; type(before).__name__").extra["result"] == "function"
    )
    assert notebook.local("before is last.__closure__[0].cell_contents") is True
