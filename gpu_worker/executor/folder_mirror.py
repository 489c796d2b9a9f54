"""A folder of the notebook on a node that does not share it: its files as they are there, and what cells made of them.

Every file is there, with its name, size and times; its content is brought when somebody opens it. It opens no socket.
"""

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec
import xxhash

from bulletin.file_names import is_text
from bulletin.special_files import special_kind
from bulletin.wire.messages import FileVersion, FolderEntry
from bulletin.wire.messages.folder import MOST_KNOWN
from gpu_worker.executor.file_signatures import Signature, digest_of, signature_at, signature_of
from gpu_worker.executor.folder_changes import FolderChanges
from gpu_worker.executor.folder_walk import walk
from gpu_worker.executor.leased_files import LeasedFiles

_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT})
#: What stands for the version of what is no file, as the notebook has it.
LINK = FileVersion(0, 0)


class MirroredFile(msgspec.Struct):
    """A file of the notebook here."""

    there: FileVersion
    mode: int
    inode: int = 0
    #: Open, with a lease, while its content has not come; -1 once it has.
    descriptor: int = -1
    #: As it was when it was the same as in the notebook; None where it may not be.
    seen: Signature | None = None
    digest: str = ""
    #: Why its content does not come, in a sentence.
    problem: str = ""


class MirroredLink(NamedTuple):
    """A link of the notebook here: where it leads, and as it was when it was the same as in the notebook."""

    target: str
    seen: Signature | None


