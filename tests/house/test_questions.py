"""A name that reads like a question or a look-up changes nothing."""

import ast
from collections.abc import Iterator

import pytest

from tests.house.packages import ROOT, files

#: How the names of questions and look-ups begin.
PREFIXES = ("is_", "has_", "can_", "may_", "was_", "are_", "needs_", "knows_", "get_", "find_", "of_", "describe_")
NAMES = frozenset({"get", "of", "has", "at", "find"})
PROPERTIES = frozenset({"property", "cached_property", "functools.cached_property"})
#: Methods of containers that change them.
CHANGING = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove",
     "setdefault", "update"}
)  # fmt: skip
#: A queue's `get` takes what it returns, as everywhere in Python.
GETS = {"bulletin_magic/connection/delivery_queue.py get"}
#: Folders whose inside is to be redesigned, with how many such names they have; there must not be more.
OPEN = {"gpu_worker/scheduler": 1}


def questions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions whose names read like questions, each with its file. `find_or_add` says what it does."""
    for path in files():
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            name = node.name.lstrip("_")
            is_property = any(ast.unparse(decorator) in PROPERTIES for decorator in node.decorator_list)
            if is_property or name in NAMES or (name.startswith(PREFIXES) and "_or_" not in name):
                yield str(path), node


def changes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """What of its own object a function changes. What is called a cache changes no answer."""
    for node in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = [one for target in node.targets for one in getattr(target, "elts", [target])]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            targets = [node.func.value]
        for target in targets:
            if (
                isinstance(target, ast.Attribute | ast.Subscript)
                and is_of_self(target)
                and "cache" not in target_name(target)
            ):
                yield ast.unparse(target)


def is_of_self(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id == "self"


def target_name(node: ast.expr) -> str:
    return ast.unparse(node).partition("[")[0]


def changing_questions() -> list[tuple[str, str]]:
    return [
        (path, f"{path}:{function.lineno} {function.name} changes {', '.join(changed)}")
        for path, function in questions()
        if f"{path} {function.name}" not in GETS and (changed := sorted(set(changes(function))))
    ]


def test_no_question_changes_anything() -> None:
    assert [said for path, said in changing_questions() if not path.startswith(tuple(OPEN))] == []


@pytest.mark.parametrize("folder", OPEN)
def test_where_some_still_do_there_are_no_more(folder: str) -> None:
    assert len([path for path, _ in changing_questions() if path.startswith(folder)]) <= OPEN[folder]


def test_a_question_that_remembers_something_is_found() -> None:
    (function,) = ast.parse("def is_new(self): self.seen.add(1); self.last, x = 1, 2; self._cache[1] = 3").body
    assert isinstance(function, ast.FunctionDef)
    assert sorted(changes(function)) == ["self.last", "self.seen"]
