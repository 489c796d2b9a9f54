"""What could write to this process's memory without the kernel's page table: devices, and requests under way.

A driver, or a request for direct input, *pins* pages when it begins, which counts as a write then; what it writes later
is seen by nobody. While this process has none of these open, nothing is pinned.
"""

import ctypes
import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

#: Character devices that copy as files do, by their numbers: null, zero, full, random, urandom; terminals.
_HARMLESS_MEMORY, _TERMINALS = {3, 5, 7, 8, 9}, {4, 5, *range(136, 144)}
#: Descriptors without a file that do not write to memory behind its back. Linux puts most names in brackets, not all.
_HARMLESS = {"eventfd", "eventpoll", "fanotify", "inotify", "pidfd", "signalfd", "timerfd", "userfaultfd"}
#: File systems that read into memory of the kernel's own first: ext, xfs, btrfs, f2fs, tmpfs, ramfs, overlay, squashfs,
#: NFS, proc, sysfs, cgroups, name spaces, terminals, pipes, sockets, memory files, zfs, EROFS, ISO, FAT, exFAT.
_BUFFERED = {
    0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x01021994, 0x858458F6, 0x794C7630, 0x73717368, 0x6969, 0x9FA0,
    0x62656572, 0x27E0EB, 0x63677270, 0x6E736673, 0x1CD1, 0x50495045, 0x534F434B, 0x958458F6, 0x2FC12FC1, 0xE0F5E1E2,
    0x9660, 0x4D44, 0x2011BAB0,
}  # fmt: skip
#: `AF_XDP`: such a socket lets a network card write.
_XDP = 44
_STATFS_BYTES = 256
_library = ctypes.CDLL(None, use_errno=True)


def may_be_pinned() -> bool:
    """Tell whether anything is open, or mapped, through which memory could be written unseen. If in doubt, it is."""
    try:
        with os.scandir("/proc/self/fd") as found:
            spelled = [entry.name for entry in found]
        return any(map(_may_pin, spelled)) or any(map(_is_device_mapping, _mappings()))
    except (OSError, ValueError):
        return True


def _may_pin(spelled: str) -> bool:
    descriptor = int(spelled)
    try:
        found = os.fstat(descriptor)
        kind = found.st_mode
        if stat.S_ISCHR(kind):
            major, minor = os.major(found.st_rdev), os.minor(found.st_rdev)
            return not (major in _TERMINALS or (major == 1 and minor in _HARMLESS_MEMORY))
        if stat.S_ISSOCK(kind):
            return _domain(descriptor) == _XDP
        if stat.S_ISREG(kind):
            is_direct = bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT)
            return is_direct or _file_system(descriptor) not in _BUFFERED
        if stat.S_ISDIR(kind) or stat.S_ISFIFO(kind):
            return False
        return _name_without_file(spelled) not in _HARMLESS
    except FileNotFoundError:
        return False  # closed meanwhile, as that of the listing
    except OSError as problem:
        return problem.errno != errno.EBADF  # likewise


def _name_without_file(spelled: str) -> str:
    return str(Path(f"/proc/self/fd/{spelled}").readlink()).removeprefix("anon_inode:").strip("[]")


def _domain(descriptor: int) -> int:
    with socket.socket(fileno=os.dup(descriptor)) as one:
        return one.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN)


def _file_system(descriptor: int) -> int:
    """Return the number that says what kind of file system a file is on. Raises OSError."""
    found = (ctypes.c_long * (_STATFS_BYTES // 8))()
    if _library.fstatfs(descriptor, found):
        raise OSError(ctypes.get_errno(), "fstatfs")
    return int(found[0])


def _mappings() -> Iterator[list[str]]:
    """Read what is mapped: range, rights, offset, device, inode, and path if there is one."""
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        yield line.split(maxsplit=5)


def _is_device_mapping(parts: list[str]) -> bool:
    path = parts[5] if len(parts) > 5 else ""
    if path.startswith("/dev/"):
        return not path.startswith(("/dev/shm/", "/dev/zero", "/dev/null"))  # noqa: S108  nothing is made there
    return path.startswith(("/[aio]", "anon_inode:")) or path == "socket:[xdp]"


def is_private(start: int, end: int) -> bool:
    """Tell whether a range of memory is this process's alone: of no file, no device, and shared with no other."""
    reached = start
    for span, rights, _, _, inode, *path in _mappings():
        low, high = (int(part, 16) for part in span.split("-"))
        if high <= reached:
            continue
        if low > reached or rights != "rw-p" or inode != "0" or not _is_anonymous(path):
            return False
        reached = high
        if reached >= end:
            return True
    return False


def _is_anonymous(path: list[str]) -> bool:
    return not path or path[0] == "[heap]" or path[0].startswith("[anon:")
