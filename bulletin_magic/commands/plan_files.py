"""`%%gpu --plan` about files: which of the notebook's folder a cell names, and whether they would travel."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bulletin.units import show_size
from bulletin_magic.connection.folder_listing import FolderLimits

#: What stands in quotes, and words of programs and magics.
_QUOTED = re.compile(r"""["']([^"'\n]{1,500})["']""")
_WORD = re.compile(r"""[^\s"'(),;=<>|&]{1,500}""")
_MOST_SHOWN = 8
#: Of larger files it is said that all of one comes: it takes seconds.
_LARGE_BYTES = 100_000_000


def describe_files(
    cell: str,
    names: Iterable[str],
    namespace: Mapping[str, Any],
    folders: Mapping[str, bool | None],
    limits: FolderLimits,
) -> list[str]:
    """Say of the files that a cell names, itself or by its variables of these names, how they would get to its node.

    `folders` says of those of the session whether its node shares them. Empty where there is nothing to say.
    """
    try:
        folder = Path.cwd()
    except OSError:
        return []
    is_shared = next((shared for root, shared in folders.items() if folder.is_relative_to(root)), None)
    if is_shared:
        return ["The node shares the notebook's folder: the cell works in it."]
    found = dict(_find_files(folder, [*_words(cell), *_paths(names, namespace)]))
    fitting = {path: size for path, size in found.items() if size <= limits.file_bytes}
    sentences = []
    if is_shared is None and found:
        sentences.append("Whether the node shares the notebook's folder is found when the cell runs.")
    elif is_shared is False:
        sentences.append(
            "The node does not share the notebook's folder: what the cell writes in it comes when it ends."
        )
    if fitting:
        start = "If it does not, these come when they are opened" if is_shared is None else "These would come"
        sentences.append(f"{start}, unless they are there already: {_list(fitting)}.")
    if large := {path: size for path, size in fitting.items() if size > _LARGE_BYTES}:
        sentences.append(f"All of a file comes, however little of it is read: {_list(large)}.")
    for path, size in found.items():
        if path not in fitting:
            sentences.append(
                f"{path} would not come: it has {show_size(size)}, and no file of more than "
                f"{show_size(limits.file_bytes)} does (BulletinMagics.folder_file_mb)."
            )
    return sentences


def _words(cell: str) -> Iterator[str]:
    yield from _QUOTED.findall(cell)
    yield from _WORD.findall(cell)


def _paths(names: Iterable[str], namespace: Mapping[str, Any]) -> Iterator[str]:
    """Yield texts and paths among the values of variables."""
    for name in names:
        value = namespace.get(name)
        if isinstance(value, str | Path):
            yield str(value)


def _find_files(folder: Path, words: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield those of these words that are files in the folder, by their paths in it, with their sizes in bytes."""
    for word in words:
        path = folder / word
        try:
            if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                yield os.path.relpath(path, folder), path.stat().st_size
        except (OSError, ValueError):  # no path at all
            continue


def _list(files: Mapping[str, int]) -> str:
    shown = [f"{path} ({show_size(size)})" for path, size in list(files.items())[:_MOST_SHOWN]]
    more = len(files) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
