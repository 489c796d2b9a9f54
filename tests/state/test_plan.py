"""What a plan says before a cell, and what the table says after it, against what really travels."""

import sys
import threading
from pathlib import Path

import pytest

from bulletin import state
from bulletin.state.holdings import Holdings, Home, holdings
from bulletin.state.plan import Fate, Plan, Row, rehearse

from .notebook import Notebook

BLOCK = 2**20


def plan(notebook: Notebook, cell: str) -> Plan:
    return rehearse(notebook.ns, state.needs(cell, notebook.ns), table=notebook.table)


def rows(found: Plan) -> dict[str, Row]:
    """By name; without these tests themselves, which are modules of the user's as well."""
    assert len({row.name for row in found.rows}) == len(found.rows)
    return {row.name: row for row in found.rows if row.name.partition(".")[0] != "tests"}


def held(notebook: Notebook) -> Holdings:
    return holdings(notebook.ns, notebook.table)


def sent(notebook: Notebook) -> int:
    assert notebook.captured is not None
    return sum(memoryview(part).nbytes for part in notebook.captured.parts)


@pytest.fixture
def arrays(notebook: Notebook) -> Notebook:
    pytest.importorskip("numpy")
    notebook.local("import numpy as np\nbig = np.zeros(3 * 2**17)\nother = [1, 2]\nunused = 'x' * 1000")
    return notebook


def test_a_plan_is_what_is_then_sent_to_the_byte_and_leaves_the_table_alone(arrays: Notebook) -> None:
    cell = "big[0] = 1\nother.append(3)\nn = len(other)"
    for _ in range(3):
        version, roots = arrays.table.version, list(arrays.table.units)
        found = plan(arrays, cell)
        assert plan(arrays, cell) == found
        assert (arrays.table.version, list(arrays.table.units)) == (version, roots)
        arrays.gpu(cell)
        assert found.total_bytes == sent(arrays)
        assert found.rest_bytes == found.total_bytes - sum(row.sent_bytes for row in found.rows) > 0


def test_the_first_time_all_is_sent_then_nothing_then_the_block_that_changed(arrays: Notebook) -> None:
    cell = "s = big.sum(), len(other)"
    first = rows(plan(arrays, cell))
    assert list(first) == ["big", "other"]
    assert (first["big"].kind, first["big"].fate, first["other"].fate) == ("array", Fate.SENT, Fate.SENT)
    assert 3 * BLOCK < first["big"].sent_bytes == first["big"].size_bytes < 3 * BLOCK + 1_000
    arrays.gpu(cell)
    assert {name: (row.fate, row.sent_bytes) for name, row in rows(plan(arrays, cell)).items()} == {
        "big": (Fate.THERE, 0),
        "other": (Fate.THERE, 0),
    }
    arrays.local("big[2**17] = 5")
    again = rows(plan(arrays, cell))
    assert BLOCK <= again["big"].sent_bytes < BLOCK + 1_000
    assert (again["big"].note, again["other"].sent_bytes) == ("Only the parts that changed.", 0)


def test_what_two_names_share_is_counted_once(arrays: Notebook) -> None:
    arrays.local("alias = big\nview = big[10:]")
    found = rows(plan(arrays, "big, alias, view"))
    assert found["big"].sent_bytes > 3 * BLOCK
    assert (found["alias"].sent_bytes, found["alias"].note) == (0, "The same one as big.")
    assert found["view"].sent_bytes < 1_000
    assert found["view"].note == "It shares memory with big."


def test_refused_names_are_all_named_and_the_others_are_still_shown(notebook: Notebook) -> None:
    notebook.ns["lock"] = threading.Lock()
    with notebook.ns["lock"]:
        notebook.local("gen = (i for i in 'ab')\na = [1]\ntext = 'abc'")
        found = plan(notebook, "next(gen), lock, a, text")
    assert [(error.name, error.kind) for error in found.refused] == [("gen", "generator"), ("lock", "_thread.lock")]
    assert [(row.name, row.kind, row.fate) for row in rows(found).values()] == [
        ("a", "list", Fate.SENT),
        ("text", "str", Fate.SENT),
        ("gen", "generator", Fate.REFUSED),
        ("lock", "lock", Fate.REFUSED),
    ]


def test_a_lock_inside_a_value_stays_behind_by_its_path(notebook: Notebook) -> None:
    notebook.ns["lock"] = threading.Lock()
    with notebook.ns["lock"]:
        notebook.local("cfg = {'db': [lock], 'n': 1}")
        found = rows(plan(notebook, "cfg['n']"))
    assert found["cfg"].fate is Fate.SENT
    stays = found["cfg['db'][0]"]
    assert (stays.fate, stays.kind, stays.sent_bytes) == (Fate.STAYS, "lock", 0)
    assert stays.note == "A lock cannot travel. The cell gets a placeholder, which says so when it is used."


