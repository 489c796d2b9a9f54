"""The value of a cell's last line that cannot travel, or cannot be loaded: it costs itself, and says so."""

import pytest

from bulletin.errors import StayedBehind
from tests.state.notebook import Notebook

REFUSES = """
import sys
class Refuses:
    def __init__(self, n): self.n = n
    def __setstate__(self, state):
        if hasattr(sys, "refuses_here"):
            raise ValueError("not here")
        self.__dict__.update(state)
kept = [1]
"""


@pytest.fixture
def refusing(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    notebook.local(REFUSES)
    monkeypatch.setattr("sys.refuses_here", True, raising=False)
    return notebook


@pytest.mark.parametrize("result", ["Refuses(3)", "[kept, Refuses(3)]", "{'kept': kept, 'r': Refuses(kept)}"])
def test_a_result_that_cannot_be_loaded_costs_nothing_else_of_the_cell(refusing: Notebook, result: str) -> None:
    applied = refusing.gpu(f"kept.append(2)\nnew = [kept]\n{result}")
    assert (refusing["kept"], refusing["new"][0] is refusing["kept"]) == ([1, 2], True)
    assert [(one.path, one.why) for one in applied.stayed] == [("", "ValueError: not here")]
    with pytest.raises(StayedBehind, match="was lost when its cell ended, as it has no name"):
        applied.extra["result"].n  # noqa: B018  it is touched
    assert refusing.gpu("kept.append(new)\nlen(kept)").extra["result"] == 3
    assert refusing["kept"][2] is refusing["new"]


def test_a_result_inside_a_variable_that_cannot_be_loaded_stays_with_it(refusing: Notebook) -> None:
    applied = refusing.gpu("kept.append(2)\nbox = [Refuses(3)]\nbox[0]")
    assert refusing["kept"] == [1, 2]
    assert [one.path for one in applied.stayed] == ["box"]
    refusing.ns["_"] = applied.extra["result"]
    assert refusing.gpu("_ is box[0], _.n").extra["result"] == (True, 3)


@pytest.mark.parametrize(
    ("cell", "use", "expected"),
    [
        ("(letter for letter in 'ab')", "list(_)", ["a", "b"]),
        ("[kept, (letter for letter in 'ab')]", "_[0] is kept, list(_[1])", (True, ["a", "b"])),
        ("g = (letter for letter in 'ab')\ng", "_ is g, list(g)", (True, ["a", "b"])),
    ],
)
def test_a_result_that_stays_is_a_handle_and_later_cells_use_it(
    notebook: Notebook, cell: str, use: str, expected: object
) -> None:
    notebook.local("kept = [1]")
    notebook.ns["_"] = notebook.gpu(f"kept.append(2)\n{cell}").extra["result"]
    assert notebook["kept"] == [1, 2]
    with pytest.raises(StayedBehind, match="a generator and stayed on the pool"):
        notebook.local("list(_ if type(_) is not list else _[1])")
    assert notebook.gpu(f"kept.append(3)\n{use}").extra["result"] == expected
    assert notebook["kept"] == [1, 2, 3]


def test_what_stayed_in_the_notebook_is_itself_as_a_result(notebook: Notebook) -> None:
    notebook.local("box = [letter for letter in 'a']\ngen = iter(open('/dev/null'))\nbox.append(gen)")
    assert notebook.gpu("box[1]").extra["result"] is notebook["gen"]
    notebook["gen"].close()
