"""How what cells made goes to the notebook: what is there goes only once what became of it has arrived.

A cell may move the only copy of a file: whatever is refused on the way, and whoever is killed in between, its content
is in the notebook under the old name or the new one.
"""

import os
import posixpath
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import xxhash

from bulletin.file_names import show_name
from bulletin.wire.frames import Blob
from bulletin.wire.messages import ChangeFolder, FileVersion, FolderReply, StoreFile
from gpu_worker.executor.file_signatures import Signature, signature_at
from gpu_worker.executor.folder_mirror import FolderMirror
from gpu_worker.executor.folder_requests import PART_BYTES, PATIENCE_S, Job
from gpu_worker.executor.folder_transfers import FolderTransfers
from gpu_worker.executor.folder_walk import COMPILED

#: So many files are on their way to the notebook at once.
_AT_ONCE = 8
#: Of so many of a kind that stay here a user reads each by its name; of more, how many there are.
_MOST_TOLD = 5


class FolderReturn:
    """Takes to the notebook, once, what cells have changed in a mirror."""

    def __init__(self, transfers: FolderTransfers, mirror: FolderMirror) -> None:
        self._transfers, self._mirror = transfers, mirror
        self._changes = mirror.changes()
        #: Files that have not arrived yet.
        self._waiting = self._changes.files
        #: What stays in the notebook though it is gone here, and the folders that it is in.
        self._kept: set[str] = set()
        #: Copies, by the name of what has to go there before it can have its new one.
        self._copies: dict[str, _FileReturn] = {}

    def hand_back(self) -> None:
        """Make the notebook's folder as cells have left this one. Raises FolderUnreachable, somewhere in between."""
        changes, mirror = self._changes, self._mirror
        self._say_what_stays()
        self._bring_moved()
        late = {path for path in (*changes.folders, *changes.links, *changes.files) if self._is_in_the_way(path)}
        self._make_folders(path for path in changes.folders if path not in late)
        new = {path for path in changes.links if path not in late and mirror.version_there(path) is None}
        self._make_links(new)
        self._upload([path for path in changes.files if path not in late])
        self._copy_moved()
        self._remove(lambda path: path in changes.in_the_way)
        kept = {path for path in late if not self._kept.isdisjoint(self._find_in_the_way(path))}
        for path in sorted(kept):
            self._hold_back(path, min(self._find_in_the_way(path)))
        self._make_folders(path for path in changes.folders if path in late - kept)
        self._make_links(path for path in changes.links if path in late - kept)
        self._upload(list(self._waiting), is_last=True)
        self._make_links(path for path in changes.links if path not in late | new)
        self._remove(lambda path: path not in changes.in_the_way)
        self._remove_copies()

    def _say_what_stays(self) -> None:
        """Tell the user what no cell's changes bring to the notebook, where no look has found it before."""
        changes = self._changes
        unnamed = [
            f"{show_name(path)} was not brought to the notebook's folder: its name has control characters, ends of "
            "lines, or bytes that are no UTF-8. Give it another one in a cell."
            for path in changes.unnamed
        ]
        special = [
            f"{path} was not brought to the notebook's folder: it is a {kind}, and only files, folders and links "
            "travel."
            for path, kind in changes.special.items()
        ]
        closed = [
            f"What is in {show_name(path)} was not brought to the notebook's folder: nobody can look into it. Give its "
            "user the right to (chmod u+rwx) in a cell."
            for path in changes.closed
        ]
        for sentences, kind in ((unnamed, "names"), (special, "pipes, sockets and devices"), (closed, "folders")):
            for sentence in sentences[:_MOST_TOLD]:
                self._transfers.note(sentence)
            more = len(sentences) - _MOST_TOLD
            if more > 0:
                self._transfers.note(f"So it is with {more:,} more of the {kind} there.")

    def _find_in_the_way(self, path: str) -> set[str]:
        """Find what the notebook has where this, or a folder that it is in, is to be."""
        in_the_way = self._changes.in_the_way
        return in_the_way.intersection(_with_parents(path)) if in_the_way else set()

    def _is_in_the_way(self, path: str) -> bool:
        return bool(self._find_in_the_way(path))

    def _bring_moved(self) -> None:
        """Have the content of files that cells moved without having opened them; one that has none stays here."""
        by_inode = {file.inode: (path, file) for path, file in self._mirror.files.items()}
        moved = {path: by_inode[now.inode] for path, now in self._waiting.items() if now.inode in by_inode}
        left = {path: by_inode[now.inode] for path, now in self._mirror.left.items() if now.inode in by_inode}
        found = (*moved.values(), *left.values())
        self._transfers.fetch(self._mirror, [old for old, file in found if file.descriptor >= 0])
        for path in left:
            self._mirror.left[path] = signature_at(self._mirror.path(path)) or self._mirror.left[path]
        for path, (_, file) in moved.items():
            now = signature_at(self._mirror.path(path))
            if now is not None:
                self._waiting[path] = now
            if now is not None and file.problem and file.seen is not None and _are_alike(now, file.seen):
                self._mirror.note_failed(path, self._waiting.pop(path))
                self._transfers.note(f"{path} was not brought to the notebook's folder: {file.problem}.")

    def _make_folders(self, paths: Iterable[str]) -> None:
        for path in paths:  # a folder before what is in it
            self._transfers.requests.run([self._change("make-folder", path)], PATIENCE_S)

    def _make_links(self, paths: Iterable[str]) -> None:
        for path in paths:
            if self._is_lost(path, self._find_failed(), is_unchanged=True):
                self._hold_back(path, path)
            else:
                base, target = self._mirror.version_there(path), self._changes.links[path]
                self._transfers.requests.run([self._change("make-link", path, base, target)], PATIENCE_S)

    def _upload(self, paths: list[str], *, is_last: bool = False) -> None:
        """Send these files, each once what had its name is there under its new one; unless `is_last`, some may stay."""
        while paths:
            to_come = {now.inode: path for path, now in self._waiting.items()}
            ready = [path for path in paths if not self._is_moved(path, to_come)]
            if not ready and not is_last:
                return
            if not ready:  # they have changed places
                self._copy(paths[0], to_come)
            self._send(ready or paths[:1])
            paths = [path for path in paths if path in self._waiting]

    def _is_moved(self, path: str, to_come: dict[int, str]) -> bool:
        """Tell whether what the notebook has under this name is to come under another one."""
        before = self._mirror.signature_there(path)
        return before is not None and to_come.get(before.inode, path) != path

    def _copy_moved(self) -> None:
        """Copy what has to go first and waits for that itself, as a file that moves into the folder in its place."""
        to_come = {now.inode: path for path, now in self._waiting.items()}
        for path in self._changes.removed_files:
            if path in self._changes.in_the_way and self._is_moved(path, to_come):
                self._copy(path, to_come)

    def _copy(self, path: str, to_come: dict[int, str]) -> None:
        """Bring what has this name in the notebook to a name beside it, or beside the folder that has to go with it."""
        before = self._mirror.signature_there(path)
        assert before is not None
        stem, suffix = posixpath.splitext(min(self._find_in_the_way(path), default=path))
        name = f"{stem}.cell-{secrets.token_hex(3)}{suffix}"
        moved = to_come[before.inode]
        copy = self._copies[path] = _FileReturn(self._transfers, self._mirror, moved, self._waiting[moved], name)
        self._transfers.requests.run(copy.jobs(), PATIENCE_S)
        self._transfers.requests.run(copy.last_jobs(), PATIENCE_S)

    def _remove_copies(self) -> None:
        for path, copy in self._copies.items():
            if copy.version is None:
                continue
            if copy.path in self._mirror.failed:
                self._transfers.note(f"What was {path} in the notebook's folder is {copy.name} there.")
            else:
                job = self._change("remove-file", copy.name, copy.version)
                self._transfers.requests.run([job], PATIENCE_S)

    def _send(self, paths: list[str]) -> None:
        failed, uploads = self._find_failed(), []
        for path in paths:
            if self._is_lost(path, failed, is_unchanged=True):
                self._hold_back(path, path)
            else:
                uploads.append(_FileReturn(self._transfers, self._mirror, path, self._waiting.pop(path)))
        for start in range(0, len(uploads), _AT_ONCE):
            some = uploads[start : start + _AT_ONCE]
            self._transfers.requests.run((job for upload in some for job in upload.jobs()), PATIENCE_S)
            self._transfers.requests.run([job for upload in some for job in upload.last_jobs()], PATIENCE_S)

    def _remove(self, is_meant: Callable[[str], bool]) -> None:
        """Remove files and links, and folders in their order, but not the only copy of what was moved."""
        failed, changes = self._find_failed(), self._changes
        files = [path for path in changes.removed_files if is_meant(path)]
        for path in [path for path in files if path in changes.hidden or self._is_lost(path, failed)]:
            files.remove(path)
            self._kept.update(_with_parents(path))
            self._mirror.note_kept(path)
            why = "what the cell moved it to could not be brought"
            if path in changes.hidden:
                why = f"it may be in {show_name(min(self._mirror.closed))}, which nobody can look into"
            self._transfers.note(f"{path} is kept in the notebook's folder: {why}.")
        jobs = [self._change("remove-file", path, changes.removed_files[path]) for path in files]
        self._transfers.requests.run(jobs, PATIENCE_S)
        for path in filter(is_meant, changes.removed_folders):
            if path in self._kept:
                self._mirror.note_kept(path)
            else:
                self._transfers.requests.run([self._change("remove-folder", path)], PATIENCE_S)

    def _find_failed(self) -> dict[int, str]:
        """Find what could not be brought, by inode: it may be what the notebook has under another name."""
        return {now.inode: path for path, now in (*self._mirror.left.items(), *self._mirror.failed.items())}

    def _is_lost(self, path: str, failed: dict[int, str], *, is_unchanged: bool = False) -> bool:
        """Tell whether what the notebook has under this name was moved here, and could not be brought.

        An inode may be given to another file: where that must not hold something up, only what `is_unchanged` counts;
        so it is with what Python compiles, of which there is much.
        """
        if path in self._copies:
            return self._copies[path].version is None
        before = self._mirror.signature_there(path)
        other = failed.get(before.inode, path) if before is not None else path
        if before is None or other == path:
            return False
        now = self._mirror.failed[other] if other in self._mirror.failed else self._mirror.left[other]
        is_compiled = COMPILED in other.split("/") and before.size >= 0  # else it is held here, and so is its inode
        return not (is_unchanged or is_compiled) or _are_alike(now, before)

    def _hold_back(self, path: str, kept: str) -> None:
        """Leave here what would take the place of the only copy of something."""
        self._mirror.note_failed(path, self._waiting.pop(path, None))
        if path == kept:
            self._mirror.note_kept(path)
        self._transfers.note(
            f"{path} was not brought to the notebook's folder: {kept} is kept there, as what the cell moved it to could"
            " not be brought."
        )

    def _change(self, change: str, path: str, base: FileVersion | None = None, target: str = "") -> Job:
        mirror, note = self._mirror, self._transfers.note

        def make(number: int) -> tuple[ChangeFolder, Sequence[Blob]]:
            fields = {"number": number, "root": mirror.root, "path": path, "change": change, "target": target}
            return msgspec.convert({**fields, "base": base and msgspec.to_builtins(base)}, ChangeFolder), ()

        def take(reply: FolderReply, _blobs: Sequence[Blob]) -> Iterable[Job]:
            if reply.problem:
                note(f"{path} is not as the cell left it in the notebook's folder: {reply.problem}.")
            if reply.note:
                note(reply.note)
            if not change.startswith("make"):
                mirror.note_taken(path) if reply.note else mirror.note_removed(path)
            elif reply.problem:  # it is not tried with each cell
                mirror.note_failed(path)
            else:
                mirror.note_made(path, target if change == "make-link" else None)
            return ()

        return Job(make, take)


