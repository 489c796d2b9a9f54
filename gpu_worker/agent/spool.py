"""Bytes on the agent's disk that nobody else can open: files without a name, gone with the process that has them.

Each user has a share of the disk, so that nobody's outputs and results take the room of others'.
"""

import errno
import os
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from bulletin.ids import UserName
from bulletin.units import show_size
from bulletin.whole_writes import write_whole
from bulletin.wire.frames import Blob

#: What spools leave free: so many bytes, on a small disk a part of it.
_KEPT_FREE_BYTES, _KEPT_FREE_PART = 2 * 10**9, 20
#: What one user may have where no setting says so: this part of the file system.
_SHARE_PART = 10
#: Files take so much of a share at a time.
_STEP_BYTES = 2**20


class DiskShare:
    """What the files of one user have on the agent's disk, and may have."""

    def __init__(self, folder: Path, limit_bytes: int | None = None) -> None:
        """Give a user so many bytes of the folder's disk; None is a part of it."""
        self.folder, self._limit_bytes = folder, limit_bytes
        self.used_bytes = 0

    def check_room(self, size_bytes: int) -> None:
        """Raise OSError, in words for the user, if so many bytes more are too much for the share, or for the disk."""
        disk = os.statvfs(self.folder)
        total_bytes = disk.f_blocks * disk.f_frsize
        limit_bytes = total_bytes // _SHARE_PART if self._limit_bytes is None else self._limit_bytes
        if self.used_bytes + size_bytes > limit_bytes:
            raise OSError(
                errno.EDQUOT,
                f"what is kept of your cells there has {show_size(self.used_bytes)} of its disk, needs "
                f"{show_size(size_bytes)} more, and may have {show_size(limit_bytes)}",
            )
        kept_bytes = min(_KEPT_FREE_BYTES, total_bytes // _KEPT_FREE_PART)
        if disk.f_bavail * disk.f_frsize < size_bytes + kept_bytes:
            raise OSError(errno.ENOSPC, "its disk is full")

    def take(self, size_bytes: int) -> None:
        """Count so many bytes more. Raises OSError as `check_room`, and counts nothing then."""
        self.check_room(size_bytes)
        self.used_bytes += size_bytes


class DiskShares:
    """The shares of all users who have files."""

    def __init__(self, folder: Path, limit_bytes: int | None) -> None:
        """Give each user as much of the folder's disk as `DiskShare` says."""
        self._folder, self._limit_bytes = folder, limit_bytes
        self._by_user: weakref.WeakValueDictionary[UserName, DiskShare] = weakref.WeakValueDictionary()

    def find_or_add(self, user: UserName) -> DiskShare:
        """Return the share of a user, the same one for all who ask while anybody has it."""
        found = self._by_user.get(user)
        if found is None:
            found = self._by_user[user] = DiskShare(self._folder, self._limit_bytes)
        return found


class SpoolFile:
    """A file without a name, which counts as its user's until it is closed, or nobody knows it any more."""

    def __init__(self, share: DiskShare) -> None:
        """Open an empty one. Raises OSError."""
        self.number, name = tempfile.mkstemp(prefix="spool-", dir=share.folder)  # mode 0600
        os.unlink(name)  # noqa: PTH108  one call, and nobody can have moved it
        self._taken = _TakenBytes(share)
        self.close = weakref.finalize(self, _close, self.number, self._taken)

    def reserve(self, end_bytes: int) -> None:
        """Count the file's bytes up to this one as its user's. Raises OSError where they may not have so many."""
        more = end_bytes - self._taken.size_bytes
        if more > 0:
            steps = -(-more // _STEP_BYTES) * _STEP_BYTES
            self._taken.share.take(steps)
            self._taken.size_bytes += steps

    def write(self, position: int, data: Blob) -> None:
        """Write bytes that are reserved. Raises OSError, when the disk is full."""
        write_whole(self.number, data, position)

    def read(self, position: int, size_bytes: int) -> bytes:
        """Read bytes that were written."""
        return os.pread(self.number, size_bytes, position)


class _TakenBytes:
    """What a file has of a share."""

    def __init__(self, share: DiskShare) -> None:
        self.share, self.size_bytes = share, 0


def _close(number: int, taken: _TakenBytes) -> None:
    os.close(number)
    taken.share.used_bytes -= taken.size_bytes


class RingFile:
    """A file of limited size that is written round and round. Its owner knows where what is still of use begins.

    Offsets only grow; the file's own position is the offset modulo its size.
    """

    def __init__(self, share: DiskShare, size_bytes: int) -> None:
        """Open the file. Raises OSError if there can be none."""
        self.size_bytes = size_bytes
        self._file = SpoolFile(share)

    def write(self, offset: int, blobs: Sequence[Blob]) -> None:
        """Write bytes at an offset. Raises OSError, when the disk is full, or its user's share of it."""
        view = memoryview(b"".join(blobs))
        while view:
            position = offset % self.size_bytes
            piece = view[: self.size_bytes - position]
            self._file.reserve(position + len(piece))
            self._file.write(position, piece)
            view, offset = view[len(piece) :], offset + len(piece)

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Read bytes that were written at an offset, and not over since."""
        position = offset % self.size_bytes
        first = self._file.read(position, min(size_bytes, self.size_bytes - position))
        return first if len(first) == size_bytes else first + self._file.read(0, size_bytes - len(first))

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()
