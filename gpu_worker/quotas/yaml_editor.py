"""One setting of a YAML text changed in its place. Comments directly above a name belong to it."""

import json
import re
from decimal import Decimal

import yaml

from gpu_worker.quotas.tree import KeyPath

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*|[0-9]+(?:\.[0-9]+)? [A-Za-z][A-Za-z0-9 -]*")
_STEP = 2  #: spaces of a new table, where the text shows no other
_Value = str | bool | int | Decimal | tuple[str, ...]


def edit_yaml(text: str, path: KeyPath, value: _Value | None) -> str | None:
    """Return the text with this value at the path, or without it for None; None if it is not laid out for that."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    editor = _YamlEditor(text)
    if root is None or (isinstance(root, yaml.ScalarNode) and not root.value):
        return None if value is None else editor.append(path, value)
    if not isinstance(root, yaml.MappingNode):
        return None
    return editor.remove(root, path) if value is None else editor.set(root, path, value)


class _YamlEditor:
    """Makes one change in a text that was composed."""

    def __init__(self, text: str) -> None:
        self._text, self._lines = text, text.split("\n")

    def append(self, path: KeyPath, value: _Value) -> str:
        """Write a setting into a text that has none."""
        end = len(self._lines)
        while end and not self._lines[end - 1].strip():
            end -= 1
        return "\n".join([*self._lines[:end], *_block(path, value, 0), ""])

    def set(self, root: yaml.MappingNode, path: KeyPath, value: _Value) -> str | None:
        """Write a value over the one that is there, or in lines of its own behind the last of its table."""
        at: yaml.Node = root
        for depth, name in enumerate(path):
            if not isinstance(at, yaml.MappingNode):
                return None
            entry = _find(at, name)
            if entry is None:
                return self._add(at, path[depth:], value)
            key, at = entry
            if depth < len(path) - 1 and _is_empty(at):
                lines = _block(path[depth + 1 :], value, key.start_mark.column + _STEP)
                return self._insert(key.end_mark.line + 1, lines)
        return self._replace(key, at, value)

    def remove(self, root: yaml.MappingNode, path: KeyPath) -> str | None:
        """Take out a setting, or a table with all that is in it and the comments directly above."""
        at: yaml.Node = root
        for name in path[:-1]:
            entry = _find(at, name) if isinstance(at, yaml.MappingNode) else None
            if entry is None:
                return None
            at = entry[1]
        entry = _find(at, path[-1]) if isinstance(at, yaml.MappingNode) else None
        if entry is None or not isinstance(at, yaml.MappingNode):
            return None
        key, value = entry
        if at.flow_style:
            return self._out_of_braces(key, value)
        first, last = key.start_mark.line, self._last_line(key, value)
        if self._text[: key.start_mark.index].rpartition("\n")[2].strip():
            return None
        while first and re.match(rf" {{{key.start_mark.column}}}#", self._lines[first - 1]):
            first -= 1
        return "\n".join([*self._lines[:first], *self._lines[last + 1 :]])

    def _add(self, table: yaml.MappingNode, names: KeyPath, value: _Value) -> str | None:
        if table.flow_style:
            written = _flow(names, value)
            end = table.end_mark.index - 1
            before = self._text[:end].rstrip()
            comma = "" if before.endswith(("{", ",")) else ","
            gap = "" if before.endswith("{") else " "
            return f"{before}{comma}{gap}{written}{self._text[len(before) : end]}{self._text[end:]}"
        last_key, last_value = table.value[-1]
        lines = _block(names, value, table.value[0][0].start_mark.column)
        return self._insert(self._last_line(last_key, last_value) + 1, lines)

    def _replace(self, key: yaml.Node, node: yaml.Node, value: _Value) -> str | None:
        if (
            isinstance(node, yaml.MappingNode) or node.start_mark.index < key.end_mark.index
        ):  # an alias stands elsewhere
            return None
        if _is_empty(node):
            colon = self._text.index(":", key.end_mark.index) + 1
            return f"{self._text[:colon]} {_show(value)}{self._text[colon:]}"
        start, end = node.start_mark.index, node.end_mark.index
        if isinstance(node, yaml.SequenceNode) and not node.flow_style:
            if not isinstance(value, tuple) or not node.value:
                return None
            indent = " " * node.start_mark.column
            written = f"\n{indent}".join(f"- {_text(one)}" for one in value)
            end = node.value[-1].end_mark.index
            return self._text[:start] + written + self._text[end:]
        old = self._text[start:end]
        if "\n" in old and not isinstance(node, yaml.SequenceNode):
            return None
        written = _show(value)
        if isinstance(value, str) and old[:1] == '"' and written[:1] != '"':
            written = f'"{written}"'
        return self._text[:start] + written + self._text[end:]

    def _out_of_braces(self, key: yaml.Node, value: yaml.Node) -> str:
        before, after = self._text[: key.start_mark.index].rstrip(), self._text[value.end_mark.index :]
        if before.endswith(","):
            return before[:-1] + after
        return self._text[: key.start_mark.index] + re.sub(r"\A\s*,\s*", "", after)

    def _insert(self, at_line: int, lines: list[str]) -> str:
        rest = self._lines[at_line:] or [""]
        return "\n".join([*self._lines[:at_line], *lines, *rest])

    def _last_line(self, key: yaml.Node, value: yaml.Node) -> int:
        """Return the last line, from 0, in which something of an entry stands."""
        if isinstance(value, yaml.CollectionNode) and not value.flow_style and value.value:
            last = value.value[-1]
            return self._last_line(*last) if isinstance(last, tuple) else self._last_line(last, last)
        if _is_empty(value) or value.start_mark.index < key.start_mark.index:
            return int(key.end_mark.line)
        line, column = value.end_mark.line, value.end_mark.column
        return int(line - 1 if column == 0 and line > value.start_mark.line else line)


def _find(table: yaml.MappingNode, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next((entry for entry in table.value if entry[0].value == name), None)


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.value and node.style is None


def _block(names: KeyPath, value: _Value, column: int) -> list[str]:
    """Write a setting with the tables that it is in, one a line."""
    lines = [f"{' ' * (column + _STEP * depth)}{_name(name)}:" for depth, name in enumerate(names)]
    lines[-1] += f" {_show(value)}"
    return lines


def _flow(names: KeyPath, value: _Value) -> str:
    inner = f"{_name(names[-1])}: {_show(value)}"
    for name in reversed(names[:-1]):
        inner = f"{_name(name)}: {{{inner}}}"
    return inner


def _name(name: str) -> str:
    return _text(name)


def _text(text: str) -> str:
    """Write a text without quotes where it then still is one, and nothing else."""
    if _WORD.fullmatch(text):
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":str") and node.value == text:
            return text
    return json.dumps(text, ensure_ascii=False)


def _show(value: _Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _text(value)
        case tuple():
            return f"[{', '.join(map(_text, value))}]"
        case _:
            return f"{value:f}" if isinstance(value, Decimal) else str(value)