class _FileReturn:
    """A file that a cell has made or changed, on its way to the notebook."""

    def __init__(
        self, transfers: FolderTransfers, mirror: FolderMirror, path: str, now: Signature, name: str = ""
    ) -> None:
        """Begin. As a copy, it gets a `name` of its own there, and the mirror does not know of it."""
        self._transfers, self._mirror, self.path, self._now = transfers, mirror, path, now
        self.name = name or path
        self._base = mirror.version_there(path) if not name else None
        #: As it is in the notebook, once it is there.
        self.version: FileVersion | None = None
        self._mode = 0o644
        self._digest = xxhash.xxh3_128()
        self._last: tuple[int, bytes] | None = None
        self._total = now.size
        self._is_over = False

    def jobs(self) -> Iterator[Job]:
        """Send all parts but the last."""
        try:
            descriptor = os.open(self._mirror.path(self.path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            self._give_up(error.strerror or str(error))
            return
        try:
            self._mode = stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o777
            offset = 0
            while True:
                data = os.pread(descriptor, min(PART_BYTES, self._total - offset), offset)
                self._digest.update(data)
                if offset + len(data) >= self._total or not data:
                    self._total = offset + len(data)
                    self._last = offset, data
                    return
                yield self._job(offset, data, "")
                if self._is_over:
                    return
                offset += len(data)
        finally:
            os.close(descriptor)

    def last_jobs(self) -> list[Job]:
        """Send the last part, when all others are there."""
        if self._is_over or self._last is None:
            return []
        return [self._job(*self._last, self._digest.hexdigest())]

    def _job(self, offset: int, data: bytes, digest: str) -> Job:
        def make(number: int) -> tuple[StoreFile, Sequence[Blob]]:
            message = StoreFile(
                number=number,
                root=self._mirror.root,
                path=self.name,
                offset=offset,
                total=self._total,
                mode=self._mode,
                digest=digest,
                base=self._base,
            )
            return message, (data,)

        def take(reply: FolderReply, _blobs: Sequence[Blob]) -> Iterable[Job]:
            if reply.problem:
                self._give_up(reply.problem)
            elif digest and reply.version is not None:
                if reply.note:
                    self._transfers.note(reply.note)
                self.version = FileVersion(0, 0) if reply.note else reply.version
                if self.name == self.path:
                    self._mirror.note_stored(self.path, self._now, self._mode, digest, self.version)
            return ()

        return Job(make, take)

    def _give_up(self, problem: str) -> None:
        if not self._is_over:
            self._is_over = True
            if self.name == self.path:
                self._mirror.note_failed(self.path, self._now)
            self._transfers.note(f"{self.name} was not brought to the notebook's folder: {problem}.")


def _with_parents(path: str) -> Iterator[str]:
    """Yield a path and the folders that it is in."""
    while path:
        yield path
        path = posixpath.dirname(path)


def _are_alike(one: Signature, other: Signature) -> bool:
    """Tell whether they are of one file that was not written to: a new name changes only the time of that."""
    return one[:3] == other[:3]
