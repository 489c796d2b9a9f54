"""Bytes on the agent's disk that nobody else can open: files without a name, gone with the process that has them."""

import os
import tempfile
from pathlib import Path

from bulletin.wire.frames import Blob


def open_spool(folder: Path) -> int:
    """A descriptor of an empty file in a folder, which has no name there. Raises OSError."""
    file, name = tempfile.mkstemp(prefix="spool-", dir=folder)  # mode 0600
    os.unlink(name)  # noqa: PTH108  one call, and nobody can have moved it
    return file


class Ring:
    """A file of limited size that is written round and round. Its owner knows where what is still of use begins."""

    def __init__(self, folder: Path, size: int) -> None:
        """Raises OSError if there can be no file."""
        self.size = size
        self._file = open_spool(folder)

    def write(self, at: int, data: Blob) -> None:
        """Write bytes at a place that only grows. Raises OSError, when the disk is full."""
        view = memoryview(data).cast("B")
        while view:
            place = at % self.size
            piece = view[: self.size - place]
            written = os.pwrite(self._file, piece, place)
            view, at = view[written:], at + written

    def read(self, at: int, size: int) -> bytes:
        """Bytes that were written at a place, and not over since."""
        place = at % self.size
        first = os.pread(self._file, min(size, self.size - place), place)
        return first if len(first) == size else first + os.pread(self._file, size - len(first), 0)

    def close(self) -> None:
        """Give the disk back."""
        os.close(self._file)
