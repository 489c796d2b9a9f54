"""TOML as a tree with lines: the standard library's parser reads the values, a scanner finds where the names are.

tomlkit keeps texts and comments and could replace the scanner, but it has no line for a name that is there twice (the
commonest slip) and none for a name at all, and needs seconds for a file of the allowed size.
"""

import contextlib
import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from gpu_worker.quotas.toml_scanner import NotToml, TomlScanner
from gpu_worker.quotas.tree import (
    DEPTH,
    KeyPath,
    NotReadable,
    TreeEntry,
    TreeLeaf,
    TreeNode,
    TreeTable,
    UnsupportedValue,
    show_path,
)

_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_TWICE = re.compile("twice|overwrite|immutable|mutate|uplicate|already")


def parse(text: str) -> TreeTable:
    """Read a TOML text as a tree.

    Raises
    ------
    NotReadable
        With the line where the parser stopped.
    """
    text = text.replace("\r\n", "\n")
    try:
        values = tomllib.loads(text, parse_float=_number)
    except tomllib.TOMLDecodeError as error:
        raise _explained(text, str(error)) from None
    except RecursionError:
        raise NotReadable(
            None, "Lists or tables are nested too deep. A quota file has tables in tables only."
        ) from None
    scanner = TomlScanner(text)
    scanner.run()
    return _table(values, (), scanner.first_lines())


def _number(text: str) -> Decimal:
    """Read a TOML number that is not whole, exactly."""
    try:
        return Decimal(text.replace("_", ""))
    except InvalidOperation:  # an exponent beyond what any number has
        return Decimal("inf")


def _table(values: Mapping[str, Any], path: KeyPath, lines: Mapping[KeyPath, int]) -> TreeTable:
    return TreeTable(tuple(_entry(name, value, (*path, name), lines) for name, value in values.items()))


def _entry(name: str, value: object, path: KeyPath, lines: Mapping[KeyPath, int]) -> TreeEntry:
    node: TreeNode
    match value:
        case dict():
            node = _table(value, path, lines) if len(path) < DEPTH else UnsupportedValue("a table")
        case bool() | str():
            node = TreeLeaf(value)
        case int() | Decimal():
            node = TreeLeaf(Decimal(value))
        case list():
            texts = tuple(one for one in value if isinstance(one, str))
            node = TreeLeaf(texts) if len(texts) == len(value) else UnsupportedValue("a list")
        case _:
            node = UnsupportedValue("a date or a time of day")
    return TreeEntry(name, lines[path], node)


def _explained(text: str, problem: str) -> NotReadable:
    """Turn the parser's words into an error with its line; what is there twice gets the line of the first one too."""
    position = _POSITION.search(problem)
    line = int(position[1]) if position and position[1] else text.rstrip("\n").count("\n") + 1
    problem = problem[: position.start()] if position else problem
    if _TWICE.search(problem):
        scanner = TomlScanner(text)
        with contextlib.suppress(NotToml):  # what was seen before is enough
            scanner.run()
        again = scanner.find_repeated(line)
        if again is not None:
            path, first = again
            return NotReadable(line, f"{show_path(path)} is there twice, first in line {first}. Leave one out.")
    return NotReadable(
        line,
        f"This is not TOML: {problem[:1].lower()}{problem[1:]}. Correct it here or in the line before; "
        'text stands in quotes, as in "30 min", and true and false are written small.',
    )
