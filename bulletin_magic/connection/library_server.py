"""The notebook's installed libraries, served to a session's node that lacks some: what their lists of files name."""

import errno
import importlib.metadata
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import all_suffixes
from inspect import getmodulename

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from bulletin.libraries import platform
from bulletin.units import show_size
from bulletin.wire.frames import BLOB_LIMIT, Blob
from bulletin.wire.messages import FetchLibrary, FileVersion, FindLibrary, FolderReply, Library, LibraryFile
from bulletin_magic.connection.contained_paths import PathEscapes, open_parent

#: More than that is not read at once.
_LARGEST_PART = 4 * 2**20
#: What wheels are called by the oldest glibc that they load with: `manylinux_2_28_x86_64`, and names of before that.
_MANYLINUX = re.compile(r"\bmanylinux(?:_(\d+)_(\d+)|(1|2010|2014))_")
_OLD_NAMES = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}
#: Suffixes of modules that are compiled for one Python and one machine.
_COMPILED = tuple(suffix for suffix in (*all_suffixes(), ".dylib") if suffix not in {".py", ".pyc"})
#: So many libraries at most are described in one answer: a namespace may be of many.
_MOST_FOUND = 50
_LINKS_STAY = "its files are links to others, and links are not followed"
#: What Linux says of a link that is no step of a path.
_LINKED = frozenset({errno.ELOOP, errno.ENOTDIR})


class _Installed(msgspec.Struct, frozen=True):
    """A library that was asked for, and where its files are."""

    library: Library
    root: str
    paths: frozenset[str]


