"""What people set in a library holds on both sides: entries of its dicts, lists, and variables of its modules."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bulletin import state
from bulletin.errors import CannotReturn

from .notebook import Executor, Notebook

LIBRARY = """
import functools, itertools
from collections import defaultdict
LIMIT, PATHS, SIZES = 5, ["a"], {"small": 1, "large": 9}
has_gpu = last_session = None
is_there = __import__("os").environ.get("THERE") == "yes"
FOUND, TOKENS = ["cpu", "first"] if is_there else ["cpu"], {"of_user": "abc"}
API_KEY, backend, LONG = "none", "agg", "short"

class Kind: kinds = defaultdict(list)
class Special(Kind): pass
MODEL = theme = None
SIZE, _known = (6, 4), PATHS

class Theme:
    def __init__(self, name): self.name = name

def set_theme(chosen): globals()["theme"] = chosen

def find_gpu():
    global has_gpu
    if has_gpu is None: has_gpu = is_there
    return has_gpu

class Unloadable:
    def __reduce__(self): return unloadable, ()

def unloadable():
    if not is_there: raise ValueError("not here")
    return Unloadable()

class Agent:
    _ids = defaultdict(functools.partial(itertools.count, 1))
    def __init__(self, model): self.number = next(self._ids[model])

class Failed(Exception):
    # Makes texts of what it has for its pickle, as pandera's do.
    def __init__(self, text, cases):
        super().__init__(text)
        self.cases = cases
    def __reduce__(self): return failed_again, (self.args[0], str(self.cases))

def failed_again(text, cases): return Failed(text, cases)

