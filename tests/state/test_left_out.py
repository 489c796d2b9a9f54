"""What a library's own way of pickling leaves out, or copies: observers, and partners that share parts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.state.notebook import Notebook

LIBRARY = """
import weakref

class Both:
    def __init__(self, pairs):
        self._there, self._back = dict(pairs), {value: key for key, value in pairs}
        self._other = None
    @property
    def inverse(self):
        if self._other is None or self._other() is None:
            self.made = made = Both({})
            made._there, made._back, made._other = self._back, self._there, weakref.ref(self)
            self._other = weakref.ref(made)
        return self._other()
    def put(self, key, value):
        self._there[key], self._back[value] = value, key
    def __reduce__(self):
        return Both, (list(self._there.items()),)

class Heard:
    def __init__(self):
        self.value, self.observers, self.opened = 0, {"value": [print]}, None
        self.observers["value"].clear()
    def watch(self, observer):
        self.observers["value"].append(observer)
    def put(self, value):
        self.value = value
        for observer in self.observers["value"]:
            observer(value)
    def __getstate__(self):
        return {**vars(self), "observers": {"value": []}, "opened": None}
    def __setstate__(self, state):
        vars(self).update(state)
        self.was_loaded = True
"""


@pytest.fixture
def library(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("leavinglib", LIBRARY)
    notebook.local("import leavinglib")
    return notebook


def test_a_partner_that_shares_parts_with_a_value_goes_on_sharing_them(library: Notebook) -> None:
    library.local("b = leavinglib.Both([(1, 'a')]); inverse = b.inverse")
    library.gpu("b.put(2, 'b'); inverse.put('c', 3); c = leavinglib.Both([]); back = c.inverse; c.put(5, 'e')")
    assert library["inverse"]._there == {"a": 1, "b": 2, "c": 3}
    assert (library["inverse"].inverse is library["b"], library["back"]._there) == (True, {"e": 5})
    library.local("b.put(4, 'd')")
    assert library.gpu("inverse._there['d'], b.inverse is inverse").extra["result"] == (4, True)


def test_an_observer_that_a_librarys_state_leaves_out_goes_on_observing(library: Notebook) -> None:
    library.local("heard, h, K = [], leavinglib.Heard(), 7")
    library.local("h.watch(heard.append); h.watch(lambda value: heard.append(K))")
    library.gpu("h.put(1)")
    library.local("h.put(2)")
    assert library["heard"] == [1, 7, 2, 7]
    library.gpu("h.watch(heard.append); g = leavinglib.Heard(); g.watch(h.put); g.put(3)")
    library.local("g.put(4)")
    assert library["heard"] == [1, 7, 2, 7, 3, 7, 3, 4, 7, 4]
    assert library["h"].value == 4


def test_an_observer_that_cannot_travel_says_so_when_it_is_called(library: Notebook) -> None:
    library.local("h = leavinglib.Heard(); f = open('/dev/null', 'w'); h.watch(f.write)")
    assert library.gpu("h.value, h.was_loaded").extra["result"] == (0, True)
    assert "stayed in the notebook" in str(library.gpu("h.put(1)").extra["error"])
    library.local("f.close()")


def test_many_that_observe_each_other_are_looked_at_once(library: Notebook) -> None:
    library.local("chain = [leavinglib.Heard() for _ in range(300)]")
    library.local("for one, other in zip(chain, chain[1:]): one.watch(other.put)")
    library.gpu("chain[0].put(9)")
    assert library["chain"][-1].value == 9


SLOTS = """
import sys

class Number:
    __slots__ = ("content",)
    def __getstate__(self): return self.content
    def __setstate__(self, content): self.content = content

class Constant(Number):
    @property
    def content(self): return self.made_by()

def constant(made_by):
    made = Constant.__new__(Constant)
    made.made_by = made_by
    return made

class Model:
    def __init__(self, formula): self.formula, self.value = formula, eval(formula, sys._getframe(1).f_globals)
    def __getstate__(self): return {"formula": self.formula}
    def __setstate__(self, state):
        self.formula, self.value = state["formula"], eval(state["formula"], sys._getframe(1).f_globals)
"""


@pytest.fixture
def slots(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("slotslib", SLOTS)
    notebook.local("import slotslib")
    return notebook


def test_a_class_that_covers_a_slot_of_its_base_does_not_set_it(slots: Notebook) -> None:
    slots.gpu("k = 3; c = slotslib.constant(lambda: k)")
    assert slots.local("k = 4; c.content") == 4
    assert slots.gpu("k = 5; c.content").extra["result"] == 5


def test_a_formula_that_calls_a_function_of_the_notebook_finds_it_where_the_value_loads(slots: Notebook) -> None:
    slots.local("twice = lambda value: value * K; K = 2; model = slotslib.Model('twice(4)')")
    assert slots.gpu("model.value").extra["result"] == 8