def test_functions_classes_and_modules_have_rows_of_their_own(notebook: Notebook) -> None:
    notebook.local(
        "import math\nk = 1\ndef f():\n  def inner(): return k\n  return inner\n"
        "class C:\n  def m(self): return f()\nbox = [lambda: 1, lambda: 2]"
    )
    found = rows(plan(notebook, "C().m(), math.pi, box"))
    assert {name: (row.kind, row.fate) for name, row in found.items()} == {
        "C": ("class", Fate.SENT),
        "math": ("module", Fate.BY_NAME),
        "box": ("list", Fate.SENT),
        "f": ("function", Fate.SENT),
        "k": ("int", Fate.SENT),
        "other functions and classes": ("2 definitions", Fate.SENT),
    }
    assert all(row.sent_bytes > 0 for row in found.values() if row.fate is Fate.SENT)


def test_a_cell_that_may_look_up_anything_takes_everything(notebook: Notebook) -> None:
    notebook.local("a = [1]\nb = [2]")
    assert not plan(notebook, "a").is_open
    found = plan(notebook, "eval('a')")
    assert found.is_open
    assert {"a", "b"} <= rows(found).keys()


def test_sources_of_modules_beside_the_notebook_are_sent_once(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "def twice(x):\n    return 2 * x\n"
    (tmp_path / "plan_beside.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    notebook.local("import plan_beside")
    row = rows(plan(notebook, "plan_beside.twice(2)"))["plan_beside"]
    assert (row.kind, row.fate, row.sent_bytes) == ("your module", Fate.SENT, len(text))
    assert str(tmp_path / "plan_beside.py") in row.note
    assert notebook.gpu("plan_beside.twice(2)").extra["result"] == 4
    assert rows(plan(notebook, "plan_beside.twice(2)"))["plan_beside"].fate is Fate.BY_NAME
    assert "plan_beside" in held(notebook).modules
    del sys.modules["plan_beside"]


def test_a_value_that_stayed_on_the_pool_is_there_already(notebook: Notebook) -> None:
    notebook.gpu("gen = (i for i in 'ab')")
    row = rows(plan(notebook, "next(gen)"))["gen"]
    assert (row.kind, row.fate, row.sent_bytes) == ("generator", Fate.THERE, 0)
    gone = rehearse(notebook.ns, state.needs("next(gen)", notebook.ns), table=state.Table())
    assert [(row.name, row.kind, row.fate) for row in rows(gone).values()] == [("gen", "generator", Fate.REFUSED)]


# --- what is there


def test_nothing_is_held_before_the_first_cell(arrays: Notebook) -> None:
    assert held(arrays) == Holdings((), 0, 0, ())


def test_holdings_name_what_is_on_both_sides_and_what_is_only_there(arrays: Notebook) -> None:
    arrays.local("view = big[8:]")
    arrays.gpu("big[0] = 1\nview\nmade = np.ones(1000)\ngen = (i for i in 'ab')\nbox = [gen, (i for i in 'cd')]")
    found = held(arrays)
    places = {value.name: (value.kind, value.home, value.array_bytes) for value in found.values}
    assert places == {
        "big": ("array", Home.BOTH, 3 * BLOCK),
        "view": ("array", Home.BOTH, 3 * BLOCK),
        "made": ("array", Home.BOTH, 8_000),
        "gen": ("generator", Home.THERE, 0),
        "box": ("list", Home.BOTH, 0),
        "box[1]": ("generator", Home.THERE, 0),
    }
    assert found.array_bytes == 3 * BLOCK + 8_000


def test_values_without_a_name_are_counted_until_the_next_cell_drops_them(arrays: Notebook) -> None:
    arrays.gpu("len(other)")
    arrays.local("other = None")
    assert held(arrays).nameless == 1
    arrays.gpu("1")
    assert held(arrays).nameless == 0


def test_what_a_cell_put_into_a_library_and_cannot_be_loaded_here_is_nobodys_value_without_a_name(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    notebook.gpu(
        "import os, sys\nhere = os.getpid()\n"
        "def load(pid):\n    if pid != os.getpid():\n        raise OSError('elsewhere')\n    return Hook()\n"
        "class Hook:\n    def __call__(self, *_):\n        pass\n"
        "    def __reduce__(self):\n        return load, (here,)\nsys.excepthook = Hook()"
    )
    assert held(notebook).nameless == 0


def test_a_handle_without_its_executor_is_gone(notebook: Notebook) -> None:
    notebook.gpu("gen = (i for i in 'ab')")
    assert [value.home for value in holdings(notebook.ns, state.Table()).values] == [Home.GONE]


def test_what_a_hook_holds_goes_with_each_cell_and_is_told_by_the_hooks_name(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    notebook.local(
        f"import sys\ndef make():\n    held = bytearray({BLOCK})\n    return lambda *_: held\nsys.excepthook = make()"
    )
    found = rows(plan(notebook, "1"))["other functions and classes"]
    assert found.sent_bytes > BLOCK
    assert found.note == "Among them, as you set it: sys.excepthook."
