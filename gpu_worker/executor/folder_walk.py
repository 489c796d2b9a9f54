"""What is in a folder as cells have left it, as far as it follows to the notebook, however deep that is."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from bulletin.file_names import is_text

#: Made by Python beside what it imports; and ours.
_LEFT_OUT = frozenset({"__pycache__"})
_OWN_PREFIX = ".bulletin-"


def walk(
    here: Path, *, is_entered: Callable[[str], bool], unread: list[str]
) -> Iterator[tuple[str, os.DirEntry[str], os.stat_result]]:
    """Walk through files, links and folders, folders before what is in them, each with its path below `here`.

    Folders that cannot be read are noted in `unread`. What is in one is yielded where `is_entered` says so of its path.
    """
    waiting = [("", here)]
    while waiting:  # a cell makes folders in folders deeper than Python's own calls go
        path, folder = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda one: one.name)
        except OSError:
            unread.append(path)
            continue
        for entry in entries:
            name = f"{path}{entry.name}"
            if entry.name in _LEFT_OUT or entry.name.startswith(_OWN_PREFIX) or not is_text(entry.name):
                continue
            try:
                facts = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            is_folder = stat.S_ISDIR(facts.st_mode)
            if is_folder or stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                yield name, entry, facts
            if is_folder and is_entered(name):
                waiting.append((f"{name}/", Path(entry.path)))
