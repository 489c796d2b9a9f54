"""What is set for the context in which cells run is there on both sides: by the notebook, and in libraries."""

import functools
import sys
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

import pytest

from bulletin.errors import CannotReturn
from bulletin.state import registrations
from tests.state.notebook import Executor, Notebook

LIBRARY = """
from contextvars import ContextVar, copy_context

_locale, _bound, _loop = ContextVar("locale", default="en"), {}, ContextVar("loop")

def bind(**values):
    for name, value in values.items():
        _bound.setdefault(name, ContextVar(name, default=...)).set(value)

def bound():
    return {name: held.get() for name, held in _bound.items() if held.get() is not ...}

def speak(locale):
    _locale.set(locale)

def language():
    return _locale.get()
"""


def in_own_context(test: Callable[..., None]) -> Callable[..., None]:
    """Let what a test binds be bound for nobody after it: all tests of a process have one context."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        copy_context().run(test, *arguments, **named)

    return run


@pytest.fixture
def library(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("contextlib2like", LIBRARY)
    return notebook


@in_own_context
def test_a_variable_of_the_notebook_has_its_value_on_both_sides(notebook: Notebook) -> None:
    notebook.local("import contextvars; v, w = contextvars.ContextVar('v', default=1), contextvars.ContextVar('w')")
    notebook.local("held, token = {'v': v}, v.set(5); numbers = []")
    assert notebook.gpu("v.get(), held['v'] is v, w.get(None)").extra["result"] == (5, True, None)
    notebook.gpu("old = v.set(numbers); numbers.append(v.get() is numbers); _ = w.set(7)")
    assert type(notebook["v"]) is ContextVar
    assert (notebook["v"].get() is notebook["numbers"], notebook["w"].get()) == (True, 7)
    assert notebook["held"]["v"] is notebook["v"]


@in_own_context
def test_what_a_cell_binds_for_its_context_in_a_library_is_bound_on_both_sides(library: Notebook) -> None:
    library.local("import contextlib2like; contextlib2like.bind(a=1); contextlib2like.speak('fr')")
    assert library.gpu("contextlib2like.bound(), contextlib2like.language()").extra["result"] == ({"a": 1}, "fr")
    library.gpu("contextlib2like.bind(a=2, b=[3]); contextlib2like.speak('de')")
    assert library.local("contextlib2like.bound(), contextlib2like.language()") == ({"a": 2, "b": [3]}, "de")
    library.local("contextlib2like.speak('en')")
    assert library.gpu("contextlib2like.language()").extra["result"] == "en"


@in_own_context
def test_a_cell_that_fails_on_its_way_back_leaves_the_context_as_it_was(
    library: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.local("import contextlib2like, sys; contextlib2like.speak('fr')")
    library.local(
        "class Lost:\n    def __setstate__(self, state):\n        if hasattr(sys, 'lost'): raise KeyError('lost')"
    )
    library.local("x = Lost(); x.n = 1")
    library.gpu("x.n, y = 2, contextlib2like.language()")
    monkeypatch.setattr(sys, "lost", True, raising=False)
    with pytest.raises(CannotReturn, match="lost"):
        library.gpu("x.n = 3; contextlib2like.speak('de')")
    assert library.local("contextlib2like.language()") == "fr"


@in_own_context
def test_what_one_notebooks_library_has_bound_comes_to_no_other_notebook(
    library: Notebook, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.gpu("import contextlib2like; contextlib2like.bind(a=1); contextlib2like.speak('fr')")
    registrations.forget()
    other = Notebook(executor)
    monkeypatch.setitem(sys.modules, "__main__", other.module)
    other.local("import contextlib2like")
    assert other.gpu("contextlib2like.bound(), contextlib2like.language()").extra["result"] == ({}, "en")
    other.gpu("x = 1")
    assert b"contextlib2like" not in b"".join(map(bytes, other.answer["parts"]))
    assert other.local("contextlib2like.language()") == "en"
    other.gpu("contextlib2like.speak('de')")
    assert other.local("contextlib2like.language()") == "de"


@in_own_context
def test_a_token_of_either_side_sets_its_variable_back_on_both(notebook: Notebook) -> None:
    notebook.local("import contextvars; v, w = contextvars.ContextVar('v'), contextvars.ContextVar('w', default=0)")
    notebook.local("first = v.set(1); second = v.set(2)")
    assert notebook.gpu("v.reset(second); v.get()").extra["result"] == 1
    assert notebook.local("v.get(), second.old_value") == (1, 1)
    with pytest.raises(RuntimeError, match="already been used"):
        notebook.local("v.reset(second)")
    notebook.gpu("v.reset(first)")
    assert notebook.local("v.get('none')") == "none"
    notebook.gpu("mine = v.set([5]); other = w.set(6)")
    assert notebook.local("v.get(), mine.var is v, mine.old_value is contextvars.Token.MISSING") == ([5], True, True)
    notebook.local("v.reset(mine); w.reset(other)")
    ask = "v.get('none'), w.get()"
    assert notebook.gpu(ask).extra["result"] == notebook.local(ask) == ("none", 0)
    assert notebook.local("first.var is v, second.var is v") == (True, True)


@in_own_context
def test_a_context_is_run_in_on_both_sides(notebook: Notebook) -> None:
    notebook.local("import contextvars; v = contextvars.ContextVar('v', default=0); v.set(1)")
    notebook.local("kept = contextvars.copy_context(); v.set(2)")
    assert notebook.gpu("kept[v], kept.run(v.get), v.get()").extra["result"] == (1, 1, 2)
    notebook.gpu("kept.run(v.set, [7]); made = contextvars.copy_context(); print(len(made) > 0)")
    assert notebook.local("kept[v], v.get(), made[v], made.run(v.get)") == ([7], 2, 2, 2)
    notebook.local("made.run(v.set, 'here')")
    assert notebook.gpu("made.run(v.get), v.get()").extra["result"] == ("here", 2)


@in_own_context
def test_a_variable_that_a_setting_carries_is_left_to_it(
    notebook: Notebook, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpy = pytest.importorskip("numpy")
    with numpy.errstate():
        for book in (notebook, Notebook(executor), Notebook(executor)):
            monkeypatch.setitem(sys.modules, "__main__", book.module)
            book.local("import numpy; numpy.seterr(over='ignore')")
            assert book.gpu("numpy.geterr()['over']").extra["result"] == "ignore"
            registrations.forget()
