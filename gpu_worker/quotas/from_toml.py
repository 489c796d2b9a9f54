"""TOML as a tree with lines: the standard library's parser reads the values, a scanner finds where the names are.

tomlkit keeps texts and comments and could replace the scanner, but it has no line for a name that is there twice (the
commonest slip) and none for a name at all, and needs seconds for a file of the allowed size.
"""

import contextlib
import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

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

_BLANK = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED_KEY = re.compile(r"""'[^'\n]*'|"(?:\\.|[^"\\\n])*\"""")
#: The long forms come first: each also begins as a short one. Up to two quotes may stand before the three that end it.
_STRING = re.compile(r"""\"{3}(?:\\[\s\S]|[^\\])*?\"{3,5}|'{3}[\s\S]*?'{3,5}|'[^'\n]*'|"(?:\\.|[^"\\\n])*\"""")
_PLAIN = re.compile(r"[^,\[\]{}\n#\"']+")
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
    scanner = _Scanner(text)
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
        scanner = _Scanner(text)
        with contextlib.suppress(_NotToml):  # what was seen before is enough
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


class _NotToml(Exception):
    """The text is not TOML where the scanner is."""


class _Scanner:
    """Walks over a TOML text and notes where each name is. It believes the text: the parser has checked it."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        #: Each name that was given something, or opened as a table, with its line.
        self._seen: list[tuple[KeyPath, int]] = []
        #: Tables that only names inside them speak of.
        self._implied: list[tuple[KeyPath, int]] = []

    def run(self) -> None:
        """Walk over the whole text and note all names. Raises _NotToml."""
        header: KeyPath = ()
        while self._skip(_BETWEEN) is not None and self._at < len(self._text):
            line = self._line()
            if self._text[self._at] == "[":
                is_list = self._text.startswith("[[", self._at)
                self._at += 2 if is_list else 1
                header = self._read_key()
                self._at += 2 if is_list else 1
                self._note(header, 0, line)
            else:
                self._scan_pair(header)

    def first_lines(self) -> dict[KeyPath, int]:
        """Return the line where each name is first spoken of."""
        found: dict[KeyPath, int] = {}
        for path, line in sorted([*self._seen, *self._implied], key=lambda one: one[1]):
            found.setdefault(path, line)
        return found

    def find_repeated(self, line: int) -> tuple[KeyPath, int] | None:
        """Find the last name up to this line that was there before, and where; None if there is none."""
        for at in range(len(self._seen) - 1, -1, -1):
            path, here = self._seen[at]
            if here <= line:
                earlier = [there for other, there in self._seen[:at] if other == path]
                earlier += [there for other, there in self._implied if other == path and there < here]
                return (path, min(earlier)) if earlier else None
        return None

    def _scan_pair(self, inside: KeyPath) -> None:
        """Pass over a name and its value, and note the name."""
        line = self._line()
        path = (*inside, *self._read_key())
        self._note(path, len(inside), line)
        self._expect("=")
        self._skip(_BLANK)
        if self._text.startswith("{", self._at) and len(path) < DEPTH:
            self._scan_inline_table(path)
        else:
            self._skip_value()

    def _scan_inline_table(self, path: KeyPath) -> None:
        """Pass over a table in braces, and note the names in it."""
        self._at += 1
        while True:
            self._skip(_BETWEEN)
            if self._text.startswith("}", self._at):
                self._at += 1
                return
            self._scan_pair(path)
            self._skip(_BETWEEN)
            if self._text.startswith(",", self._at):
                self._at += 1

    def _skip_value(self) -> None:
        """Pass over one value; what is nested in it is of no interest."""
        depth = 0
        while True:
            if depth:
                self._skip(_BETWEEN)
            if self._at >= len(self._text):
                raise _NotToml
            here = self._text[self._at]
            if here in "[{":
                depth += 1
                self._at += 1
            elif here in "]}":
                depth -= 1
                self._at += 1
            elif here == "," and depth:
                self._at += 1
            elif self._skip(_STRING) is None and self._skip(_PLAIN) is None:
                raise _NotToml
            if depth <= 0:
                return

    def _read_key(self) -> KeyPath:
        """Pass over a dotted name and the spaces after it; return its parts."""
        parts = []
        while True:
            self._skip(_BLANK)
            bare = self._skip(_BARE_KEY)
            quoted = self._skip(_QUOTED_KEY) if bare is None else None
            if quoted is not None:
                try:
                    parts.append(next(iter(tomllib.loads(f"{quoted} = 0"))))
                except tomllib.TOMLDecodeError:
                    raise _NotToml from None
            elif bare is not None:
                parts.append(bare)
            else:
                raise _NotToml
            self._skip(_BLANK)
            if not self._text.startswith(".", self._at):
                return tuple(parts)
            self._at += 1

    def _note(self, path: KeyPath, known: int, line: int) -> None:
        """Note a name; `known` is how many of its parts are those of the table that it stands in."""
        self._implied += [(path[:length], line) for length in range(known + 1, min(len(path), DEPTH + 1))]
        self._seen.append((path, line))

    def _expect(self, sign: str) -> None:
        if not self._text.startswith(sign, self._at):
            raise _NotToml
        self._at += len(sign)

    def _skip(self, pattern: re.Pattern[str]) -> str | None:
        """Pass over what the pattern matches here and return it; None, and nothing passed, where it does not."""
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[0]

    def _line(self) -> int:
        return bisect_left(self._breaks, self._at) + 1
