"""What is set for the context in which cells run is there on both sides: by the notebook, and in libraries."""

import functools
import sys
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

import jupyter_core.utils
import pytest

from bulletin.errors import CannotReturn, CannotSend
from bulletin.state import registrations
from bulletin.state.reducers import context_variables
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
def test_a_variable_that_a_context_has_no_longer_is_gone_from_it_on_both_sides(notebook: Notebook) -> None:
    notebook.local("import contextvars; v, w = contextvars.ContextVar('v'), contextvars.ContextVar('w')")
    notebook.local("kept, names = contextvars.copy_context(), ['v', 'w']; token = kept.run(v.set, 1); held = [kept]")
    assert notebook.gpu("[name in [held.name for held in kept] for name in names]").extra["result"] == [True, False]
    notebook.local("kept.run(v.reset, token); kept.run(w.set, [2])")
    notebook.local("del token")
    assert notebook.gpu("v in kept, kept[w], held[0] is kept").extra["result"] == (False, [2], True)
    notebook.gpu("mine = kept.run(v.set, 3)")
    notebook.gpu("back = contextvars.Context(); back.run(w.set, 'kept'); gone = back.run(v.set, 4)")
    assert notebook.local("back[v], kept[v]") == (4, 3)
    notebook.gpu("fresh = contextvars.Context(); fresh.run(w.set, 5); held.append(fresh); keep = fresh.run(v.set, 6)")
    assert notebook.local("held[1] is fresh, fresh[v]") == (True, 6)
    notebook.local("fresh = held[1] = contextvars.Context(); fresh.run(w.set, 5)")
    assert notebook.gpu("v in fresh, fresh[w], held[1] is fresh").extra["result"] == (False, 5, True)


@in_own_context
@pytest.mark.parametrize(
    "made",
    [
        "def deco():\n    v = ContextVar('far')\n    def f(x): v.set(x)\n    return f\nf = deco(); f(1)",
        "far = {'a': {'b': ContextVar('far')}}; far['a']['b'].set(1)",
        "far = [*range(250), ContextVar('far')]; far[-1].set(1)",
        "import contextlib2like; contextlib2like.Class.current.set(1)",
    ],
)
def test_a_context_with_a_variable_that_nobody_finds_stays_and_says_so(
    notebook: Notebook, install: Callable[[str, str], Path], made: str
) -> None:
    install("contextlib2like", LIBRARY + "class Class:\n    current = ContextVar('far')\n")
    notebook.local("from contextvars import ContextVar, copy_context")
    notebook.local(made)
    notebook.local("kept = copy_context()")
    with pytest.raises(CannotSend, match="'kept': it is a context with a value of 'far', a variable that is under no"):
        notebook.gpu("kept.run(len, '')")
    assert notebook.gpu("1 + 1").extra["result"] == 2


@in_own_context
def test_what_a_context_alone_has_of_a_library_goes_with_it(library: Notebook) -> None:
    library.local("import contextlib2like, contextvars; kept = contextvars.Context()")
    library.local("kept.run(contextlib2like.speak, 'fr')")
    assert library.gpu("kept.run(contextlib2like.language), contextlib2like.language()").extra["result"] == ("fr", "en")
    library.gpu("kept.run(contextlib2like.speak, 'de')")
    assert library.local("kept.run(contextlib2like.language), contextlib2like.language()") == ("de", "en")


@in_own_context
def test_a_variable_that_only_the_notebook_names_comes_back_in_its_context(notebook: Notebook) -> None:
    notebook.local("import contextvars; v = contextvars.ContextVar('v'); kept = contextvars.Context()")
    notebook.local("kept.run(v.set, [1])")
    notebook.gpu("next(value for key, value in kept.items() if key.name == 'v').append(2)")
    assert notebook.local("kept[v]") == [1, 2]


@in_own_context
def test_the_notebook_is_searched_for_variables_once_in_an_exchange(notebook: Notebook) -> None:
    searched = []

    class Watched:
        @property
        def __dict__(self) -> dict[str, Any]:
            searched.append(1)
            return {}

    notebook.local("import contextvars; kept = [contextvars.Context() for _ in range(20)]")
    notebook.ns["watched"] = Watched()
    notebook.gpu("len(kept)")
    assert len(searched) < 10


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


def test_the_loop_that_jupyter_has_for_its_calls_is_no_notebooks() -> None:
    found = [value for value in vars(jupyter_core.utils).values() if type(value) is ContextVar]
    assert found
    assert [context_variables.place_of(variable) for variable in found] == [None] * len(found)
