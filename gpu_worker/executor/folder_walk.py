"""What is in a folder as cells have left it, and which of it follows to the notebook, however deep that is."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bulletin.file_names import is_text

#: Made by Python beside what it imports; and ours.
COMPILED = "__pycache__"
_OWN_PREFIX = ".bulletin-"


class WalkedEntry(NamedTuple):
    """What has a name, by its path below the folder that was walked through."""

    path: str
    entry: os.DirEntry[str]
    facts: os.stat_result
    #: Whether the notebook is told of it: by its name, and by the folders that it is in.
    does_follow: bool


def walk(here: Path, *, is_followed: Callable[[str], bool], unread: list[str]) -> Iterator[WalkedEntry]:
    """Walk through all that is there, folders before what is in them.

    Folders that cannot be read are noted in `unread`. What is in one follows where `is_followed` says so of its path.
    """
    waiting = [("", here, True)]
    while waiting:  # a cell makes folders in folders deeper than Python's own calls go
        path, folder, does_folder_follow = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda one: one.name)
        except OSError:
            unread.append(path)
            continue
        for entry in entries:
            name = f"{path}{entry.name}"
            is_left_out = entry.name == COMPILED or entry.name.startswith(_OWN_PREFIX) or not is_text(entry.name)
            try:
                facts = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError:  # it may be listed, and not be entered
                unread.append(path)
                break
            does_follow = does_folder_follow and not is_left_out
            is_folder = stat.S_ISDIR(facts.st_mode)
            yield WalkedEntry(name, entry, facts, does_follow)
            if is_folder:
                waiting.append((f"{name}/", Path(entry.path), does_follow and is_followed(name)))
