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
#: A name after the names of the tables that it is in.
Path = tuple[str, ...]


class Leaf(msgspec.Struct, frozen=True):
    """One value."""

    value: Scalar


class Odd(msgspec.Struct, frozen=True):
    """Something that no setting is, in words: "a list" of something else than texts."""

    what: str


class Entry(msgspec.Struct, frozen=True):
    """A name and what is behind it. Lines count from 1."""

    name: str
    line: int
    node: "Node"


class Table(msgspec.Struct, frozen=True):
    """Names in the order of the file. A name may be there twice where the language lets it."""

    entries: tuple[Entry, ...] = ()


Node = Leaf | Odd | Table


class NotReadable(Exception):
    """The text is not what its language asks for. `line` is None where nobody can say."""

    def __init__(self, line: int | None, sentence: str) -> None:
        super().__init__(line, sentence)
        self.line, self.sentence = line, sentence


def show_node(node: Node) -> str:
    """A value as a sentence may quote it: short, and printable whatever is in it."""
    match node:
        case Odd(what):
            return what
        case Table():
            return "a table"
        case Leaf(None):
            return "empty"
        case Leaf(tuple()):
            return "a list"
        case Leaf(bool() as value):
            return str(value).lower()
        case Leaf(value):
            return show_text(value) if isinstance(value, str) else _cut(str(value))


def show_path(path: Path) -> str:
    """A name with the tables that it is in: "projects.physics.limit"."""
    return ".".join(part if _BARE.fullmatch(part) else show_text(part) for part in path)


def show_text(text: str) -> str:
    """A text in quotes: short, and printable whatever is in it."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
