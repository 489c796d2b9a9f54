"""The notebook's working folder, served to a session's node that does not share it: within the folder, within limits.

What the node asks is what user code asks there. It gets what is in the folders that cells ran in, and nothing else.
"""

import contextlib
import os
import posixpath
import secrets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import xxhash

from bulletin.special_files import special_kind
from bulletin.units import show_size
from bulletin.whole_writes import write_whole
from bulletin.wire.frames import BLOB_LIMIT, Blob
from bulletin.wire.messages import (
    AboutFolder,
    ChangeFolder,
    EnvironmentFound,
    FetchFile,
    FileVersion,
    FolderFound,
    FolderProbe,
    FolderReply,
    ListFolder,
    StoreFile,
)
from bulletin_magic.connection.contained_paths import OWN_PREFIX, PathEscapes, open_parent, split
from bulletin_magic.connection.folder_listing import FolderLimits, list_folder
from bulletin_magic.connection.kept_rights import set_rights

_BLOCK = 2**20
#: More than that is not read at once.
_LARGEST_PART = 4 * 2**20
#: What is larger takes long enough to be told of.
_LONG_BYTES = 100_000_000
#: So many files may be half written at once.
_MOST_UPLOADS = 16
#: So many answers to what changed something are kept, for who has not heard them and asks again.
_MOST_REPLIES = 64
#: Versions that no file has.
_LINK, _FOLDER, _SPECIAL = FileVersion(0, 0), FileVersion(0, 1), FileVersion(0, 2)
_COMES_BACK = "once it has its name again, what a cell writes anew comes there (Path(...).touch() is enough)"
_NOT_SERVED = "this notebook does not serve that folder"

Answer = tuple[FolderReply, Sequence[Blob]]


class _Upload(msgspec.Struct):
    """A file that is being written, under a name of its own beside the one that it will have."""

    temporary: str
    descriptor: int
    size: int = 0