class LibraryServer:
    """Answers what a session's node asks about installed libraries. Used by one thread."""

    def __init__(self, largest_bytes: Callable[[], int]) -> None:
        """`largest_bytes`: what one library may have to follow a cell."""
        self._largest_bytes = largest_bytes
        #: What has been described, by name: only from there is anything fetched.
        self._described: dict[str, _Installed] = {}

    def forget(self) -> None:
        """Serve nothing that was described: the session is over."""
        self._described.clear()

    def answer(self, message: FindLibrary | FetchLibrary) -> tuple[FolderReply, Sequence[Blob]]:
        """Do what is asked, and return the answer. A problem is a sentence in it."""
        try:
            if isinstance(message, FindLibrary):
                return self._offer(message)
            return self._fetch(message)
        except ValueError as error:  # PathEscapes, or metadata that cannot be read
            return FolderReply(number=message.number, problem=str(error)), ()
        except OSError as error:
            what = f"{message.path}: " if isinstance(message, FetchLibrary) else ""
            return FolderReply(number=message.number, problem=f"{what}{error.strerror or error}"), ()

    def _offer(self, message: FindLibrary) -> tuple[FolderReply, Sequence[Blob]]:
        names = [message.library] if message.library else list(_libraries_with(message.module))[:_MOST_FOUND]
        found: list[Library] = []
        for name in names:
            try:
                distribution = importlib.metadata.distribution(name)
            except (importlib.metadata.PackageNotFoundError, ValueError):
                continue
            installed = self._describe(distribution, message.platform, message.glibc)
            self._described[installed.library.name] = installed
            found.append(installed.library)
        blob = msgspec.msgpack.encode(found)
        if len(blob) > BLOB_LIMIT:
            return FolderReply(number=message.number, problem="the names of its files are too long together"), ()
        return FolderReply(number=message.number), (blob,)

    def _describe(self, distribution: importlib.metadata.Distribution, there: str, glibc_there: str = "") -> _Installed:
        name, root = normalize(distribution.name), str(distribution.locate_file(""))
        requires = tuple(sorted(set(_requirements(distribution))))
        library = Library(name=name, version=distribution.version, requires=requires)
        files, problem = _files_of(distribution, root)
        size = sum(file.size for file in files)
        most = self._largest_bytes()
        if not problem and size > most:
            problem = (
                f"it has {show_size(size)}, and at most {show_size(most)} of a library follow a cell "
                "(BulletinMagics.library_mb)"
            )
        is_compiled = any(file.path.endswith(_COMPILED) for file in files)
        if not problem and is_compiled and there != platform():
            problem = "it is compiled for another kind of machine than the node"
        elif not problem and is_compiled and (needed := _needed_glibc(distribution)) > _version(glibc_there, needed):
            problem = (
                f"it is compiled for a newer system than the node's, which has glibc {glibc_there}; it needs "
                f"{'.'.join(map(str, needed))}"
            )
        if problem:
            return _Installed(msgspec.structs.replace(library, problem=problem), root, frozenset())
        library = msgspec.structs.replace(library, files=tuple(files))
        return _Installed(library, root, frozenset(file.path for file in files))

    def _fetch(self, message: FetchLibrary) -> tuple[FolderReply, Sequence[Blob]]:
        installed = self._described.get(message.library)
        if installed is None or message.path not in installed.paths:
            raise PathEscapes("the notebook does not serve that file")
        with open_parent(installed.root, message.path) as (parent, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise PathEscapes(f"{message.path} is no file")
            data = os.pread(descriptor, min(message.size, _LARGEST_PART), message.offset)
        finally:
            os.close(descriptor)
        version = FileVersion(facts.st_size, facts.st_mtime_ns)
        return FolderReply(number=message.number, version=version), (data,)


def normalize(name: str) -> str:
    """Return the form in which names of libraries are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _needed_glibc(distribution: importlib.metadata.Distribution) -> tuple[int, ...]:
    """Return the oldest glibc that a library loads with, by the names of its wheel; empty where they do not say."""
    tags = [line for line in (distribution.read_text("WHEEL") or "").splitlines() if line.startswith("Tag:")]
    named = _MANYLINUX.findall("\n".join(tags))
    return min((_OLD_NAMES.get(old) or (int(major), int(minor)) for major, minor, old in named), default=())


def _version(said: str, otherwise: tuple[int, ...]) -> tuple[int, ...]:
    found = re.match(r"(\d{1,4})\.(\d{1,4})", said)
    return tuple(map(int, found.groups())) if found else otherwise


def _libraries_with(module: str) -> Iterator[str]:
    """Yield the names of the libraries that have a top module; most often it is called as its library is."""
    try:
        named = importlib.metadata.distribution(module)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        named = None
    if named is not None and any(path.parts[0] in {module, f"{module}.py"} for path in named.files or ()):
        yield named.name
        return
    yield from dict.fromkeys(one.name for one in importlib.metadata.distributions() if _has_module(one, module))


def _has_module(distribution: importlib.metadata.Distribution, module: str) -> bool:
    """Tell whether a library has a top module, as `importlib.metadata.packages_distributions` would.

    That reads all that all libraries have into objects: where 3,000 are installed, for ten seconds and more.
    """
    declared = (distribution.read_text("top_level.txt") or "").split()
    if declared:
        return module in declared
    record = distribution.read_text("RECORD")
    if record is None:
        return any(module in {path.parts[0], getmodulename(path.name)} for path in distribution.files or ())
    first_parts = re.finditer(rf'^"?({re.escape(module)}(?:\.[^/,"\n]*)?)([/,])', record, re.MULTILINE)
    return any(getmodulename(found[1]) == module or found.groups() == (module, "/") for found in first_parts)


def _requirements(distribution: importlib.metadata.Distribution) -> Iterator[str]:
    """Yield the libraries that one needs here, of those that are installed.

    Without its own extras, with those that it asks of others: nothing else says which extras of a library are wanted.
    """
    asked: set[tuple[str, str]] = set()
    rest = [(distribution, "")]
    while rest:
        one, extra = rest.pop()
        for requirement in _requirements_of(one, extra):
            try:
                needed = importlib.metadata.distribution(requirement.name)
                name = normalize(needed.name)
            except (importlib.metadata.PackageNotFoundError, ValueError):
                continue
            yield name
            extras = {(name, wanted) for wanted in requirement.extras} - asked
            asked |= extras
            rest += [(needed, wanted) for _, wanted in extras]


def _requirements_of(distribution: importlib.metadata.Distribution, extra: str) -> Iterator[Requirement]:
    """Yield what an extra of a library adds to its requirements, or those that it always has."""
    for text in distribution.requires or ():
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # whoever wrote it so was understood by the installer, or it is not installed
        is_always = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if extra and requirement.marker is not None:
            is_wanted = not is_always and requirement.marker.evaluate({"extra": extra})
        else:
            is_wanted = is_always and not extra
        if is_wanted:
            yield requirement


def _files_of(distribution: importlib.metadata.Distribution, root: str) -> tuple[list[LibraryFile], str]:
    """List the files of a library that lie where libraries are, or say why they cannot be told. Without bytecode."""
    if distribution.files is None:
        return [], "what files it has is not written down where it is installed"
    direct = distribution.read_text("direct_url.json") or ""
    if '"editable": true' in direct.replace('"editable":true', '"editable": true'):
        return [], "it is installed from its sources (editable), and these stay where they are"
    found = []
    for text in dict.fromkeys(map(str, distribution.files)):
        if text.startswith(("/", "..")) or text.endswith(".pyc"):
            continue  # programs beside the interpreter, and what Python compiles by itself
        try:
            with open_parent(root, text) as (parent, name):
                facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except (PathEscapes, FileNotFoundError):
            continue  # it was removed since, or is nothing that can be served
        except OSError as error:
            if error.errno in _LINKED:
                return [], _LINKS_STAY
            return [], f"{text} cannot be read: {error.strerror}"
        if stat.S_ISLNK(facts.st_mode):
            return [], _LINKS_STAY
        if stat.S_ISREG(facts.st_mode):
            found.append(LibraryFile(text, facts.st_size, bool(facts.st_mode & stat.S_IXUSR)))
    return found, "" if found else "none of its files is where libraries are"
