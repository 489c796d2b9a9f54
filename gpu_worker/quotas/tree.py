"""The text of a quota file as a tree: tables of names, each with its line, whatever language it is written in."""

import re
from decimal import Decimal

import msgspec

#: Tables are read this deep; what lies deeper is no setting.
DEPTH = 5
_SHOWN = 40
_BARE = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: A value as it is written, numbers exactly, and a list of texts; None is a name with nothing behind it.
Scalar = str | bool | Decimal | tuple[str, ...] | None
#: A name after the names of the tables that it is in: ("projects", "physics", "limit").
KeyPath = tuple[str, ...]


class TreeLeaf(msgspec.Struct, frozen=True):
    """One value, as the file has it."""

    value: Scalar


class UnsupportedValue(msgspec.Struct, frozen=True):
    """A value of a kind that no setting has, in words for people: "a list" of something else than texts."""

    what: str


class TreeEntry(msgspec.Struct, frozen=True):
    """A name and what is behind it. Lines count from 1."""

    name: str
    line: int
    node: "TreeNode"


class TreeTable(msgspec.Struct, frozen=True):
    """Names in the order of the file. A name may be there twice where the language lets it."""

    entries: tuple[TreeEntry, ...] = ()


TreeNode = TreeLeaf | UnsupportedValue | TreeTable


class NotReadable(Exception):
    """The text is not what its language asks for. `line` is None where nobody can say."""

    def __init__(self, line: int | None, sentence: str) -> None:
        super().__init__(line, sentence)
        self.line, self.sentence = line, sentence


def show_node(node: TreeNode) -> str:
    """Show a value as a sentence may quote it: short, and printable whatever is in it."""
    match node:
        case UnsupportedValue(what):
            return what
        case TreeTable():
            return "a table"
        case TreeLeaf(None):
            return "empty"
        case TreeLeaf(()):
            return "an empty list"
        case TreeLeaf(tuple() as names):
            shown = _cut(f"[{', '.join(map(show_text, names[:_SHOWN]))}]")
            return f"the list {shown}"
        case TreeLeaf(bool() as value):
            return str(value).lower()
        case TreeLeaf(value):
            return show_text(value) if isinstance(value, str) else _cut(str(value))


def show_path(path: KeyPath) -> str:
    """Show a name with the tables that it is in: "projects.physics.limit"."""
    return ".".join(part if _BARE.fullmatch(part) else show_text(part) for part in path)


def show_text(text: str) -> str:
    """Put a text in quotes: short, and printable whatever is in it."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