class FolderServer:
    """Answers what a session's node asks about folders. Used by one thread."""

    def __init__(self, limits: Callable[[], FolderLimits], note: Callable[[str], None] = lambda _: None) -> None:
        """Take what tells the user a sentence while a cell waits for a file."""
        self._limits, self._note = limits, note
        #: What was told of, as it was then.
        self._told: set[tuple[str, FileVersion]] = set()
        #: The folders that cells of the session ran in; whether the node shares each, None while nobody has said.
        self.folders: dict[str, bool | None] = {}
        self._tokens: dict[str, str] = {}
        self._uploads: dict[tuple[str, str], _Upload] = {}
        self._written_bytes = 0
        #: How many more files, folders and links there are by what has come.
        self._made = 0
        self._replies: dict[int, FolderReply] = {}

    def forget(self) -> None:
        """Serve nothing any more: the session is over, and another may be on another node."""
        self.folders.clear()
        self._replies.clear()
        self._told.clear()
        self._written_bytes = self._made = 0
        for root in list(self._tokens):
            self._remove_token(root)
        for key in list(self._uploads):
            self._drop_upload(key)

    # --- is it shared?

    def announce(self, probe: FolderProbe, cell: str) -> FolderProbe:
        """Put a token into the folder, for the executor to find; or say how the folder is known where none can be."""
        self.folders.setdefault(probe.path, None)
        self._remove_token(probe.path)
        try:
            with Path(probe.path, probe.token).open("x") as file:
                self._tokens[probe.path] = probe.token
                file.write(cell)
        except OSError:
            return msgspec.structs.replace(probe, identity=identify(probe.path))
        return probe

    def serve(self, folder: str) -> None:
        """Serve a folder to a cell that another notebook ran in it."""
        self.folders.setdefault(folder, False)

    def on_found(self, found: FolderFound) -> None:
        """Take in whether the node shares a folder."""
        if found.root in self.folders:
            self.folders[found.root] = found.is_shared
            self._remove_token(found.root)

    def _remove_token(self, root: str) -> None:
        token = self._tokens.pop(root, None)
        if token is not None:
            with contextlib.suppress(OSError):
                Path(root, token).unlink()

    # --- answers

    def answer(self, message: AboutFolder, blobs: Sequence[Blob]) -> Answer | None:
        """Do what is asked, and return the answer; None to what needs none. A problem is a sentence in the answer."""
        if isinstance(message, FolderFound):
            self.on_found(message)
        if isinstance(message, FolderFound | EnvironmentFound):
            return None
        try:
            if self.folders.get(message.root, True) is True:  # not one of a cell's, or one that the node has itself
                return FolderReply(number=message.number, problem=_NOT_SERVED, is_served=False), ()
            match message:
                case ListFolder():
                    return self._list(message)
                case FetchFile():
                    return self._fetch(message)
                case StoreFile() | ChangeFolder() if message.number in self._replies:
                    return self._replies[message.number], ()
                case StoreFile():
                    return self._remember(self._store(message, blobs)), ()
                case ChangeFolder():
                    return self._remember(self._change(message)), ()
        except ValueError as error:  # PathEscapes, or a name that cannot be one here
            return FolderReply(number=message.number, problem=str(error)), ()
        except OSError as error:
            where = message.root if isinstance(message, ListFolder) else message.path
            problem = f"{where}: {error.strerror or error}"
            if not Path(message.root).is_dir():
                problem = f"{message.root} is there no more, it was renamed or removed; {_COMES_BACK}"
            return FolderReply(number=message.number, problem=problem), ()

    def _remember(self, reply: FolderReply) -> FolderReply:
        self._replies[reply.number] = reply
        if len(self._replies) > _MOST_REPLIES:
            del self._replies[next(iter(self._replies))]
        return reply

    def _list(self, message: ListFolder) -> Answer:
        listing = list_folder(message.root, self._limits())
        blob = msgspec.msgpack.encode(listing.entries)
        digest = xxhash.xxh3_128_hexdigest(blob)
        is_news = digest != message.digest
        sentences = (listing.problem, listing.nameless if is_news else "")
        note = ". ".join(sentence for sentence in sentences if sentence)
        reply = FolderReply(number=message.number, digest=digest, note=note)
        if len(blob) > BLOB_LIMIT:
            return msgspec.structs.replace(reply, problem="the names of its files are too long together"), ()
        return reply, (blob,) if is_news else ()

    def _fetch(self, message: FetchFile) -> Answer:
        if any(step.startswith(".") for step in split(message.path)[:-1]):
            raise PathEscapes(f"{message.path} is in a hidden folder, and these do not follow cells")
        with open_parent(message.root, message.path) as (parent, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise PathEscapes(f"{message.path} is no file")
            if facts.st_size > self._limits().file_bytes:
                raise PathEscapes(f"{message.path} has grown to {show_size(facts.st_size)}, which is too much")
            version = FileVersion(facts.st_size, facts.st_mtime_ns)
            reply = FolderReply(number=message.number, version=version)
            if message.known:
                digest = _digest(descriptor)
                if digest in message.known:
                    return msgspec.structs.replace(reply, digest=digest), ()
            if version.size > _LONG_BYTES and (message.path, version) not in self._told:
                self._told.add((message.path, version))
                self._note(f"{message.path} ({show_size(version.size)}) is brought to the node, all of it.")
            data = os.pread(descriptor, min(message.size, _LARGEST_PART), message.offset)
            return reply, (data,)
        finally:
            os.close(descriptor)

    def _store(self, message: StoreFile, blobs: Sequence[Blob]) -> FolderReply:
        key, limits = (message.root, message.path), self._limits()
        data = b"".join(bytes(blob) for blob in blobs)
        if message.total > limits.file_bytes:
            raise PathEscapes(
                f"it has {show_size(message.total)}, and at most {show_size(limits.file_bytes)} of one file come back "
                "(BulletinMagics.folder_file_mb)"
            )
        if message.offset + len(data) > message.total:
            raise PathEscapes("it is longer than was said")
        if self._written_bytes + len(data) > limits.written_bytes:
            raise PathEscapes(
                f"cells of this session have written {show_size(limits.written_bytes)} already, and no more comes back "
                "(BulletinMagics.folder_total_mb)"
            )
        with open_parent(message.root, message.path) as (parent, name):
            if message.offset == 0:
                self._check_room(parent, name)
            upload = self._open_upload(key, parent, is_first=message.offset == 0)
            try:
                write_whole(upload.descriptor, data, message.offset)
            except OSError:  # what has come of it would keep smaller ones out
                self._drop_upload(key)
                raise
            upload.size = max(upload.size, message.offset + len(data))
            self._written_bytes += len(data)
            if not message.digest:
                return FolderReply(number=message.number)
            return self._finish_upload(message, key, parent, name)

    def _open_upload(self, key: tuple[str, str], parent: int, *, is_first: bool) -> _Upload:
        upload = self._uploads.get(key)
        if upload is not None:
            return upload
        if not is_first:
            raise PathEscapes("its beginning has not come")
        if len(self._uploads) >= _MOST_UPLOADS:
            self._drop_upload(next(iter(self._uploads)))
        temporary = f"{OWN_PREFIX}part-{secrets.token_hex(8)}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        upload = self._uploads[key] = _Upload(temporary, os.open(temporary, flags, 0o600, dir_fd=parent))
        return upload

    def _finish_upload(self, message: StoreFile, key: tuple[str, str], parent: int, name: str) -> FolderReply:
        """Let the file take its place; beside what is there if that is not what the cell knew of."""
        upload = self._uploads.pop(key)
        try:
            if upload.size != message.total or _digest(upload.descriptor) != message.digest:
                raise PathEscapes("it arrived damaged")
            mode, base = message.mode & 0o777, message.base
            set_rights(upload.descriptor, mode, parent, name, lambda facts: _version_of(facts) == base)
            written = os.fstat(upload.descriptor)
            descriptor, upload.descriptor = upload.descriptor, -1
            os.close(descriptor)  # a file server may say only now that there is no room
            facts = os.stat(upload.temporary, dir_fd=parent, follow_symlinks=False)
            if not os.path.samestat(written, facts):
                raise PathEscapes("somebody else has put another file in its place while it came")
            note, target = "", name
            before = _version(parent, name)
            if before != message.base:
                target = _free_name(parent, name)
                where = posixpath.join(posixpath.dirname(message.path), target)
                how = ", and is kept" if before == _SPECIAL else " while the cell ran"
                note = f"{_why_kept(parent, name, message.path)}{how}: what the cell wrote is {where}."
            os.replace(upload.temporary, target, src_dir_fd=parent, dst_dir_fd=parent)
            self._made += before is None or target != name
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(upload.temporary, dir_fd=parent)
            raise
        finally:
            if upload.descriptor >= 0:
                os.close(upload.descriptor)
        version = FileVersion(facts.st_size, facts.st_mtime_ns)
        return FolderReply(number=message.number, version=version, note=note)

    def _drop_upload(self, key: tuple[str, str]) -> None:
        upload = self._uploads.pop(key)
        os.close(upload.descriptor)
        with contextlib.suppress(OSError, PathEscapes), open_parent(*key) as (parent, _):
            os.unlink(upload.temporary, dir_fd=parent)

    def _change(self, message: ChangeFolder) -> FolderReply:
        reply = FolderReply(number=message.number)
        with open_parent(message.root, message.path) as (parent, name):
            match message.change:
                case "make-folder":
                    if _version(parent, name) == _SPECIAL:
                        raise PathEscapes(f"it is a {_special_kind(parent, name)} there, and is kept")
                    if _version(parent, name) != _FOLDER:
                        self._check_room(parent, name)
                        os.mkdir(name, dir_fd=parent)
                        self._made += 1
                case "remove-folder":
                    with contextlib.suppress(FileNotFoundError):
                        os.rmdir(name, dir_fd=parent)
                        self._made -= 1
                case "remove-file":
                    now = _version(parent, name)
                    if now is not None and now != message.base:
                        note = f"{_why_kept(parent, name, message.path)}, and is kept though the cell removed it."
                        return msgspec.structs.replace(reply, note=note)
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=parent)
                        self._made -= 1
                case "make-link":
                    _check_target(message.path, message.target)
                    if _version(parent, name) not in {None, message.base}:
                        note = f"{_why_kept(parent, name, message.path)}, and is kept though the cell made it a link."
                        return msgspec.structs.replace(reply, note=note)
                    self._check_room(parent, name)
                    self._made += _version(parent, name) is None
                    _link(message.target, parent, name)
        return reply

    def _check_room(self, parent: int, name: str) -> None:
        """Raise PathEscapes if this would be one name too many."""
        most = self._limits().entries
        if self._made >= most and _version(parent, name) is None:
            raise PathEscapes(
                f"cells of this session have made {most:,} new files and folders already, and no more come back "
                "(BulletinMagics.folder_files)"
            )


