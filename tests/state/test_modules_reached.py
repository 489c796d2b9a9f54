# ruff: noqa: E501  cells are one line each
"""A file that is edited between cells is seen by each cell that may use it, however it gets there."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin import state
from bulletin.state import modules

from .notebook import Notebook

NAMES = ("outer_of_test", "inner_of_test", "fresh_of_test")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The notebook's folder, with a module that imports another one inside a function."""
    home = tmp_path / "notebook"
    home.mkdir()
    monkeypatch.syspath_prepend(home)
    (home / "outer_of_test.py").write_text(
        "def ask():\n    import inner_of_test\n    return inner_of_test.WORD\nclass Asker:\n    def ask(self): return ask()\n"
    )
    write(home, "inner_of_test", "WORD = 'old'\n")
    yield home
    for name in NAMES:
        sys.modules.pop(name, None)
    modules.observe()


def write(home: Path, name: str, text: str) -> None:
    (home / f"{name}.py").write_text(text)
    importlib.invalidate_caches()


WAYS = {
    "its function": ("ask = outer_of_test.ask", "ask()"),
    "a function in a list": ("held = [outer_of_test.ask]", "held[0]()"),
    "a function in a function": ("def own(f=outer_of_test.ask): return f()", "own()"),
    "a bound method": ("held = {'m': outer_of_test.Asker().ask}", "held['m']()"),
    "an instance": ("thing = outer_of_test.Asker()", "thing.ask()"),
    "an instance inside": ("things = [[outer_of_test.Asker()]]", "things[0][0].ask()"),
    "a class": ("Kind = outer_of_test.Asker", "Kind().ask()"),
    "a class of the notebook that derives": ("class Own(outer_of_test.Asker): pass", "Own().ask()"),
    "the module": ("m = outer_of_test", "m.ask()"),
    "an import": ("1", "import outer_of_test as o\no.ask()"),
    "an import of a part": ("1", "from outer_of_test import ask as a\na()"),
    "a text": ("1", "exec('import outer_of_test as o'); o.ask()"),
    "a computed name": ("name = 'outer'", "import importlib\nimportlib.import_module(name + '_of_test').ask()"),
    "a pickle": (
        "import pickle\nwritten = pickle.dumps(outer_of_test.Asker())",
        "import pickle\npickle.loads(written).ask()",
    ),
    "a function that does": ("def own():\n  import outer_of_test as o\n  return o.ask()", "own()"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_cell_that_may_use_a_module_has_its_files_as_they_are(way: str, notebook: Notebook, folder: Path) -> None:
    setup, cell = WAYS[way]
    notebook.local("import outer_of_test\n" + setup + "\ndel outer_of_test" * (way != "the module"))
    notebook.gpu("pass")
    write(folder, "inner_of_test", "WORD = 'edited, and longer'\n")
    notebook.gpu("1 + 1")
    assert notebook.gpu(cell).extra["result"] == "edited, and longer"


def test_a_module_that_came_since_is_there_for_a_cell_that_reaches_what_imports_it(
    notebook: Notebook, folder: Path
) -> None:
    write(folder, "inner_of_test", "def word():\n    import fresh_of_test\n    return fresh_of_test.WORD\nWORD = 1\n")
    notebook.local("import inner_of_test")
    notebook.gpu("pass")
    write(folder, "fresh_of_test", "WORD = 'fresh'\n")
    notebook.gpu("[n for n in range(3)]")
    assert notebook.gpu("inner_of_test.word()").extra["result"] == "fresh"


def test_a_reload_is_there_for_the_next_cell_that_reaches_the_module(notebook: Notebook, folder: Path) -> None:
    notebook.local("import inner_of_test, importlib")
    assert notebook.gpu("inner_of_test.WORD").extra["result"] == "old"
    write(folder, "inner_of_test", "WORD = 'reloaded, and longer'\n")
    notebook.local("importlib.reload(inner_of_test)")
    notebook.gpu("pass")
    assert notebook.gpu("inner_of_test.WORD").extra["result"] == "reloaded, and longer"
    notebook.local("inner_of_test.WORD = 'set'")
    notebook.gpu("pass")
    assert notebook.gpu("inner_of_test.WORD").extra["result"] == "set"


def test_a_cell_that_reaches_no_module_of_the_notebook_looks_into_no_folder(
    notebook: Notebook, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.local("import outer_of_test, math; a = [1]\ndef own(): return math.pi")
    notebook.gpu("outer_of_test.ask()")
    notebook.gpu("outer_of_test.ask()")  # what the first has loaded, the executor is told of now
    monkeypatch.setattr("bulletin.state.modules.notebook.Search", None)  # who searches fails
    for cell in ("pass", "a.append(2)", "own()", "import_ = 3"):
        notebook.gpu(cell)
    with pytest.raises(TypeError):
        state.capture(notebook.ns, state.needs("outer_of_test", notebook.ns), table=notebook.table)
