"""Modules and exceptions of a library that are unlike Python's own: lazy modules, exceptions with slots."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.state.notebook import Notebook

LIBRARY = """
import sys
from types import ModuleType

class Lazy(ModuleType):
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return f"lazy {name}"

sys.modules[__name__].__class__ = Lazy

_NOTHING = object()

class Holder:
    def __init__(self):
        self.value = _NOTHING
    def is_empty(self):
        return self.value is _NOTHING

class Several(ExceptionGroup):
    def __new__(cls, message, errors, wanted):
        self = super().__new__(cls, message, errors)
        self.wanted = wanted
        return self

class SlottedError(Exception):
    __slots__ = ("place", "later", "args")
    def __init__(self, place):
        self.place, self.args = place, (place, "told")
    def __str__(self):
        return f"at {self.place}"
"""


@pytest.fixture
def library(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("unlikelib", LIBRARY)
    return notebook


def test_a_module_of_a_librarys_own_type_travels_by_its_name(library: Notebook) -> None:
    library.local("import unlikelib; held = [unlikelib]")
    assert library.gpu("unlikelib.word, held[0] is unlikelib").extra["result"] == ("lazy word", True)
    library.gpu("import unlikelib as there")
    assert library["there"] is sys.modules["unlikelib"]


def test_a_sentinel_that_a_module_holds_is_the_receivers_own(library: Notebook) -> None:
    library.gpu("import unlikelib\nholder = unlikelib.Holder()")
    library.local("found = holder.is_empty(), holder.value is unlikelib._NOTHING")
    assert library["found"] == (True, True)
    library.local("mine = object(); both = [mine, holder.value]")
    assert library.gpu("both[0] is mine, both[1] is unlikelib._NOTHING, holder.is_empty()").extra["result"] == (
        True,
        True,
        True,
    )


def test_an_exception_group_that_is_made_of_more_comes_back(library: Notebook) -> None:
    applied = library.gpu("import unlikelib\nraise unlikelib.Several('two', [KeyError(1), ValueError(2)], int)")
    raised = applied.extra["error"]
    assert isinstance(raised, ExceptionGroup)
    assert (raised.message, [type(one) for one in raised.exceptions]) == ("two", [KeyError, ValueError])
    assert raised.wanted is int  # type: ignore[attr-defined]


def test_an_exception_keeps_what_it_has_in_slots(library: Notebook) -> None:
    applied = library.gpu("import unlikelib\nraise unlikelib.SlottedError(5)")
    raised = applied.extra["error"]
    assert (str(raised), raised.args, raised.place) == ("at 5", (5, "told"), 5)  # type: ignore[attr-defined]
    assert not hasattr(raised, "later")


def test_an_exception_takes_what_changes_in_its_slots(library: Notebook) -> None:
    library.local("import unlikelib; e = unlikelib.SlottedError(5); held = [e]")
    library.gpu("e.place, e.later = 6, held")
    assert str(library["e"]) == "at 6"
    assert library["e"].later is library["held"]
    assert library["held"][0] is library["e"]
    library.gpu("del e.later; e.place = 7")
    assert str(library["e"]) == "at 7"
    assert not hasattr(library["e"], "later")
