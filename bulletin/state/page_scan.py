"""What Linux knows of writes to a range of memory: `userfaultfd` in its asynchronous mode, and `PAGEMAP_SCAN`.

Linux 6.7 and later; no privileges, no thread, no signal. A page is write-protected; the first write to it, by whatever
way it comes through the page table, lifts that in the kernel and goes on. A scan lists such pages and protects them
again, each at once. What does not come through the page table is the business of `pinned_memory`.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import struct
import threading
from collections.abc import Iterator
from fcntl import ioctl

from bulletin.cpython.raw_memory import address_of

PAGE_BYTES = mmap.PAGESIZE

#: The numbers of the system call, and what it is told: closed on exec, faults of user code only (that needs no rights).
_SYSTEM_CALLS = {"x86_64": 323, "aarch64": 282}
_USER_MODE_ONLY = 1
_API, _UNPOPULATED, _ASYNC = 0xAA, 1 << 13, 1 << 15
_REGISTER_TO_PROTECT = 2
#: Categories of a page, and flags of a scan.
_WRITTEN, _PRESENT = 1 << 1, 1 << 3
_PROTECT, _MUST_BE_WATCHED = 1, 2
_SCAN_STRUCT = struct.Struct("12Q")
_MOST_RANGES = 1024


def _number(letter: int, number: int, size: int, direction: int = 3) -> int:
    """Compute the number of an ioctl, as the kernel's headers do."""
    return direction << 30 | size << 16 | letter << 8 | number


_HANDSHAKE, _REGISTER = _number(0xAA, 0x3F, 24), _number(0xAA, 0x00, 32)
_UNREGISTER, _SCAN = _number(0xAA, 0x01, 16, direction=2), _number(ord("f"), 16, 96)


class PageScan:
    """Watches ranges of this process's memory. Not for a fork: that asks about its parent's.

    Raises
    ------
    OSError
        Where the kernel cannot do it, or does not let this process.
    """

    def __init__(self) -> None:
        number = _SYSTEM_CALLS.get(platform.machine())
        if number is None:
            raise OSError(errno.ENOSYS, "not known of this processor")
        library = ctypes.CDLL(None, use_errno=True)
        self._faults = library.syscall(number, os.O_CLOEXEC | _USER_MODE_ONLY)
        if self._faults < 0:
            raise OSError(ctypes.get_errno(), "userfaultfd")
        self._pages = -1
        self._lock = threading.Lock()  # of the room for answers
        self._ranges = (ctypes.c_uint64 * (3 * _MOST_RANGES))()
        try:
            ioctl(self._faults, _HANDSHAKE, struct.pack("3Q", _API, _UNPOPULATED | _ASYNC, 0))
            self._pages = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Stop watching everything."""
        for descriptor in (self._faults, self._pages):
            if descriptor >= 0:
                os.close(descriptor)
        self._faults = self._pages = -1

    def watch(self, start: int, end: int) -> None:
        """Begin to watch whole pages. All of them count as written until `written` was asked once. Raises OSError."""
        ioctl(self._faults, _REGISTER, bytearray(struct.pack("4Q", start, end - start, _REGISTER_TO_PROTECT, 0)))

    def forget(self, start: int, end: int) -> None:
        """Stop watching; memory that is not there any more is no error."""
        with contextlib.suppress(OSError):
            ioctl(self._faults, _UNREGISTER, bytearray(struct.pack("2Q", start, end - start)))

    def written(self, start: int, end: int) -> list[tuple[int, int]]:
        """List the ranges that may have been written since the last time, and watch them again.

        Pages that are not in memory count as written: their content may have been given up, and then they are zeros.

        Raises
        ------
        OSError
            If some of the memory is not the one that was watched. What has been written is then not known.
        """
        with self._lock:
            return list(self._scan(start, end))

    def _scan(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        flags, room = _PROTECT | _MUST_BE_WATCHED, ctypes.addressof(self._ranges)
        # Of the pages' categories `_PRESENT` is turned around, and one of the two must hold.
        wanted = _PRESENT, 0, _WRITTEN | _PRESENT, _WRITTEN
        while start < end:
            request = bytearray(_SCAN_STRUCT.pack(96, flags, start, end, 0, room, _MOST_RANGES, 0, *wanted))
            count = ioctl(self._pages, _SCAN, request)
            for index in range(0, 3 * count, 3):
                yield self._ranges[index], self._ranges[index + 1]
            reached = _SCAN_STRUCT.unpack(request)[4]
            if reached <= start:
                raise OSError(errno.EIO, "the scan of pages does not go on")
            start = reached


def check(scan: PageScan) -> bool:
    """Tell whether this kernel finds what it must: writes, memory that is given up, memory that is another one.

    To be asked once, before anything relies on it.
    """
    memory = mmap.mmap(-1, 8 * PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = address_of(memory)
    end = start + len(memory)

    def found() -> list[int]:
        ranges = [((low - start) // PAGE_BYTES, (high - start) // PAGE_BYTES) for low, high in scan.written(start, end)]
        return [page for low, high in ranges for page in range(low, high)]

    try:
        memory.write(b"1" * (end - start))
        scan.watch(start, end)
        first, nothing = found(), found()
        memory[3 * PAGE_BYTES] = 2
        one = found()
        ctypes.memset(start + 5 * PAGE_BYTES - 1, 3, 2)
        two = found()
        memory.madvise(mmap.MADV_DONTNEED, PAGE_BYTES, PAGE_BYTES)
        given_up, zero = found(), memory[PAGE_BYTES]
        rest = found()
        scan.forget(start, end)
    except OSError:
        return False
    with contextlib.suppress(OSError):
        found()  # of what is not watched nothing may be said
        return False
    return (first, nothing, one, two, given_up, zero, rest) == (list(range(8)), [], [3], [4, 5], [1], 0, [])
