"""What is in the notebook's working folder, as a node that does not share it is told."""

import os
import posixpath
import stat
from collections import deque
from itertools import islice

import msgspec

from bulletin.file_names import is_text, show_name
from bulletin.special_files import special_kind
from bulletin.units import show_size
from bulletin.wire.messages import EntryKind, FileVersion, FolderEntry
from bulletin_magic.connection.contained_paths import DEEPEST, OWN_PREFIX, PathEscapes, open_folder

#: Folders of tools, which can be made anew, and what marks the environments of Python and conda.
_OF_TOOLS = frozenset({"__pycache__", "node_modules"})
_OF_ENVIRONMENTS = frozenset({"pyvenv.cfg", "conda-meta"})
_LONGEST_PATH = 4096
#: Of a folder with more names no more are read, in times of what may follow: some of them do not.
_MOST_READ = 4


class FolderLimits(msgspec.Struct, frozen=True):
    """How much follows a cell: files and folders, bytes of one, bytes written for one session, bytes of a library."""

    entries: int = 10_000
    file_bytes: int = 4_000_000_000
    written_bytes: int = 20_000_000_000
    library_bytes: int = 200_000_000


class FolderListing(msgspec.Struct, frozen=True):
    """The entries, what is nearest first, and a sentence where the folder itself has too many."""

    entries: list[FolderEntry]
    problem: str = ""
    #: A sentence where some have names that are no text, and do not follow.
    nameless: str = ""


def list_folder(root: str, limits: FolderLimits) -> FolderListing:
    """List what is in a folder. What does not follow the cell says why; what tools keep for themselves is left out.

    Raises OSError if the folder itself cannot be read.
    """
    found: list[FolderEntry] = []
    places: dict[str, int] = {}
    waiting = deque([""])
    nameless: list[str] = []
    while waiting:
        path = waiting.popleft()
        try:
            inside = _list_one(root, path, limits, nameless)
        except (OSError, PathEscapes) as error:
            if not path:
                raise
            _add_problem(found, places[path], f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")
            continue
        if len(found) + len(inside) > limits.entries:
            if not path:
                kept = inside[: limits.entries]
                return FolderListing(kept, _too_many("The notebook's folder", limits))
            for late in (path, *waiting):
                _add_problem(found, places[late], _too_many(f"The notebook's folder, with {late} in it,", limits))
            break
        for entry in inside:
            if entry.kind == "folder":
                places[entry.path] = len(found)
                waiting.append(entry.path)
            found.append(entry)
    return FolderListing(found, nameless=_say_nameless(nameless))


def _say_nameless(paths: list[str]) -> str:
    if not paths:
        return ""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return (
        f"{show_name(paths[0])}{more} of the notebook's folder cannot follow a cell to a node that does not share it: "
        "a name there is no text"
    )


def _too_many(what: str, limits: FolderLimits) -> str:
    return (
        f"{what} has more than {limits.entries} files, and no more of them follow a cell to a node that does not share "
        "the folder (BulletinMagics.folder_files)"
    )


def _add_problem(found: list[FolderEntry], place: int, problem: str) -> None:
    found[place] = msgspec.structs.replace(found[place], problem=problem)


def _list_one(root: str, path: str, limits: FolderLimits, nameless: list[str]) -> list[FolderEntry]:
    """List one folder, by names; add those that are no text to the `nameless`. Raises OSError or PathEscapes."""
    descriptor = open_folder(root, path)
    try:
        with os.scandir(descriptor) as listed:
            names = sorted(entry.name for entry in islice(listed, _MOST_READ * limits.entries))
        if path and not _OF_ENVIRONMENTS.isdisjoint(names):
            return []
        nameless += [posixpath.join(path, name) for name in names if not is_text(name)]
        entries = (_describe(root, posixpath.join(path, name), name, descriptor, limits) for name in names)
        return [entry for entry in entries if entry is not None]
    finally:
        os.close(descriptor)


def _describe(root: str, path: str, name: str, parent: int, limits: FolderLimits) -> FolderEntry | None:
    """Describe an entry; None for our own, what tools keep to themselves, a name that is no text."""
    is_deep = len(path) > _LONGEST_PATH or path.count("/") >= DEEPEST
    if is_deep or name.startswith(OWN_PREFIX) or not is_text(name):
        return None
    try:
        facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
        target = os.readlink(name, dir_fd=parent) if stat.S_ISLNK(facts.st_mode) else ""
    except OSError:  # it is gone by now
        return None
    if special := special_kind(facts.st_mode):
        problem = (
            f"{path} is a {special} in the notebook's folder, and does not follow a cell to a node that does not share "
            "that folder"
        )
        return FolderEntry(path, "file", FileVersion(0, 0), facts.st_mode & 0o777, problem=problem)
    kind: EntryKind
    if stat.S_ISREG(facts.st_mode):
        kind = "file"
    elif stat.S_ISDIR(facts.st_mode) and not name.startswith(".") and name not in _OF_TOOLS:
        kind = "folder"
    elif target and is_text(target) and len(target) <= _LONGEST_PATH:
        kind = "link"
    else:
        return None
    version = FileVersion(facts.st_size if kind == "file" else 0, facts.st_mtime_ns if kind == "file" else 0)
    problem = ""
    if kind == "file" and facts.st_size > limits.file_bytes:
        problem = (
            f"{path} has {show_size(facts.st_size)}, and no file of more than {show_size(limits.file_bytes)} follows a "
            "cell to a node that does not share the notebook's folder (BulletinMagics.folder_file_mb)"
        )
    if kind == "link":
        target = _inner_target(root, path, target)
    return FolderEntry(path, kind, version, facts.st_mode & 0o777, target, problem)


def _inner_target(root: str, path: str, target: str) -> str:
    """Return where a link leads, seen from the link if that is in the folder, else from the node's own root."""
    folder = posixpath.join(root, posixpath.dirname(path))
    here = posixpath.normpath(posixpath.join(folder, target))
    if here == root or here.startswith(root.rstrip("/") + "/"):
        return posixpath.relpath(here, folder)
    return here
