"""The notebook's working folder where the node does not share it: listed, fetched and written over the cell's own link.

A process of the executor's asks, the agent passes on, the kernel answers each request with one FolderReply.
Paths are relative to the folder, with slashes. Whoever serves one checks it: nothing here says that it stays inside.
"""

from typing import Annotated, Literal

import msgspec

from bulletin.wire.messages.every_link import Message, Name, Number, Size
from bulletin.wire.messages.library_files import FetchLibrary, FindLibrary
from bulletin.wire.messages.notebook_versions import EnvironmentFound

#: As long as Linux lets a path be.
FolderPath = Annotated[str, msgspec.Meta(max_length=4096)]
#: A hash of content (xxh3, 128 bits), as hexadecimal digits.
ContentDigest = Annotated[str, msgspec.Meta(max_length=32)]
#: So many contents that are there already are named.
MOST_KNOWN = 1000
#: Nanoseconds since 1970, as the file system tells when a file was changed.
FileTime = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Mode = Annotated[int, msgspec.Meta(ge=0, le=0o777)]
EntryKind = Literal["file", "folder", "link"]


class FolderProbe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an executor finds whether it shares the notebook's folder: by a file in it that was made for this cell."""

    path: FolderPath
    #: The file's name; it holds the cell's id.
    token: Name
    #: Where the notebook may not write: the folder's inode and the time when that was changed.
    identity: Name = ""


class FileVersion(msgspec.Struct, frozen=True):
    """What tells one content of a file from another without reading it."""

    size: Size
    mtime_ns: FileTime


class FolderEntry(msgspec.Struct, frozen=True, array_like=True):
    """A file, folder or link in the notebook's folder."""

    path: FolderPath
    kind: EntryKind
    version: FileVersion
    mode: Mode
    #: Where a link leads.
    target: FolderPath = ""
    #: Why it does not follow the cell, in a sentence.
    problem: str = ""


class FolderFound(Message, frozen=True, kw_only=True, tag="folder-found"):
    """Say whether the executor shares the folder. The token is needed no more. Not answered."""

    root: FolderPath
    is_shared: bool


class ListFolder(Message, frozen=True, kw_only=True, tag="list-folder"):
    """Ask what is in the folder. The reply's blob is a list of entries, or it has none where `digest` is theirs."""

    number: Number
    root: FolderPath
    digest: ContentDigest = ""


class FetchFile(Message, frozen=True, kw_only=True, tag="fetch-file"):
    """Ask for a part of a file, which is the blob of the reply."""

    number: Number
    root: FolderPath
    path: FolderPath
    offset: Size
    size: Size
    #: Contents that are on the node already: if the file is one of them, the reply names it and has no blob.
    known: Annotated[tuple[ContentDigest, ...], msgspec.Meta(max_length=MOST_KNOWN)] = ()


class StoreFile(Message, frozen=True, kw_only=True, tag="store-file"):
    """Write a part of a file, the blob. With the last one the file takes the place of what was there."""

    number: Number
    root: FolderPath
    path: FolderPath
    offset: Size
    total: Size
    mode: Mode
    #: Of the whole file; empty before the last part.
    digest: ContentDigest = ""
    #: What the notebook had there when the cell began; None where there was nothing.
    base: FileVersion | None = None


class ChangeFolder(Message, frozen=True, kw_only=True, tag="change-folder"):
    """Make or remove a folder, remove a file or link, or make a link."""

    number: Number
    root: FolderPath
    path: FolderPath
    change: Literal["make-folder", "remove-folder", "remove-file", "make-link"]
    target: FolderPath = ""
    base: FileVersion | None = None


class FolderReply(Message, frozen=True, kw_only=True, tag="folder-reply"):
    """The answer to any of these requests. A `problem` is a sentence, and then nothing was done."""

    number: Number
    problem: str = ""
    #: Whether this notebook has the folder at all: a cell may have come to another one.
    is_served: bool = True
    #: Of a listing or a file.
    digest: ContentDigest = ""
    #: The file as it is now, or as it was stored.
    version: FileVersion | None = None
    #: What was done otherwise than it was asked, in a sentence.
    note: str = ""


AboutFolder = EnvironmentFound | FolderFound | ListFolder | FetchFile | StoreFile | ChangeFolder
FromFolder = AboutFolder | FindLibrary | FetchLibrary
ToFolder = FolderReply
