"""How the content of files comes from the notebook, and what cells made goes there."""

import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import xxhash

from bulletin.wire.frames import Blob
from bulletin.wire.messages import ChangeFolder, FetchFile, FileVersion, FolderEntry, FolderReply, ListFolder, StoreFile
from gpu_worker.executor.folder_mirror import FolderMirror, MirroredFile, Signature, signature_of
from gpu_worker.executor.folder_requests import PART_BYTES, FolderRequests, FolderUnreachable, Job

#: So long nobody may answer before a cell is not begun, or goes on without what it opens, or its files stay here.
PATIENCE_S = 60.0
#: A file that is changed while it is read is read so often from its beginning.
_TRIES = 3
#: Small files beside one that is opened come with it: most often they are opened next.
_SMALL_BYTES, _MOST_SMALL = 128 * 1024, 128
#: So many files are on their way to the notebook at once.
_AT_ONCE = 8


class FolderTransfers:
    """Moves contents between mirrors and the notebook. `notes` has what its user is to be told."""

    def __init__(self, requests: FolderRequests) -> None:
        self._requests = requests
        self.notes: list[str] = []

    def note(self, sentence: str) -> None:
        """Tell the user, with the end of the cell."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def list_folder(self, mirror: FolderMirror) -> list[FolderEntry] | None:
        """Return what is in the notebook's folder; None where nothing has changed.

        Raises FolderUnreachable, or OSError with a sentence.
        """
        found: list[FolderEntry] | None = None
        problem = ""

        def take(reply: FolderReply, blobs: Sequence[Blob]) -> Iterable[Job]:
            nonlocal found, problem
            problem = reply.problem
            if reply.note:
                self.note(f"{reply.note}.")
            if blobs:
                found = msgspec.msgpack.decode(b"".join(map(bytes, blobs)), type=list[FolderEntry])
                mirror.listing_digest = reply.digest
            return ()

        make = lambda number: (ListFolder(number=number, root=mirror.root, digest=mirror.listing_digest), ())  # noqa: E731
        self._requests.run([Job(make, take)], PATIENCE_S)
        if problem:
            raise OSError(problem)
        return found

    # --- to here

    def fill(self, mirror: FolderMirror, path: str, until_s: float | None = None) -> None:
        """Bring the content of a file, and of small ones beside it. By `until_s` somebody cannot be held any longer."""
        file = mirror.files[path]
        self._fetch_all(mirror, [path], until_s)
        if file.descriptor < 0 and file.there.size <= _SMALL_BYTES:
            folder = posixpath.dirname(path)
            beside = [
                other
                for other, one in mirror.files.items()
                if one.descriptor >= 0 and one.there.size <= _SMALL_BYTES and posixpath.dirname(other) == folder
            ]
            self._fetch_all(mirror, beside[:_MOST_SMALL], None, patience_s=1.0)

    def fill_all(self, mirror: FolderMirror, files: Iterable[MirroredFile]) -> None:
        """Bring the contents of these files."""
        wanted = {id(file) for file in files}
        self._fetch_all(mirror, [path for path, file in mirror.files.items() if id(file) in wanted], None)

    def _fetch_all(
        self, mirror: FolderMirror, paths: list[str], until_s: float | None, patience_s: float = PATIENCE_S
    ) -> None:
        """Bring these files' contents; one that does not come is given up with a note, unless nobody waits for it."""
        fetches = [_Fetch(mirror, path, mirror.files[path]) for path in paths if mirror.files[path].descriptor >= 0]
        try:
            self._requests.run([fetch.first_job() for fetch in fetches], patience_s, until_s)
        except FolderUnreachable as error:
            if patience_s < PATIENCE_S:
                return
            late = "it takes longer than an open can wait" if until_s is not None else str(error)
            for fetch in fetches:
                fetch.problem = fetch.problem or late
        for fetch in fetches:
            if fetch.problem and fetch.file.descriptor >= 0:
                mirror.give_up(fetch.file, fetch.problem)
                self.note(f"{fetch.path} is empty on the node: {fetch.problem}.")

    # --- to there

    def hand_back(self, mirror: FolderMirror) -> None:
        """Take to the notebook what cells have changed. Raises FolderUnreachable."""
        changes = mirror.changes()
        for path, now in list(changes.files.items()):
            to_come = mirror.is_to_come(now.inode)
            if to_come is not None:  # the cell has given it another name, without having opened it
                self._fetch_all(mirror, [to_come[0]], None)
                changes.files[path] = signature_of(mirror.path(path).lstat())
        first = changes.in_the_way
        self._remove(
            mirror,
            {path: base for path, base in changes.removed_files.items() if path in first},
            [path for path in changes.removed_folders if path in first],
        )
        jobs = [self._change(mirror, "make-folder", path) for path in changes.folders]
        jobs += [
            self._change(mirror, "make-link", path, mirror.version_there(path), target)
            for path, target in changes.links.items()
        ]
        for job in jobs:  # a folder before what is in it
            self._requests.run([job], PATIENCE_S)
        uploads = [_FileReturn(self, mirror, path, now) for path, now in changes.files.items()]
        for start in range(0, len(uploads), _AT_ONCE):
            some = uploads[start : start + _AT_ONCE]
            self._requests.run((job for upload in some for job in upload.jobs()), PATIENCE_S)
            self._requests.run([job for upload in some for job in upload.last_jobs()], PATIENCE_S)
        self._remove(
            mirror,
            {path: base for path, base in changes.removed_files.items() if path not in first},
            [path for path in changes.removed_folders if path not in first],
        )

    def _remove(self, mirror: FolderMirror, files: Mapping[str, FileVersion], folders: Iterable[str]) -> None:
        """Remove files and links, and folders in their order."""
        self._requests.run(
            [self._change(mirror, "remove-file", path, base) for path, base in files.items()], PATIENCE_S
        )
        for path in folders:
            self._requests.run([self._change(mirror, "remove-folder", path)], PATIENCE_S)

    def _change(
        self, mirror: FolderMirror, change: str, path: str, base: FileVersion | None = None, target: str = ""
    ) -> Job:
        def make(number: int) -> tuple[ChangeFolder, Sequence[Blob]]:
            fields = {"number": number, "root": mirror.root, "path": path, "change": change, "target": target}
            return msgspec.convert({**fields, "base": base and msgspec.to_builtins(base)}, ChangeFolder), ()

        def take(reply: FolderReply, _blobs: Sequence[Blob]) -> Iterable[Job]:
            if reply.problem:
                self.note(f"{path} is not as the cell left it in the notebook's folder: {reply.problem}.")
            if reply.note:
                self.note(reply.note)
            if change.startswith("make"):  # also where it could not be made: it is not tried with each cell
                mirror.note_made(path, target if change == "make-link" else None)
            else:
                mirror.note_removed(path)
            return ()

        return Job(make, take)


