"""Libraries of the notebook that a node lacks: described and fetched over the cell's own link.

Only what is installed is served: files that a library's own list of files names. Paths are relative to where it is.
"""

from typing import Annotated

import msgspec

from bulletin.wire.messages.every_link import Message, Name, Number, Size

#: As long as Linux lets a path be.
LibraryPath = Annotated[str, msgspec.Meta(max_length=4096)]


class LibraryFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of a library."""

    path: LibraryPath
    size: Size
    #: Whether its owner may run it: libraries bring programs of their own.
    is_program: bool = False


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """An installed library, as its metadata describes it. With a `problem`, the end of a sentence, it has no files."""

    #: In the form in which names of libraries are compared: lower case, with hyphens.
    name: Name
    version: Name
    files: tuple[LibraryFile, ...] = ()
    #: The libraries that it needs, of those that the notebook has.
    requires: tuple[Name, ...] = ()
    problem: str = ""


class FindLibrary(Message, frozen=True, kw_only=True, tag="find-library"):
    """Ask for the installed libraries that have a top module, or for the one of a name. The reply's blob lists them."""

    number: Number
    module: Name = ""
    library: Name = ""
    #: How compiled modules are called on the node, and what it is: others do not load there.
    platform: Name
    #: The version of the node's C library, if it is glibc: what is compiled for a newer one does not load.
    glibc: Name = ""


class FetchLibrary(Message, frozen=True, kw_only=True, tag="fetch-library"):
    """Ask for a part of a file of a library, which is the blob of the reply."""

    number: Number
    library: Name
    path: LibraryPath
    offset: Size
    size: Size
