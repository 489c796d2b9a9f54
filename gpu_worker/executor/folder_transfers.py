"""How the content of files comes from the notebook."""

import posixpath
from collections.abc import Iterable, Sequence

import msgspec

from bulletin.errors import MalformedMessage
from bulletin.whole_writes import write_whole
from bulletin.wire.frames import UNREADABLE, Blob
from bulletin.wire.messages import FetchFile, FileVersion, FolderEntry, FolderReply, ListFolder
from gpu_worker.executor.folder_mirror import FolderMirror, MirroredFile
from gpu_worker.executor.folder_orders import MOST_SENTENCES
from gpu_worker.executor.folder_requests import PART_BYTES, PATIENCE_S, FolderRequests, FolderUnreachable, Job

#: A file that is changed while it is read is read so often from its beginning.
_TRIES = 3
#: Small files beside one that is opened come with it: most often they are opened next.
_SMALL_BYTES, _MOST_SMALL = 128 * 1024, 128
#: So many sentences are kept for the user, who reads fewer; of the others only how many there were.
_MOST_NOTES = 10 * MOST_SENTENCES


class FolderTransfers:
    """Brings contents from the notebook into mirrors, and collects what its user is to be told."""

    def __init__(self, requests: FolderRequests) -> None:
        self.requests = requests
        #: In the order in which they were said, each once, however many there are.
        self._notes: dict[str, None] = {}
        self._more = 0  #: those that are not kept

    def note(self, sentence: str) -> None:
        """Tell the user, with the end of the cell."""
        if len(self._notes) < _MOST_NOTES or sentence in self._notes:
            self._notes[sentence] = None
        else:
            self._more += 1

    def take_notes(self) -> list[str]:
        """Hand over what the user is to be told, once: the first sentences, then how many there are beside them."""
        notes, more = list(self._notes), self._more
        self._notes, self._more = {}, 0
        more += max(0, len(notes) - MOST_SENTENCES)
        return [*notes[:MOST_SENTENCES], *([f"So it is with {more:,} more."] if more else [])]

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
                try:
                    found = read_listing(blobs)
                except MalformedMessage as error:
                    problem = f"its list is none: {error.problem}"
                else:
                    mirror.listing_digest = reply.digest
            return ()

        make = lambda number: (ListFolder(number=number, root=mirror.root, digest=mirror.listing_digest), ())  # noqa: E731
        self.requests.run([Job(make, take)], PATIENCE_S)
        if problem:
            raise OSError(problem)
        return found

    # --- to here

    def fill(self, mirror: FolderMirror, path: str, until_s: float | None = None) -> None:
        """Bring the content of a file, and of small ones beside it. By `until_s` somebody cannot be held any longer."""
        file = mirror.files[path]
        self.fetch(mirror, [path], until_s)
        if file.descriptor < 0 and file.there.size <= _SMALL_BYTES:
            folder = posixpath.dirname(path)
            beside = [
                other
                for other, one in mirror.files.items()
                if one.descriptor >= 0 and one.there.size <= _SMALL_BYTES and posixpath.dirname(other) == folder
            ]
            self.fetch(mirror, beside[:_MOST_SMALL], patience_s=1.0)

    def fill_all(self, mirror: FolderMirror, files: Iterable[MirroredFile]) -> None:
        """Bring the contents of these files."""
        wanted = {id(file) for file in files}
        self.fetch(mirror, [path for path, file in mirror.files.items() if id(file) in wanted])

    def fetch(
        self, mirror: FolderMirror, paths: list[str], until_s: float | None = None, patience_s: float = PATIENCE_S
    ) -> None:
        """Bring these files' contents; one that does not come is given up with a note, unless nobody waits for it."""
        fetches = [_Fetch(mirror, path, mirror.files[path]) for path in paths if mirror.files[path].descriptor >= 0]
        try:
            self.requests.run([fetch.first_job() for fetch in fetches], patience_s, until_s)
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
            elif fetch.has_grown:
                self.note(f"{fetch.path} grows in the notebook: the cell has what was in it when it began to come.")


def read_listing(blobs: Sequence[Blob]) -> list[FolderEntry]:
    """Read what is in the notebook's folder. Raises MalformedMessage where it is no list of what is inside one."""
    try:
        entries = msgspec.msgpack.decode(b"".join(map(bytes, blobs)), type=list[FolderEntry])
    except UNREADABLE as error:
        raise MalformedMessage(str(error)) from None
    for entry in entries:
        if "\0" in entry.path + entry.target or not {"", ".", ".."}.isdisjoint(entry.path.split("/")):
            raise MalformedMessage(f"{entry.path!r} is no path in a folder")
    return entries


class _Fetch:
    """The content of one file on its way to here."""

    def __init__(self, mirror: FolderMirror, path: str, file: MirroredFile) -> None:
        self._mirror, self.path, self.file = mirror, path, file
        self.problem = ""
        #: It was written to all the while, and has come as it was at a moment.
        self.has_grown = False
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
            if reply.version != self._version and not self._note_growth(reply.version):
                return self._start_again()
            if reply.digest and reply.digest not in self._mirror.known_digests(self.file.there.size):
                raise OSError("the notebook named a content that is not there")
            if reply.digest:
                self._mirror.copy_known(reply.digest, self.file)
            for blob in blobs:
                write_whole(self.file.descriptor, blob, offset)
            self._missing -= 1
            if self._missing == 0:
                self._mirror.finish(self.file, reply.version)
        except OSError as error:
            self.problem = f"{error.strerror or error} on the node"
        return reversed(following)

    def _note_growth(self, version: FileVersion) -> bool:
        """Tell whether what has come counts all the same: at the last try, of a log or the like, which only grows."""
        assert self._version is not None
        self.has_grown = self._tries == _TRIES - 1 and version.size > self._version.size
        return self.has_grown

    def _start_again(self) -> Iterable[Job]:
        """Read the file from its beginning: it was changed meanwhile."""
        self._tries += 1
        if self._tries >= _TRIES:
            self.problem = "it is changed in the notebook again and again while it is read"
            return ()
        return [self.first_job()]