def paths(): return list(_known)
"""
PART = "RETRIES = 0\nPORTS = {'http': 80}\n_counted = 0\n"


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[Executor]:
    executor = Executor({"THERE": "yes"})
    yield executor
    executor.close()


@pytest.fixture
def varied(notebook: Notebook, install: Callable[[str, str], Path]) -> Iterator[Notebook]:
    folder = install("varied", LIBRARY)
    (folder / "varied_parts").mkdir()
    (folder / "varied_parts" / "__init__.py").write_text("from . import adapters\n")
    (folder / "varied_parts" / "adapters.py").write_text(PART)
    notebook.local("import varied, varied_parts")
    notebook.gpu("varied, varied_parts")
    yield notebook
    for name in ("varied_parts", "varied_parts.adapters"):
        sys.modules.pop(name, None)


def test_another_value_under_a_key_that_a_librarys_dict_had_is_there_on_the_other_side(varied: Notebook) -> None:
    varied.local("varied.SIZES['small'] = 2")
    assert varied.gpu("varied.SIZES").extra["result"] == {"small": 2, "large": 9}
    varied.gpu("varied.SIZES['large'] = 8; varied.SIZES['huge'] = 99")
    assert varied.local("varied.SIZES") == {"small": 2, "large": 8, "huge": 99}
    varied.local("del varied.SIZES['huge']")
    assert varied.gpu("varied.SIZES").extra["result"] == {"small": 2, "large": 8}


def test_a_limit_that_is_taken_away_is_away_on_the_other_side(varied: Notebook) -> None:
    varied.local("varied.LIMIT = None")
    assert varied.gpu("varied.LIMIT").extra["result"] is None
    varied.gpu("varied.LIMIT = 7")
    assert varied.local("varied.LIMIT") == 7
    varied.gpu("varied.MODEL = 'found there'")  # by the library, for all that is known
    assert varied.local("varied.MODEL") is None


def test_a_list_of_a_library_is_that_of_each_side_since_libraries_fill_theirs_themselves(varied: Notebook) -> None:
    varied.local("varied.PATHS.append('b'); varied.FOUND = ['cpu', 'more']")
    assert varied.gpu("varied.PATHS, varied.paths(), varied.FOUND").extra["result"] == (["a"], ["a"], ["cpu", "first"])
    varied.gpu("varied.PATHS.append('c')")
    assert varied.local("varied.PATHS") == ["a", "b"]


def test_a_name_that_somebody_gives_a_module_of_a_library_is_there_with_what_it_holds(varied: Notebook) -> None:
    varied.gpu("varied.mine = 3")
    assert varied.local("varied.mine") == 3


def test_parts_of_a_library_that_its_own_name_leads_to_are_looked_at_too(varied: Notebook) -> None:
    varied.local("varied_parts.adapters.RETRIES = 4; varied_parts.adapters.PORTS['http'] = 81")
    ask = "varied_parts.adapters.RETRIES, varied_parts.adapters.PORTS, varied_parts.adapters._counted"
    assert varied.gpu(ask).extra["result"] == (4, {"http": 81}, 0)
    varied.gpu("varied_parts.adapters.PORTS['http'] = 82; varied_parts.adapters.RETRIES += 1")
    assert varied.local(ask) == (5, {"http": 82}, 0)


def test_a_tuple_that_takes_the_place_of_a_librarys_is_there_on_both_sides(varied: Notebook) -> None:
    varied.gpu("varied.SIZE = (3, 2)")
    assert varied.local("varied.SIZE") == (3, 2)


def test_an_instance_that_a_library_is_given_stays_on_its_side(varied: Notebook) -> None:
    varied.local("varied.set_theme(varied.Theme('dark'))")
    assert varied.gpu("varied.theme").extra["result"] is None
    varied.gpu("varied.last_session = varied.Theme('secret of the node')")
    assert varied.local("varied.last_session, varied.theme.name") == (None, "dark")


def test_a_library_that_finds_out_what_it_runs_on_finds_it_out_on_each_side(varied: Notebook) -> None:
    assert varied.local("varied.find_gpu()") is False
    assert varied.gpu("varied.find_gpu()").extra["result"] is True
    varied.gpu("varied.backend = 'cuda'")
    assert varied.local("varied.find_gpu(), varied.backend") == (False, "agg")


def test_what_may_hold_a_secret_stays_on_its_side(varied: Notebook) -> None:
    varied.local("s = 'hush'.upper(); varied.API_KEY = varied.TOKENS['of_user'] = varied.SIZES['password'] = s; del s")
    captured = b"".join(map(bytes, state.capture(varied.ns, state.needs("varied", varied.ns)).parts))
    assert "hush".upper().encode() not in captured
    ask = "varied.API_KEY, varied.TOKENS, 'password' in varied.SIZES"
    assert varied.gpu(ask).extra["result"] == ("none", {"of_user": "abc"}, False)
    varied.gpu("varied.API_KEY = 'of the node'")
    assert varied.local("varied.API_KEY") == "hush".upper()


def test_what_is_large_is_no_setting_and_takes_no_room(varied: Notebook) -> None:
    varied.local("varied.LONG = 'long'")
    assert varied.gpu("varied.LONG").extra["result"] == "long"
    varied.local("varied.PATHS.append(bytearray(2_000_000)); varied.LONG = 'y' * 2_000_000")
    assert varied.gpu("varied.PATHS, varied.LONG").extra["result"] == (["a"], "long")
    assert varied.captured is not None
    assert sum(memoryview(part).nbytes for part in varied.captured.parts) < 100_000


def test_what_a_cell_set_that_could_not_return_is_as_it_was(varied: Notebook) -> None:
    varied.local("held = []")
    with pytest.raises(CannotReturn):
        varied.gpu("varied.LIMIT = 9; varied.SIZES['small'] = 3; held.append(varied.Unloadable())")
    ask = "varied.LIMIT, varied.SIZES"
    expected = (5, {"small": 1, "large": 9})
    assert varied.gpu(ask).extra["result"] == expected
    assert varied.local(ask) == expected


@pytest.mark.parametrize("agreed", ["", "varied.LIMIT = 8"])
def test_what_a_notebook_sets_while_a_cell_is_under_way_stays(varied: Notebook, agreed: str) -> None:
    varied.local(agreed)
    varied.gpu("varied")
    cell = "varied.SIZES['small'] = 3; varied.SIZE = (1, 1)"
    captured = state.capture(varied.ns, state.needs(cell, varied.ns), table=varied.table)
    meanwhile = state.depart(varied.ns, captured)
    varied.local("varied.LIMIT = 2; varied.SIZE = (2, 2)")
    answer = varied.executor.ask(cell, captured.parts)
    state.apply(answer["parts"], varied.ns, sent=captured, meanwhile=meanwhile)
    expected = (2, 3, (2, 2))
    ask = "varied.LIMIT, varied.SIZES['small'], varied.SIZE"
    assert varied.local(ask) == expected
    assert varied.gpu(ask).extra["result"] == expected


def test_what_a_library_counts_for_an_object_of_the_notebook_goes_on_on_the_other_side(varied: Notebook) -> None:
    varied.local("class Model: pass\nm = Model()\nfirst = varied.Agent(m).number")
    assert varied.gpu("varied.Agent(m).number, varied.Agent(m).number").extra["result"] == (2, 3)
    assert varied.local("first, varied.Agent(m).number") == (1, 4)


def test_a_dict_that_a_class_gets_of_its_own_is_of_the_kind_that_it_inherits(varied: Notebook) -> None:
    varied.local("class Mine: pass\nvaried.Special.kinds = varied.Special.kinds.copy(); varied.Special.kinds[Mine] = 1")
    ask = "varied.Special.kinds[Mine], varied.Special.kinds.default_factory, Mine in varied.Kind.kinds"
    assert varied.gpu(ask).extra["result"] == (1, list, False)


def test_an_error_of_a_library_that_is_pickled_as_texts_has_all_that_it_had(varied: Notebook) -> None:
    varied.local("e = varied.Failed('no', [1]); cases = e.cases")
    assert varied.gpu("cases.append(2); e.cases, e.args").extra["result"] == ([1, 2], ("no",))
    assert varied.local("e.cases is cases, cases") == (True, [1, 2])
    applied = varied.gpu("raise varied.Failed('there', {'a': 1})")
    assert applied.extra["error"].cases == {"a": 1}
