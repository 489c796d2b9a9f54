"""Bytes on the agent's disk that nobody else can open: files without a name, gone with the process that has them."""

import errno
import os
import tempfile
from pathlib import Path

from bulletin.wire.frames import Blob

#: What spools leave free: so many bytes, on a small disk a part of it.
_KEPT_FREE_BYTES, _KEPT_FREE_PART = 2 * 10**9, 20


def open_spool(folder: Path) -> int:
    """Open an empty file in a folder, which has no name there, and return its descriptor. Raises OSError."""
    file, name = tempfile.mkstemp(prefix="spool-", dir=folder)  # mode 0600
    os.unlink(name)  # noqa: PTH108  one call, and nobody can have moved it
    return file


def check_room(folder: Path, size_bytes: int) -> None:
    """Raise OSError if so many bytes would leave the folder's disk less than is kept free for everything else."""
    disk = os.statvfs(folder)
    kept_bytes = min(_KEPT_FREE_BYTES, disk.f_blocks * disk.f_frsize // _KEPT_FREE_PART)
    if disk.f_bavail * disk.f_frsize < size_bytes + kept_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


class RingFile:
    """A file of limited size that is written round and round. Its owner knows where what is still of use begins.

    Offsets only grow; the file's own position is the offset modulo its size.
    """

    def __init__(self, folder: Path, size_bytes: int) -> None:
        """Open the file. Raises OSError if there can be none."""
        self.size_bytes = size_bytes
        self._file = open_spool(folder)

    def write(self, offset: int, data: Blob) -> None:
        """Write bytes at an offset. Raises OSError, when the disk is full."""
        view = memoryview(data).cast("B")
        while view:
            position = offset % self.size_bytes
            piece = view[: self.size_bytes - position]
            written = os.pwrite(self._file, piece, position)
            view, offset = view[written:], offset + written

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Read bytes that were written at an offset, and not over since."""
        position = offset % self.size_bytes
        first = os.pread(self._file, min(size_bytes, self.size_bytes - position), position)
        return first if len(first) == size_bytes else first + os.pread(self._file, size_bytes - len(first), 0)

    def close(self) -> None:
        """Give the disk back."""
        os.close(self._file)