class FolderMirror:
    """One folder of the notebook (`root`, as it is called there), in a folder `here`."""

    def __init__(self, root: str, here: Path, store: Path, leases: LeasedFiles) -> None:
        """Begin empty. `store` is a folder beside `here`, for files that have no name."""
        self.root, self.here = root, here
        self._store, self._leases = store, leases
        self._numbers = itertools.count()
        self.files: dict[str, MirroredFile] = {}
        #: With a sentence why not, where what is in one does not follow.
        self.folders: dict[str, str] = {}
        self._links: dict[str, MirroredLink] = {}
        #: Contents of before, by their digest.
        self._contents: dict[str, Path] = {}
        #: Of the listing that was taken in last.
        self.listing_digest = ""
        #: What cells left that could not be brought to the notebook, as it was then; it stays here as it is.
        self.failed: dict[str, Signature] = {}
        #: What cells left where the notebook is not told of it: by its name, or by the folder that it is in.
        self.left: dict[str, Signature] = {}
        self._special: dict[str, str] = {}
        #: Those that could not be brought whose name the notebook has for something else.
        self._taken: set[str] = set()
        #: Files that could not be put here, each with a sentence why not.
        self._unplaced: dict[str, str] = {}
        #: Folders, with a slash, that nobody can look into, and all whose content is not known here.
        self.closed: set[str] = set()
        self._unread: list[str] = []

    def path(self, path: str) -> Path:
        """Return where a path of the notebook's folder is here."""
        return self.here / path

    # --- as the notebook has it

    def update(self, entries: list[FolderEntry]) -> list[MirroredFile]:
        """Take in what is in the notebook's folder now; what cells have changed meanwhile stays.

        Returns the files without content whose file system has no leases: they are to be filled at once.
        """
        by_path = {entry.path: entry for entry in entries}
        self._forget_failed(by_path)
        for path in [path for path, file in self.files.items() if _kind(by_path, path) != "file"]:
            self._drop(path, self.files.pop(path))
        for path in [path for path in self._links if _kind(by_path, path) != "link"]:
            del self._links[path]
            with contextlib.suppress(OSError):
                self.path(path).unlink()
        gone = [path for path in self.folders if _kind(by_path, path) != "folder"]
        for path in sorted(gone, reverse=True):
            del self.folders[path]
            with contextlib.suppress(OSError):  # something of the cell's is in it
                self.path(path).rmdir()
        eager = []
        self._unplaced.clear()
        failed = tuple(f"{path}/" for path in self.failed)
        for entry in entries:
            if f"{entry.path}/".startswith(failed):
                continue
            try:
                if entry.kind == "folder":
                    self._make_folder(entry)
                elif entry.kind == "link":
                    self._make_link(entry)
                elif (file := self._place(entry)) is not None:
                    eager.append(file)
            except OSError as error:
                if error.errno in _NO_ROOM:  # else a cell has put something else there
                    self._unplaced[entry.path] = f"{entry.path} is not on the node: {error.strerror}"
        return eager

    def _forget_failed(self, by_path: dict[str, FolderEntry]) -> None:
        """Let those be tried again whose name has become free in the notebook, or is that of a folder, as here."""
        kinds = {path: _kind(by_path, path) for path in self.failed}
        for path, kind in kinds.items():
            here = self.path(path)
            is_folder = kind == "folder" and _is_folder(here)
            if is_folder or (not kind and path in self._taken):
                self.failed = {
                    other: now for other, now in self.failed.items() if not f"{other}/".startswith(f"{path}/")
                }
            elif not os.path.lexists(here):
                self.failed.pop(path, None)
        self._taken = {path for path in self.failed if kinds[path]}

    @property
    def refused(self) -> dict[str, str]:
        """What does not follow the cell, by paths, each with a sentence why not."""
        files = {path: file.problem for path, file in self.files.items() if file.problem}
        return {**files, **{path: why for path, why in self.folders.items() if why}, **self._unplaced}

    def _make_folder(self, entry: FolderEntry) -> None:
        is_new = entry.path not in self.folders
        self.folders[entry.path] = entry.problem
        if is_new:
            self.path(entry.path).mkdir(exist_ok=True)
            self.path(entry.path).chmod(entry.mode | 0o700)

    def _make_link(self, entry: FolderEntry) -> None:
        if (known := self._links.get(entry.path)) is not None and known.target == entry.target:
            return
        self.path(entry.path).unlink(missing_ok=True)
        self.path(entry.path).symlink_to(entry.target)
        self._links[entry.path] = MirroredLink(entry.target, signature_at(self.path(entry.path)))

    def _place(self, entry: FolderEntry) -> MirroredFile | None:
        """Put a file without content in its place, unless it is there as it is in the notebook."""
        known = self.files.get(entry.path)
        if known is not None and known.there == entry.version and known.problem == entry.problem:
            return None
        target = self.path(entry.path)
        if known is not None:
            if known.descriptor < 0 and not known.problem and known.seen != signature_at(target):
                return None  # a cell has changed it
            self._drop(entry.path, known)
        elif target.exists():
            return None
        size, mtime_ns = entry.version.size, entry.version.mtime_ns
        temporary = self._store / f"new-{next(self._numbers)}"
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        file = MirroredFile(entry.version, entry.mode, os.fstat(descriptor).st_ino, descriptor, problem=entry.problem)
        os.ftruncate(descriptor, size)
        os.utime(descriptor, ns=(mtime_ns, mtime_ns))
        os.fchmod(descriptor, 0 if entry.problem else entry.mode)
        is_leased = size > 0 and not entry.problem and self._leases.hold(descriptor)
        temporary.rename(target)
        self.files[entry.path] = file
        if size == 0 or entry.problem:
            os.close(descriptor)
            file.descriptor, file.seen, file.digest = -1, signature_at(target), xxhash.xxh3_128_hexdigest(b"")
            return None
        return None if is_leased else file

    def _drop(self, path: str, file: MirroredFile) -> None:
        """Take a file away that a cell has not changed; its content is kept, in case it comes again."""
        target = self.path(path)
        if file.descriptor >= 0:
            self._leases.close(file.descriptor)
            file.descriptor = -1
            is_unchanged = (now := signature_at(target)) is not None and now.inode == file.inode
        else:
            is_unchanged = file.seen is not None and file.seen == signature_at(target)
        if not is_unchanged:
            return
        with contextlib.suppress(OSError):
            if file.seen is not None and file.digest and file.there.size and not file.problem:
                kept = self._store / file.digest
                target.rename(kept)
                self._contents[file.digest] = kept
            else:
                target.unlink()

    # --- content

    def find(self, descriptor: int) -> tuple[str, MirroredFile] | None:
        """Find the file whose content is to come through this descriptor."""
        return next(((path, file) for path, file in self.files.items() if file.descriptor == descriptor), None)

    def large_files(self, names: Iterable[str], size: int) -> list[MirroredFile]:
        """List the files of more than this size among these names whose content has not come."""
        found = (self.files.get(os.path.normpath(name)) for name in dict.fromkeys(names))
        return [file for file in found if file is not None and file.descriptor >= 0 and file.there.size > size]

    def known_digests(self, size: int) -> tuple[str, ...]:
        """List the contents of this size that were here; of very many, some."""
        sizes = ((digest, signature_at(path)) for digest, path in self._contents.items())
        known = (digest for digest, facts in sizes if facts is not None and facts.size == size)
        return tuple(itertools.islice(known, MOST_KNOWN))

    def copy_known(self, digest: str, file: MirroredFile) -> None:
        """Fill a file with a content that was here. Raises OSError."""
        with self._contents[digest].open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            done = 0
            while done < size and (count := os.sendfile(file.descriptor, source.fileno(), done, size - done)):
                done += count

    def finish(self, file: MirroredFile, version: FileVersion) -> None:
        """Let a file be opened whose content has come."""
        descriptor = file.descriptor
        os.ftruncate(descriptor, version.size)
        os.utime(descriptor, ns=(version.mtime_ns, version.mtime_ns))
        file.there, file.digest = version, digest_of(descriptor)
        file.seen = signature_of(os.fstat(descriptor))
        self._let_go(file)

    def give_up(self, file: MirroredFile, problem: str) -> None:
        """Let a file be opened, empty, whose content does not come: nobody is to take zeros for it."""
        file.problem = problem
        os.ftruncate(file.descriptor, 0)
        file.seen = signature_of(os.fstat(file.descriptor))
        self._let_go(file)

    def empty(self, file: MirroredFile) -> None:
        """Let a file be opened by who is about to empty it: its content need not come."""
        os.ftruncate(file.descriptor, 0)
        self._let_go(file)
        file.seen = None

    def _let_go(self, file: MirroredFile) -> None:
        descriptor, file.descriptor = file.descriptor, -1
        self._leases.close(descriptor)

    # --- as cells have made it

    def changes(self) -> FolderChanges:
        """Find what cells have changed since it was the same as in the notebook."""
        found = FolderChanges([], {}, {}, {}, [], set(), [], {}, [], set())
        here: set[str] = set()
        inodes, closed = set[int](), list[str]()
        left, specials = dict[str, Signature](), dict[str, str]()
        self._unread = [f"{path}/" for path, problem in self.folders.items() if problem]
        refused = tuple(self._unread)
        for path, entry, facts, does_follow in walk(
            self.here, is_followed=lambda path: not self.folders.get(path), unread=closed
        ):
            if special := special_kind(facts.st_mode):
                specials.update({path: special} if does_follow else {})
                continue
            signature = signature_of(facts)
            inodes.add(signature.inode)
            if not does_follow:  # it may be what the notebook has under another name
                left[path] = signature
                if path not in self.left and not is_text(entry.name) and not path.startswith(refused):
                    found.unnamed.append(path)
                continue
            if self.failed.get(path) == signature:
                here.add(path)
                self._unread.append(f"{path}/")
                continue
            if self._is_in_the_way(path, is_folder=stat.S_ISDIR(facts.st_mode)):
                found.in_the_way.add(path)
            else:
                here.add(path)
            if entry.is_symlink():
                target = str(Path(entry.path).readlink())
                if (link := self._links.get(path)) is None or link.target != target:
                    found.links[path] = target
            elif stat.S_ISDIR(facts.st_mode):
                if path not in self.folders:
                    found.folders.append(path)
            elif self._is_changed(path, signature):
                found.files[path] = signature
        self.left = left
        found.special.update({path: kind for path, kind in specials.items() if path not in self._special})
        self._special = specials
        self._unread += closed
        before, self.closed = self.closed, set(filter(None, closed))
        found.closed.extend(sorted(self.closed - before))
        unread = tuple(self._unread)  # nobody knows what is gone of it, or it is another one than the notebook's
        gone = [path for path in (*self.files, *self._links, *self.folders) if path not in here]
        gone = [path for path in gone if not path.startswith(unread)]
        replaced = tuple(f"{path}/" for path in found.in_the_way)
        found.in_the_way.update(path for path in gone if path.startswith(replaced))
        found.removed_files.update({path: self.files[path].there for path in gone if path in self.files})
        found.removed_files.update({path: LINK for path in gone if path in self._links})
        there = ((path, self.signature_there(path)) for path in found.removed_files if self.closed)
        found.hidden.update(path for path, was in there if was is None or was.inode not in inodes)
        found.removed_folders.extend(sorted((path for path in gone if path in self.folders), reverse=True))
        return found

    def _is_in_the_way(self, path: str, *, is_folder: bool) -> bool:
        """Tell whether the notebook has a folder where there is none here, or no folder where there is one."""
        return path in self.files or path in self._links if is_folder else path in self.folders

    def version_there(self, path: str) -> FileVersion | None:
        """Return the version of the file or link that the notebook has under a name; None if it has none."""
        file = self.files.get(path)
        return file.there if file is not None else LINK if path in self._links else None

    def _is_changed(self, path: str, now: Signature) -> bool:
        file = self.files.get(path)
        if file is None:
            return True
        if file.seen == now or (file.inode == now.inode and file.descriptor >= 0):
            return False
        if file.seen is not None and file.seen.size == now.size:
            with contextlib.suppress(OSError), self.path(path).open("rb") as source:
                if digest_of(source.fileno()) == file.digest:  # it was touched, and is as it was
                    file.seen, file.inode = now, now.inode
                    return False
        return True

    def is_to_come(self, inode: int) -> tuple[str, MirroredFile] | None:
        """Find the file of the notebook, under whatever name it is here, that has this inode and no content yet."""
        for path, file in self.files.items():
            if file.inode == inode and file.descriptor >= 0:
                return path, file
        return None

    def signature_there(self, path: str) -> Signature | None:
        """Return how a file or link of the notebook was here when it was as there; its inode alone if nobody knows."""
        file = self.files.get(path)
        if file is not None:
            return file.seen or Signature(file.inode, -1, 0, 0)
        return self._links[path].seen if path in self._links else None

    # --- what the notebook has taken over

    def note_stored(self, path: str, now: Signature, mode: int, digest: str, version: FileVersion) -> None:
        """Take note that the notebook has a file as it was then."""
        self.note_removed(path)
        self.files[path] = MirroredFile(version, mode, now.inode, -1, now, digest)
        self.failed.pop(path, None)

    def note_removed(self, path: str) -> None:
        """Take note that the notebook has a file, link or folder no more."""
        file = self.files.pop(path, None)
        if file is not None and file.descriptor >= 0:
            self._let_go(file)
        self._links.pop(path, None)
        self.folders.pop(path, None)

    def note_made(self, path: str, target: str | None) -> None:
        """Take note that the notebook has a folder, or a link that leads to `target`."""
        self.note_removed(path)
        if target is None:
            self.folders[path] = ""
        else:
            self._links[path] = MirroredLink(target, signature_at(self.path(path)))

    def note_failed(self, path: str, now: Signature | None = None) -> None:
        """Take note that what is here under this name could not be brought, as it is, or as it was before."""
        if (signature := now or signature_at(self.path(path))) is not None:
            self.failed[path] = signature

    def note_kept(self, path: str) -> None:
        """Take note that the notebook keeps what cells took away: it is put here again before the next one."""
        self.note_removed(path)
        self.listing_digest = ""

    def note_taken(self, path: str) -> None:
        """Take note that the notebook has something of its own of that name, and keeps it."""
        self.note_removed(path)
        self._taken.add(path)


def _is_folder(path: Path) -> bool:
    with contextlib.suppress(OSError):  # it may be in one that nobody can look into
        return stat.S_ISDIR(path.lstat().st_mode)
    return False


def _kind(entries: dict[str, FolderEntry], path: str) -> str:
    entry = entries.get(path)
    return entry.kind if entry is not None else ""
