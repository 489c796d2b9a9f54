"""One setting of a TOML text changed in its place. Comments directly above a header belong to what it opens."""

import json
import re
from decimal import Decimal

from gpu_worker.quotas.toml_scanner import Pair, Section, TomlScanner
from gpu_worker.quotas.tree import KeyPath

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def edit_toml(text: str, path: KeyPath, value: str | bool | int | Decimal | tuple[str, ...] | None) -> str | None:  # noqa: FBT001  it is what is written
    """Return the text with this value at the path, or without it for None; None if it is not laid out for that."""
    scanner = TomlScanner(text)
    scanner.run()
    editor = _TomlEditor(text, scanner)
    return editor.remove(path) if value is None else editor.set(path, _show(value))


class _TomlEditor:
    """Makes one change in a text that was scanned."""

    def __init__(self, text: str, scanner: TomlScanner) -> None:
        self._text, self._lines = text, text.split("\n")
        self._sections, self._pairs = scanner.sections, scanner.pairs

    def set(self, path: KeyPath, value: str) -> str | None:
        """Write a value over the one that is there, or in a line of its own where it belongs."""
        here = next((pair for pair in self._pairs if pair.path == path), None)
        if here is not None:
            return self._text[: here.value_start] + value + self._text[here.end :]
        table = path[:-1]
        for section in self._sections:
            if section.path == table and section.header_line:
                return self._insert(section.last_line, [self._indent(section) + _line(path[-1:], value)])
        braces = next((pair for pair in self._pairs if pair.path == table), None)
        if braces is not None:
            return self._into_braces(braces, _line(path[-1:], value))
        dotted = [
            one
            for one in self._pairs
            if one.path[: len(table)] == table
            and not one.is_inline
            and len(self._sections[one.section].path) < len(table)
        ]
        if dotted:
            last = dotted[-1]
            inside = self._sections[last.section].path
            indent = self._indent(self._sections[last.section])
            return self._insert(last.last_line, [indent + _line(path[len(inside) :], value)])
        return self._new_section(path, value)

    def remove(self, path: KeyPath) -> str | None:
        """Take out a setting, or a table with all that is in it and the comments directly above."""
        size = len(path)
        within = [pair for pair in self._pairs if pair.path[:size] == path]
        inline = [pair for pair in within if pair.is_inline and pair.path == path]
        if inline:
            return self._out_of_braces(inline[0])
        gone: set[int] = set()
        for number, section in enumerate(self._sections):
            if section.header_line and section.path[:size] == path:
                gone.update(range(self._first_comment(section.header_line), section.last_line + 1))
                gone.update(self._blank_after(section.last_line, number))
        for pair in within:
            if not pair.is_inline and self._sections[pair.section].path[:size] != path:
                gone.update(range(pair.first_line, pair.last_line + 1))
        if not gone:
            return None
        return "\n".join(line for number, line in enumerate(self._lines, 1) if number not in gone)

    def _new_section(self, path: KeyPath, value: str) -> str:
        """Open a table behind those that are most like it, else at the end."""
        table = path[:-1]
        near = [
            (_in_common(section.path, table), at) for at, section in enumerate(self._sections) if section.header_line
        ]
        in_common, at = max(near, default=(0, 0))
        opened = [f"[{_dotted(table)}]", _line(path[-1:], value)]
        if not in_common:
            end = len(self._lines)
            while end and not self._lines[end - 1].strip():
                end -= 1
            return "\n".join([*self._lines[:end], *([""] if end else []), *opened, ""])
        follows = self._sections[at + 1].header_line if at + 1 < len(self._sections) else len(self._lines) + 1
        end = self._first_comment(follows) if follows <= len(self._lines) else follows
        while end - 1 > self._sections[at].last_line and not self._lines[end - 2].strip():
            end -= 1
        after = self._lines[end - 1 :]
        gap = [""] if after and after[0].strip() else []
        return "\n".join([*self._lines[: end - 1], "", *opened, *gap, *(after or [""])])

    def _into_braces(self, table: Pair, line: str) -> str | None:
        inside = self._text[table.value_start : table.end]
        if not (inside.startswith("{") and inside.endswith("}")):
            return None
        body = inside[1:-1]
        written = f"{{ {line} }}" if not body.strip() else f"{{{body.rstrip()}, {line}{_spaces_after(body)}}}"
        return self._text[: table.value_start] + written + self._text[table.end :]

    def _out_of_braces(self, pair: Pair) -> str:
        """Take a name out of a table in braces, with one of the commas beside it."""
        before, after = self._text[: pair.start].rstrip(" \t"), self._text[pair.end :]
        if before.endswith(","):
            return before[:-1] + after
        return self._text[: pair.start] + re.sub(r"\A[ \t]*,[ \t]*", "", after)

    def _insert(self, after_line: int, lines: list[str]) -> str:
        return "\n".join([*self._lines[:after_line], *lines, *self._lines[after_line:]])

    def _indent(self, section: Section) -> str:
        line = self._lines[section.last_line - 1]
        return line[: len(line) - len(line.lstrip())] if line.lstrip()[:1] not in ("]", "}", '"', "'") else ""

    def _first_comment(self, line: int) -> int:
        """Return the first of the comment lines directly above a line, or the line itself."""
        while line > 1 and self._lines[line - 2].lstrip().startswith("#"):
            line -= 1
        return line

    def _blank_after(self, line: int, section: int) -> range:
        """Return the empty lines behind a table that goes, where there is one before it, too."""
        end = line
        while end < len(self._lines) - 1 and not self._lines[end].strip():
            end += 1
        first = self._first_comment(self._sections[section].header_line)
        return range(line + 1, end + 1) if first == 1 or not self._lines[first - 2].strip() else range(0)


def _line(names: KeyPath, value: str) -> str:
    return f"{_dotted(names)} = {value}"


def _dotted(names: KeyPath) -> str:
    return ".".join(name if _BARE.fullmatch(name) else _quoted(name) for name in names)


def _in_common(one: KeyPath, other: KeyPath) -> int:
    """Count how many of their first names are the same."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )


def _spaces_after(text: str) -> str:
    return text[len(text.rstrip()) :]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _show(value: str | bool | int | Decimal | tuple[str, ...]) -> str:  # noqa: FBT001  it is what is written
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _quoted(value)
        case tuple():
            return f"[{', '.join(map(_quoted, value))}]"
        case _:
            return f"{value:f}" if isinstance(value, Decimal) else str(value)
