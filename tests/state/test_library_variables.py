"""What people set in a library holds on both sides: entries of its dicts, lists, and variables of its modules."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .notebook import Notebook

LIBRARY = """
import functools, itertools
from collections import defaultdict
LIMIT, PATHS, SIZES = 5, ["a"], {"small": 1, "large": 9}
MODEL = theme = None
SIZE, _known = (6, 4), PATHS

class Theme:
    def __init__(self, name): self.name = name

def set_theme(chosen): globals()["theme"] = chosen

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


def test_what_is_added_to_a_librarys_list_is_in_it_wherever_the_library_has_that_list(varied: Notebook) -> None:
    varied.local("varied.PATHS.append('b')")
    assert varied.gpu("varied.PATHS, varied.paths()").extra["result"] == (["a", "b"], ["a", "b"])
    varied.gpu("varied.PATHS.append('c')")
    assert varied.local("varied.PATHS, varied.paths()") == (["a", "b", "c"], ["a", "b", "c"])


def test_a_name_that_somebody_gives_a_module_of_a_library_is_there_with_what_it_holds(varied: Notebook) -> None:
    varied.gpu("varied.mine = 3")
    assert varied.local("varied.mine") == 3
    varied.gpu("varied.mine = [1]")
    varied.local("varied.mine.append(2)")
    assert varied.gpu("varied.mine").extra["result"] == [1, 2]
    varied.gpu("varied.mine.append(3); mine = varied.mine")
    assert varied.local("varied.mine, mine is varied.mine") == ([1, 2, 3], True)
    varied.local("del varied.mine")
    assert varied.gpu("hasattr(varied, 'mine')").extra["result"] is False


def test_parts_of_a_library_that_its_own_name_leads_to_are_looked_at_too(varied: Notebook) -> None:
    varied.local("varied_parts.adapters.RETRIES = 4; varied_parts.adapters.PORTS['http'] = 81")
    ask = "varied_parts.adapters.RETRIES, varied_parts.adapters.PORTS, varied_parts.adapters._counted"
    assert varied.gpu(ask).extra["result"] == (4, {"http": 81}, 0)
    varied.gpu("varied_parts.adapters.PORTS['http'] = 82; varied_parts.adapters.RETRIES += 1")
    assert varied.local(ask) == (5, {"http": 82}, 0)


def test_what_a_library_is_given_as_its_theme_is_its_theme_on_both_sides(varied: Notebook) -> None:
    varied.gpu("varied.set_theme(varied.Theme('dark')); varied.SIZE = (3, 2)")
    assert varied.local("varied.theme.name, varied.SIZE") == ("dark", (3, 2))
    varied.local("varied.theme.name = 'darker'; shown = varied.theme")
    assert varied.gpu("varied.theme.name, varied.theme is shown").extra["result"] == ("darker", True)
    varied.local("varied.set_theme(varied.Theme('light'))")
    assert varied.gpu("varied.theme.name, shown.name").extra["result"] == ("light", "darker")


def test_what_a_library_counts_for_an_object_of_the_notebook_goes_on_on_the_other_side(varied: Notebook) -> None:
    varied.local("class Model: pass\nm = Model()\nfirst = varied.Agent(m).number")
    assert varied.gpu("varied.Agent(m).number, varied.Agent(m).number").extra["result"] == (2, 3)
    assert varied.local("first, varied.Agent(m).number") == (1, 4)


def test_an_error_of_a_library_that_is_pickled_as_texts_has_all_that_it_had(varied: Notebook) -> None:
    varied.local("e = varied.Failed('no', [1]); cases = e.cases")
    assert varied.gpu("cases.append(2); e.cases, e.args").extra["result"] == ([1, 2], ("no",))
    assert varied.local("e.cases is cases, cases") == (True, [1, 2])
    applied = varied.gpu("raise varied.Failed('there', {'a': 1})")
    assert applied.extra["error"].cases == {"a": 1}
