# ruff: noqa: E501  cells are one line each
"""What was made in another way than by calling its class: it is on the other side what it is here."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.state.notebook import Notebook

LIBRARY = """
class Base:
    __slots__ = ("_args", "_hash")
    def __new__(cls, *args):
        made = object.__new__(cls)
        made._args, made._hash = args, None
        return made
    def __getnewargs__(self):
        return self._args
    def __getstate__(self):
        return None
    def __hash__(self):
        if self._hash is None:
            self._hash = hash((type(self).__name__, *self._args))
        return self._hash
    def __eq__(self, other):
        return type(self) is type(other) and self._args == other._args

class Name(Base):
    __slots__ = ()

class Sum(Base):
    __slots__ = ("is_even",)
    def __new__(cls, *args, evaluate=True):
        if evaluate and all(type(arg) is int for arg in args):
            return sum(args)
        made = super().__new__(cls, *args)
        made.is_even = all(arg in (0, 2) for arg in args)
        return made
"""


@pytest.fixture
def library(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("sumlib", LIBRARY)
    notebook.local("from sumlib import Name, Sum")
    return notebook


def test_what_a_class_would_make_something_else_of_travels_as_it_is(library: Notebook) -> None:
    library.local("s = Sum(2, 2, evaluate=False); outer = Sum(s, Name('x')); hash(s); kept = [s]")
    told = "type(s).__name__, s._args, s.is_even, outer._args[0] is s is kept[0], hash(s) == hash(Sum(2, 2, evaluate=False))"
    assert library.gpu(f"there = Sum(1, 2, evaluate=False); {told}").extra["result"] == (
        "Sum",
        (2, 2),
        True,
        True,
        True,
    )
    assert library.local("type(there).__name__, there._args, there.is_even") == ("Sum", (1, 2), False)
    library.gpu("kept.append(there); s = Sum(0, 2, evaluate=False)")
    assert library.local("s._args, s.is_even, kept[0]._args, kept[1] is there") == ((0, 2), True, (2, 2), True)


def test_an_expression_of_sympy_that_is_not_evaluated_stays_so(notebook: Notebook) -> None:
    pytest.importorskip("sympy")
    notebook.local("import sympy as sp\nx = sp.Symbol('x'); e = sp.Add(x, x, evaluate=False)")
    assert notebook.gpu("held = {e: sp.sqrt(4, evaluate=False)}; str(e), e.args[0] is x").extra["result"] == (
        "x + x",
        True,
    )
    assert notebook.local("str(held), held[e].doit() == 2") == ("{x + x: sqrt(4)}", True)


ASKING = """
class Key:
    def __new__(cls, *args):
        if not args:
            raise TypeError("a key needs a part")
        made = object.__new__(cls)
        made.parts = list(args)
        return made
"""


def test_a_class_that_takes_any_arguments_but_none_is_not_called_without(
    notebook: Notebook, install: Callable[[str, str], Path]
) -> None:
    install("askinglib", ASKING)
    notebook.local("import askinglib; k = askinglib.Key(1); held = k.parts")
    notebook.gpu("k.parts.append(2); other = askinglib.Key(k)")
    assert notebook.local("k.parts is held, held, other.parts[0] is k") == (True, [1, 2], True)
