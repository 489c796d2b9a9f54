"""Which modules a cell names, and which values of theirs are the same: decided without an executor."""

import sys
import types
from typing import Any

import pytest

from bulletin.state import lookups, modules
from bulletin.state.modules import attributes

from .module_book import Book


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b as c, d", ["a.b", "d"]),
        ("from a import b, c", ["a", "a.b", "a.c"]),
        ("from a import *", ["a"]),
        ("def f():\n    class C:\n        import inner\n", ["inner"]),
        ("importlib.import_module('x.y')\n__import__('z')", ["x.y", "z"]),
        ("'not.imported'", []),
        ("async def f():\n    import g\nawait f()", ["g"]),
        ("%time import timed", ["timed"]),
        ("%%time\nimport timed", ["timed"]),
        ("!ls\nimport after", ["after"]),
        ("import broken (", []),
        ("if True:\n" + "".join(f"    x{n} = {n}.5\n" for n in range(400)) + "    import far\n", ["far"]),
    ],
)
def test_imports_of_a_cell(source: str, names: list[str]) -> None:
    assert list(modules.imports_of_cell(source)) == names


def test_relative_imports_start_from_the_package() -> None:
    text = "from . import a\nfrom .b import c\nfrom ..d import e\nfrom ....f import g"
    assert modules.imports_of(text, "p.q") == ("p.q", "p.q.a", "p.q.b", "p.q.b.c", "p.d", "p.d.e")
    assert lookups.imports(compile("from .x import y", "<f>", "exec")) == (".x", ".x.y")


@pytest.mark.parametrize("pair", [(1, True), (0.0, -0.0), ([1], (1,)), ({1: 2, 3: 4}, {3: 4, 1: 2}), ("a", b"a")])
def test_tokens_tell_values_apart(pair: tuple[object, object]) -> None:
    first, second = map(attributes.token_of, pair)
    assert first is not None
    assert second is not None
    assert first != second


def test_tokens_do_not_depend_on_who_else_holds_a_value() -> None:
    text = f"some {'text'}"
    assert attributes.token_of([text, text]) == attributes.token_of([f"some {word}" for word in ("text", "text")])
    assert attributes.token_of([object()]) is None
    assert attributes.token_of({"a": {1: bytearray()}}) is None


def test_a_value_that_nothing_but_code_of_its_own_describes_is_not_asked(book: Book) -> None:
    class Strange(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    class Stranger:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    sys.modules["strange_one"], sys.modules["strange_two"] = Strange("strange_one"), Stranger()  # type: ignore[assignment]
    try:
        shipment, _ = book.modules.out(["strange_one", "strange_two.part"])
    finally:
        del sys.modules["strange_one"], sys.modules["strange_two"]
    assert shipment.wanted == ()