class _Fetch:
    """The content of one file on its way to here."""

    def __init__(self, mirror: FolderMirror, path: str, file: MirroredFile) -> None:
        self._mirror, self.path, self.file = mirror, path, file
        self.problem = ""
        self._version: FileVersion | None = None
        #: How often it was begun anew.
        self._tries = 0
        #: Parts that are to come.
        self._missing = 0

    def first_job(self) -> Job:
        """Ask for the first part, or whether a content that was here is that of the file."""
        known = self._mirror.known_digests(self.file.there.size)
        return self._job(0, known)

    def _job(self, offset: int, known: tuple[str, ...] = ()) -> Job:
        def make(number: int) -> tuple[FetchFile, Sequence[Blob]]:
            root, path = self._mirror.root, self.path
            return FetchFile(number=number, root=root, path=path, offset=offset, size=PART_BYTES, known=known), ()

        tries = self._tries
        return Job(make, lambda reply, blobs: self._take(tries, offset, reply, blobs))

    def _take(self, tries: int, offset: int, reply: FolderReply, blobs: Sequence[Blob]) -> Iterable[Job]:
        if self.problem or self.file.descriptor < 0 or tries != self._tries:
            return ()
        if reply.problem or reply.version is None:
            self.problem = reply.problem or "its content did not come"
            return ()
        following: list[Job] = []
        if offset == 0:
            self._version = reply.version
            if not reply.digest:
                following = [self._job(part) for part in range(PART_BYTES, reply.version.size, PART_BYTES)]
            self._missing = 1 + len(following)
        try:
            if reply.version != self._version:
                return self._start_again()
            if reply.digest:
                self._mirror.copy_known(reply.digest, self.file)
            for blob in blobs:
                os.pwrite(self.file.descriptor, blob, offset)
            self._missing -= 1
            if self._missing == 0:
                self._mirror.finish(self.file, reply.version)
        except OSError as error:
            self.problem = f"{error.strerror or error} on the node"
        return reversed(following)

    def _start_again(self) -> Iterable[Job]:
        """Read the file from its beginning: it was changed meanwhile."""
        self._tries += 1
        if self._tries >= _TRIES:
            self.problem = "it is changed in the notebook again and again while it is read"
            return ()
        return [self.first_job()]


class _FileReturn:
    """A file that a cell has made or changed, on its way to the notebook."""

    def __init__(self, transfers: FolderTransfers, mirror: FolderMirror, path: str, now: Signature) -> None:
        self._transfers, self._mirror, self._path, self._now = transfers, mirror, path, now
        self._base = mirror.version_there(path)
        self._mode = 0o644
        self._digest = xxhash.xxh3_128()
        self._last: tuple[int, bytes] | None = None
        self._total = now.size
        self._is_over = False

    def jobs(self) -> Iterator[Job]:
        """Send all parts but the last."""
        try:
            descriptor = os.open(self._mirror.path(self._path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
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
                path=self._path,
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
                version = FileVersion(0, 0) if reply.note else reply.version
                self._mirror.note_stored(self._path, self._now, self._mode, digest, version)
            return ()

        return Job(make, take)

    def _give_up(self, problem: str) -> None:
        if not self._is_over:
            self._is_over = True
            self._mirror.failed[self._path] = self._now
            self._transfers.note(f"{self._path} was not brought to the notebook's folder: {problem}.")
