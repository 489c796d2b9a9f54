"""How libraries come that the notebook has and this environment lacks: their files, and those of what they need."""

import importlib.metadata
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from bulletin.libraries import glibc, platform
from bulletin.units import show_size
from bulletin.whole_writes import write_whole
from bulletin.wire.frames import UNREADABLE, Blob
from bulletin.wire.messages import FetchLibrary, FindLibrary, FolderReply, Library, LibraryFile
from gpu_worker.executor.folder_requests import PART_BYTES, PATIENCE_S, FolderRequests, FolderUnreachable, Job

#: What all libraries of one session have at most on the node.
_MOST_BYTES = 1_000_000_000
#: So many libraries at most come with one that is asked for.
_MOST_LIBRARIES = 200


class LibraryFetches:
    """Brings libraries into folders of their own, each whole or not at all."""

    def __init__(self, requests: FolderRequests, place: Path) -> None:
        """`place` is a folder that is not there yet."""
        self._requests, self._place = requests, place
        self._came: dict[str, str] = {}  #: folders to import from, by the name of the library
        self._bytes = self._begun = 0
        #: Why a module's library did not come, as the end of a sentence.
        self.problems: dict[str, str] = {}

    @property
    def folders(self) -> tuple[str, ...]:
        """List where modules are to be looked for, the oldest first."""
        return tuple(self._came.values())

    def bring(self, modules: Iterable[str]) -> list[str]:
        """Bring what has these top modules, with all that it needs and is not here; return sentences for the user.

        Each comes with what it needs or not at all, and then `problems` says why; that keeps none of the others away.
        """
        sentences, unreachable = [], ""
        for module in modules:
            self.problems.pop(module, None)
            try:
                if unreachable:  # nobody waits for it once for each of them
                    raise FolderUnreachable(unreachable)
                if libraries := self._gather(module):
                    sentences.append(_say(module, libraries, self._fetch_all(libraries)))
            except FolderUnreachable as error:
                self.problems[module] = unreachable = str(error)
            except OSError as error:
                self.problems[module] = f"{error.strerror or error}"
        return sentences

    def _gather(self, module: str) -> list[Library]:
        """Gather what is to come for a module; nothing where `problems` says why not.

        Raises OSError, too, where it cannot come.
        """
        found = {one.name: one for one in self._ask(_question(module=module))}
        if not found:
            self.problems[module] = "no library that is installed there names it among its files"
        waiting = [name for one in found.values() for name in one.requires]
        while waiting and len(found) <= _MOST_LIBRARIES:
            name = waiting.pop()
            if name in found or _is_here(name):
                continue
            for one in self._ask(_question(library=name)):
                found[one.name] = one
                waiting += one.requires
        for one in found.values():
            if one.problem:
                is_other = module not in {one.name, one.name.replace("-", "_")}
                self.problems[module] = (
                    f"it needs {one.name}, which does not either: {one.problem}" if is_other else one.problem
                )
                return []
        coming = [one for one in found.values() if one.name not in self._came]
        size = sum(file.size for one in coming for file in one.files)
        if self._bytes + size > _MOST_BYTES:
            self.problems[module] = (
                f"libraries of this session would have {show_size(self._bytes + size)} on the node, and may have "
                f"{show_size(_MOST_BYTES)}"
            )
            return []
        return coming

    def _ask(self, question: FindLibrary) -> list[Library]:
        found: list[Library] = []

        def take(reply: FolderReply, blobs: Sequence[Blob]) -> Iterable[Job]:
            if reply.problem:
                raise OSError(reply.problem)
            try:
                found.extend(msgspec.msgpack.decode(b"".join(map(bytes, blobs)), type=list[Library]))
            except UNREADABLE as error:
                raise OSError(f"the notebook's list of libraries is none: {error}") from None
            return ()

        def make(number: int) -> tuple[FindLibrary, Sequence[Blob]]:
            return msgspec.structs.replace(question, number=number), ()

        self._requests.run([Job(make, take)], PATIENCE_S)
        return found

    def _fetch_all(self, libraries: Sequence[Library]) -> int:
        """Bring these libraries' files, or none of them; return how many bytes those are. Raises OSError."""
        begun: dict[str, Path] = {}
        try:
            for library in libraries:
                self._begun += 1
                begun[library.name] = (
                    self._place / str(self._begun) / "site-packages"
                )  # as where what is installed lies
                self._requests.run(_parts(library, begun[library.name]), PATIENCE_S)
        except BaseException:
            for folder in begun.values():
                shutil.rmtree(folder, ignore_errors=True)
            raise
        size = sum(file.size for library in libraries for file in library.files)
        self._bytes += size
        self._came.update({name: str(folder) for name, folder in begun.items()})
        return size


def _question(*, module: str = "", library: str = "") -> FindLibrary:
    return FindLibrary(number=0, module=module, library=library, platform=platform(), glibc=glibc())


def _parts(library: Library, folder: Path) -> Iterator[Job]:
    """Make a library's files, empty, and fetch what is in them. Raises OSError."""
    for file in library.files:
        target = folder.joinpath(*_steps(file.path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(0o777 if file.is_program else 0o666, exist_ok=False)
        for offset in range(0, file.size, PART_BYTES):
            yield _part(library.name, file, offset, target)


def _part(library: str, file: LibraryFile, offset: int, target: Path) -> Job:
    """Fetch one part of a file and write it where it belongs."""

    def make(number: int) -> tuple[FetchLibrary, Sequence[Blob]]:
        return FetchLibrary(number=number, library=library, path=file.path, offset=offset, size=PART_BYTES), ()

    def take(reply: FolderReply, blobs: Sequence[Blob]) -> Iterable[Job]:
        if reply.problem or reply.version is None or reply.version.size != file.size:
            raise OSError(reply.problem or f"{file.path} was changed in the notebook meanwhile")
        descriptor = os.open(target, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            for blob in blobs:
                write_whole(descriptor, blob, offset)
        finally:
            os.close(descriptor)
        return ()

    return Job(make, take)


def _steps(path: str) -> list[str]:
    """Return the steps of a path below a folder. Raises OSError for one that leads elsewhere."""
    steps = path.split("/")
    if "\0" in path or any(step in {"", ".", ".."} for step in steps):
        raise OSError(f"{path!r} is no path in a library")
    return steps


def _is_here(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False
    return True


def _say(module: str, libraries: Sequence[Library], size: int) -> str:
    versions = [f"{one.name} {one.version}" for one in libraries]
    named = versions if len(versions) <= 3 else [*versions[:3], f"{len(versions) - 3} more"]
    listed = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    verb = "comes" if len(libraries) == 1 else "come"
    where = f"the pool's environment on {socket.gethostname()} has no {module}"
    return f"{listed} {verb} from the notebook for this session ({show_size(size)}): {where}."
