"""A quota file changed as its text: what is not named in the change keeps every letter, comments and order included."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from bulletin.errors import BadConfig
from gpu_worker.quotas import from_toml, from_yaml
from gpu_worker.quotas.toml_editor import edit_toml
from gpu_worker.quotas.tree import DEPTH, KeyPath, NotReadable, TreeLeaf, TreeNode, TreeTable, show_path
from gpu_worker.quotas.yaml_editor import edit_yaml

#: What a setting may be given; None takes it out, or a table with all that is in it.
EditValue = str | bool | int | Decimal | tuple[str, ...] | None
#: So much is changed at once, in a file of this size: more is written by hand.
MOST_EDITS, MOST_BYTES = 100, 200_000
_MARK = "\ufeff"


class QuotaEdit(msgspec.Struct, frozen=True):
    """One setting, by the tables that it is in, and what it is to be."""

    path: KeyPath
    value: EditValue


class CannotEdit(Exception):
    """The change cannot be made in this text. `path` is the setting, empty where it is the file as a whole."""

    def __init__(self, path: KeyPath, sentence: str) -> None:
        super().__init__(path, sentence)
        self.path, self.sentence = path, sentence


_LANGUAGES: Mapping[str, tuple[Callable[[str], TreeTable], Callable[[str, KeyPath, EditValue], str | None]]] = {
    ".toml": (from_toml.parse, edit_toml),
    ".yaml": (from_yaml.parse, edit_yaml),
    ".yml": (from_yaml.parse, edit_yaml),
}


def edit_text(content: bytes, suffix: str, edits: Sequence[QuotaEdit]) -> bytes:
    """Make changes in the text of a quota file that has no errors; `suffix` is the end of its name.

    The result is read again, and means what the text meant with these changes and nothing else; whether it is a quota
    file without errors, its reader says.

    Raises
    ------
    CannotEdit
        If a change cannot be made as the text is laid out, or there is nothing to take out.
    """
    if len(edits) > MOST_EDITS:
        raise CannotEdit((), f"These are {len(edits)} changes. Make at most {MOST_EDITS} at once.")
    if len(content) > MOST_BYTES:
        raise CannotEdit((), f"The file is larger than {MOST_BYTES} bytes: change it by hand.")
    parse, edit = _LANGUAGES[suffix]
    text, has_mark, newline = _plain(content)
    wanted = _as_dict(parse(text))
    for one in edits:
        _apply(wanted, one)
        edited = edit(text, one.path, one.value)
        try:
            means = None if edited is None else _as_dict(parse(edited))
        except NotReadable as error:
            raise _not_here(one.path) from error
        if edited is None or _without_empty(means) != _without_empty(wanted):
            raise _not_here(one.path)
        text = edited
    return (_MARK if has_mark else "").encode() + text.replace("\n", newline).encode()


def parse_path(words: str) -> KeyPath:
    """Read the name of a setting as people type it: projects.lab.limit; what has other letters stands in quotes.

    Raises BadConfig.
    """
    try:
        found: Any = tomllib.loads(f"{words} = 0") if "\n" not in words and "=" not in words else 0
    except (tomllib.TOMLDecodeError, RecursionError):
        found = 0
    path = []
    while isinstance(found, dict) and len(found) == 1:
        ((name, found),) = found.items()
        path.append(name)
    if found != 0 or not path or len(path) > DEPTH:
        raise BadConfig(
            f"{words[:60]!r} is no setting. Write the tables that it is in, with dots: projects.lab.limit; "
            'a name with other letters in quotes: projects."a.b".limit.'
        )
    return tuple(path)


def parse_value(words: str) -> EditValue:
    """Read a value as people type it: what TOML takes for a number, a list or a truth value is one, all else is text.

    A text may stand in quotes, and need not.
    """
    try:
        value = tomllib.loads(f"value = {words}", parse_float=Decimal)["value"]
    except (tomllib.TOMLDecodeError, RecursionError, KeyError, ArithmeticError):
        return words
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    return value if isinstance(value, str | bool | int | Decimal) else words


def _plain(content: bytes) -> tuple[str, bool, str]:
    """Return the text with a line feed alone at each line's end, whether it had a mark, and what its ends were."""
    text = content.decode()
    has_mark, text = text.startswith(_MARK), text.removeprefix(_MARK)
    windows = text.count("\r\n")
    if not windows:
        return text, has_mark, "\n"
    if windows != text.count("\n"):
        raise CannotEdit((), "Some lines of the file end as on Windows, and others do not. Save it with one kind.")
    return text.replace("\r\n", "\n"), has_mark, "\r\n"


def _as_dict(node: TreeNode) -> Any:
    if isinstance(node, TreeTable):
        return {entry.name: _as_dict(entry.node) for entry in node.entries}
    return {} if node == TreeLeaf(None) else node


def _without_empty(tree: Any) -> Any:
    """Leave out tables with nothing in them: they mean nothing."""
    if not isinstance(tree, dict):
        return tree
    inside = {name: _without_empty(one) for name, one in tree.items()}
    return {name: one for name, one in inside.items() if one != {}}


def _apply(tree: dict[str, Any], edit: QuotaEdit) -> None:
    """Make the change in a tree, which says what the text is to mean. Raises CannotEdit."""
    if not 1 < len(edit.path) <= DEPTH and not (len(edit.path) == 1 and edit.value is None):
        raise CannotEdit(edit.path, f"{show_path(edit.path)} is no setting of a quota file.")
    at: Any = tree
    for name in edit.path[:-1]:
        if edit.value is not None:
            at.setdefault(name, {})
        at = at.get(name)
        if not isinstance(at, dict):
            raise CannotEdit(edit.path, f"{show_path(edit.path)} is not in the file.")
    last = edit.path[-1]
    if edit.value is None:
        if last not in at:
            raise CannotEdit(edit.path, f"{show_path(edit.path)} is not in the file: there is nothing to take out.")
        del at[last]
    elif isinstance(at.get(last), dict) and at[last]:
        raise CannotEdit(edit.path, f"{show_path(edit.path)} is a table. Name a setting in it.")
    else:
        number = isinstance(edit.value, int | Decimal) and not isinstance(edit.value, bool)
        at[last] = TreeLeaf(Decimal(edit.value) if number else edit.value)  # type: ignore[arg-type]


def _not_here(path: KeyPath) -> CannotEdit:
    return CannotEdit(
        path, f"{show_path(path)} cannot be changed as the file is laid out there: change it by hand, in the file."
    )


def settings_in(content: bytes, suffix: str) -> list[QuotaEdit]:
    """List the settings that stand in the text of a quota file without errors, in its order.

    What has a name and no setting, as a project that is only named, stands for itself, with None.
    """
    parse, _ = _LANGUAGES[suffix]

    def walk(table: TreeTable, path: KeyPath) -> Iterator[QuotaEdit]:
        for entry in table.entries:
            at = (*path, entry.name)
            if isinstance(entry.node, TreeTable):
                yield from walk(entry.node, at)
                if not entry.node.entries and path:
                    yield QuotaEdit(at, None)
            elif isinstance(entry.node, TreeLeaf) and (entry.node.value is not None or path):
                yield QuotaEdit(at, entry.node.value)

    return list(walk(parse(content.decode("utf-8-sig")), ()))