def identify(folder: str) -> str:
    """Say how a folder that cannot be written to is known on each host that has it; empty where it cannot be read."""
    try:
        facts = Path(folder).stat()
    except OSError:
        return ""
    return f"{facts.st_ino}:{facts.st_ctime_ns}"


def _digest(descriptor: int) -> str:
    seen, offset = xxhash.xxh3_128(), 0
    while data := os.pread(descriptor, _BLOCK, offset):
        seen.update(data)
        offset += len(data)
    return seen.hexdigest()


def _link(target: str, parent: int, name: str) -> None:
    """Let a link take the place of what has the name. Raises OSError."""
    temporary = f"{OWN_PREFIX}part-{secrets.token_hex(8)}"
    os.symlink(target, temporary, dir_fd=parent)
    try:
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        os.unlink(temporary, dir_fd=parent)
        raise


def _version(parent: int, name: str) -> FileVersion | None:
    """Return the version of a file; None where there is none. What is none of them has one that no file has."""
    try:
        return _version_of(os.stat(name, dir_fd=parent, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _version_of(facts: os.stat_result | None) -> FileVersion | None:
    if facts is None:
        return None
    if stat.S_ISLNK(facts.st_mode):
        return _LINK
    if special_kind(facts.st_mode):
        return _SPECIAL
    return FileVersion(facts.st_size, facts.st_mtime_ns) if stat.S_ISREG(facts.st_mode) else _FOLDER


def _why_kept(parent: int, name: str, path: str) -> str:
    """Say why what has the name stays as it is: it is nothing that a cell has, or another one than the cell had."""
    kind = _special_kind(parent, name)
    return f"{path} is a {kind} in the notebook's folder" if kind else f"{path} was changed in the notebook"


def _special_kind(parent: int, name: str) -> str:
    try:
        return special_kind(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:  # it is gone by now
        return ""


def _free_name(parent: int, name: str) -> str:
    stem, suffix = posixpath.splitext(name)
    return f"{stem}.cell-{secrets.token_hex(3)}{suffix}" if _version(parent, name) is not None else name


def _check_target(path: str, target: str) -> None:
    """Raise PathEscapes for a link that leads out of the folder: nothing is written through one."""
    inner = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if posixpath.isabs(target) or inner == ".." or inner.startswith("../"):
        raise PathEscapes(f"it is a link to {target}, which is not in the notebook's folder")
