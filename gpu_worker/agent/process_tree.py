"""The processes below one, and what they use of the host's memory."""

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import msgspec

#: Of /proc/PID/smaps_rollup: what is the process's own, and its part of what it shares with others.
_OWN, _SHARED = ("Pss_Anon", "SwapPss"), "Pss_Shmem"
#: Of /proc/PID/status, in both: pages that say where pages are. Memory that is only read has no others of its own.
_TABLES = "VmPTE"
#: What a file in memory takes beside its pages, also an empty one.
_FILE_BYTES = 1024
#: Of /proc/PID/status: quick, and counts what processes share for each of them. Pages of files are not counted: the
#: system takes them back when it needs memory.
_OWN_AT_MOST, _SHARED_AT_MOST, _THREADS = ("RssAnon", "VmSwap", _TABLES), "RssShmem", "Threads"

#: So many times as long as an exact look took, no other is made without need; processes that shared much and do so no
#: longer are found out then.
_REST, _LONGEST_REST_S = 20.0, 30.0
#: The system call that says whether two threads have the same open files (kcmp), and which question that is.
_KCMP = {"x86_64": 312, "aarch64": 272}
_KCMP_FILES = 2
#: The system call memfd_secret, on each machine.
_MEMFD_SECRET = 447
#: Of the mappings of a process so much is read at once: it may have tens of thousands, with long names.
_PART_BYTES = 1 << 20
#: Only one thread looks through them: each that computes keeps all others waiting, the one that serves people too.
#: Nothing is read meanwhile: the system may take its time for that, and is waited for by many at once.
_searching = threading.Lock()
_libc = ctypes.CDLL(None)


class ProcessUse(msgspec.Struct, frozen=True, kw_only=True):
    """What some processes use together."""

    memory_bytes: int
    #: Processes and their threads.
    processes: int


def find_descendants(pid: int) -> set[int]:
    """List all processes below one. They come and go meanwhile."""
    found: set[int] = set()
    to_visit = [pid]
    while to_visit:
        parent = to_visit.pop()
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):  # noqa: PTH208  Path.iterdir fails in the middle
                with contextlib.suppress(OSError):
                    listing = Path(f"/proc/{parent}/task/{thread}/children").read_text()
                    children = {int(word) for word in listing.split()} - found
                    found |= children
                    to_visit += children
    return found


def open_descendants(pid: int, most: int) -> list[int]:
    """Open descriptors (pidfds) of processes below one that are not in its process group, of so many at most.

    A number may be another process's by the time it is used.
    """
    opened: dict[int, int] = {}
    for child in find_descendants(pid):
        with contextlib.suppress(OSError):
            if len(opened) < most and os.getpgid(child) != pid:
                opened[child] = os.pidfd_open(child)
    still_there = find_descendants(pid)
    for child in opened.keys() - still_there:
        os.close(opened.pop(child))
    return list(opened.values())


class UseGauge:
    """Reads, again and again, what some processes and all below them use together, with as little effort as will do.

    A quick look counts what processes share once for each of them, so it is never too low. What is exact takes a walk
    through all their pages, which slows them: it is made only where the quick look is above the limit, and rarely.
    """

    def __init__(self, limit_bytes: int) -> None:
        """Take the memory that matters; 0 is none."""
        self._limit_bytes = limit_bytes
        #: By how much the quick look was too high when both were made, and when both are due again.
        self._counted_twice_bytes = 0
        self._exact_after_s = 0.0

    def read(self, roots: Collection[int], folders: Iterable[Path]) -> ProcessUse:
        """Read the use of these processes, of all below them, and of files in these file systems in memory."""
        pids = set(roots).union(*map(find_descendants, roots))
        by_thread = dict(map(_read_status, pids))
        pids, rows = set(by_thread), list(by_thread.values())
        in_files = sum(map(_used_bytes, folders))
        own_bytes = sum(row.get(name, 0) for row in rows for name in _OWN_AT_MOST)
        if 0 < self._limit_bytes < own_bytes + _read_shared_memory():  # else there is not so much of it on the host
            in_files += find_shared_memory(pids)
        memory_bytes = _sum_memory(rows, _OWN_AT_MOST, _SHARED_AT_MOST, in_files)
        if 0 < self._limit_bytes < memory_bytes:
            began_s = time.monotonic()
            if memory_bytes - self._counted_twice_bytes > self._limit_bytes or began_s >= self._exact_after_s:
                exact = [_read_fields(pid, "smaps_rollup") for pid in pids]
                if any(exact):  # else others' pages are not this process's to see, and the quick look has to do
                    exact_bytes = _sum_memory(exact, _OWN, _SHARED, in_files) + _sum_memory(rows, [_TABLES], "", 0)
                    self._counted_twice_bytes = max(0, memory_bytes - exact_bytes)
                now_s = time.monotonic()
                self._exact_after_s = now_s + min(_LONGEST_REST_S, _REST * (now_s - began_s))
            memory_bytes -= self._counted_twice_bytes
        return ProcessUse(memory_bytes=memory_bytes, processes=sum(row.get(_THREADS, 0) // 1024 for row in rows))


def find_shared_memory(pids: Iterable[int]) -> int:
    """Sum up the shared memory without a name that these processes have open or mapped, whether they use it or not.

    A memfd that is not mapped, or memory of a shared mapping that was given back with MADV_DONTNEED, is in memory, and
    nothing says so of a process. So is secret memory (`man memfd_secret`), of which nobody says how much there is: it
    counts by its size. Each counts once. What is not this process's to see is left out.
    """
    by_device = _find_kinds()
    usual, *_ = by_device
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            opened = (path for thread in _find_tables(pid) for path in _find_open(thread, by_device.values()))
            mapped = (path for is_of, path in _find_mappings(pid, by_device) if is_of not in found)
            for path in chain(opened, mapped):
                with contextlib.suppress(OSError):
                    facts = path.stat()
                    if facts.st_dev in by_device:
                        size = facts.st_blocks * 512 if facts.st_dev == usual else facts.st_size
                        found[facts.st_dev, facts.st_ino] = size
    return sum(found.values())


def _find_tables(pid: int) -> Iterator[int]:
    """Yield a process, and those of its threads that have open files of their own."""
    yield pid
    for name in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  as above
        if int(name) != pid and not _share_files(pid, int(name)):
            yield int(name)


def _share_files(one: int, other: int) -> bool:
    """Whether two threads have the same table of open files; False where nobody says."""
    number = _KCMP.get(os.uname().machine)
    if number is None:
        return False
    words = (ctypes.c_long(word) for word in (number, one, other, _KCMP_FILES, 0, 0))
    return int(_libc.syscall(*words)) == 0


def _find_open(pid: int, mounts: Collection[str]) -> Iterator[Path]:
    """Yield the links of a process's open files of these mounts.

    Nothing is asked of any other file: of one whose server is away, the answer might never come.
    """
    for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208  as above
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/fdinfo/{name}").read_text(errors="replace").splitlines()
            if any(line in mounts for line in lines):
                yield Path(f"/proc/{pid}/fd/{name}")


def _find_mappings(pid: int, devices: Iterable[int]) -> Iterator[tuple[tuple[int, int], Path]]:
    """Yield the links of a process's mappings of files on these devices, each after its file: device and inode."""
    numbers = {device: f" {os.major(device):02x}:{os.minor(device):02x} ".encode() for device in devices}
    with Path(f"/proc/{pid}/maps").open("rb") as file:
        rest = b""
        while part := file.read(_PART_BYTES):
            lines, _, rest = (rest + part).rpartition(b"\n")
            for device, number in numbers.items():
                with _searching:
                    found = list(_find_lines(lines, number))
                for addresses, inode in found:
                    yield (device, inode), Path(f"/proc/{pid}/map_files/{_as_linked(addresses)}")


def _find_lines(lines: bytes, number: bytes) -> Iterator[tuple[str, int]]:
    """Yield addresses and inode of those lines of /proc/PID/maps that have a device; no others are taken apart."""
    at = lines.find(number)
    while at >= 0:
        end = lines.find(b"\n", at)
        line = lines[lines.rfind(b"\n", 0, at) + 1 : end if end >= 0 else None]
        addresses, _, _, on, inode, *_ = line.split(maxsplit=5)
        if on == number.strip():  # else it stands in a name
            yield addresses.decode(), int(inode)
        at = lines.find(number, end) if end >= 0 else -1


def _as_linked(addresses: str) -> str:
    """Write two addresses of /proc/PID/maps as in /proc/PID/map_files: without zeros in front."""
    return "-".join(f"{int(word, 16):x}" for word in addresses.split("-"))


@cache
def _find_kinds() -> dict[int, str]:
    """Find the file systems of shared memory without a name, which are in no folder: the usual one, and a secret one.

    By their devices, with the lines by which /proc/PID/fdinfo tells open files of each.
    """
    probes = [os.memfd_create("bulletin-probe", os.MFD_CLOEXEC), int(_libc.syscall(_MEMFD_SECRET, os.O_CLOEXEC))]
    found = {}
    for probe in probes:
        if probe >= 0:  # not every system has secret memory
            lines = Path(f"/proc/self/fdinfo/{probe}").read_text().splitlines()
            found[os.fstat(probe).st_dev] = next(line for line in lines if line.startswith("mnt_id:"))
            os.close(probe)
    return found


def _read_shared_memory() -> int:
    """Read how much shared memory there is on the host at most, files of tmpfs and all that is secret among it."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(("Shmem:", "Unevictable:")))


def _sum_memory(rows: Iterable[dict[str, int]], own: Iterable[str], shared: str, in_files: int) -> int:
    """Sum it up. What is in files is in memory once, also where processes have it mapped."""
    rows = list(rows)
    mapped = sum(row.get(shared, 0) for row in rows)
    return sum(row.get(name, 0) for row in rows for name in own) + max(mapped, in_files)


def _read_status(pid: int) -> tuple[int, dict[str, int]]:
    """Read what a process uses, by the first of its threads that has not ended, which is returned too.

    The one that a process begins with may end before the others: nothing is told of the process by its number then.
    """
    row = _read_fields(pid, "status")
    if row.get(_THREADS, 0) > 1024 and _OWN_AT_MOST[0] not in row:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  as above
                if _OWN_AT_MOST[0] in (found := _read_fields(int(name), "status")):
                    return int(name), found
    return pid, row


def _read_fields(pid: int, name: str) -> dict[str, int]:
    """Read the numbers of a file of /proc, times 1024: they are in kB. Empty for a process that is gone."""
    found = {}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            word, _, rest = line.partition(":")
            number = rest.split(maxsplit=1)[0] if rest.strip() else ""
            if number.isdecimal():
                found[word] = 1024 * int(number)
    return found


def _used_bytes(folder: Path) -> int:
    with contextlib.suppress(OSError):  # its owner is gone
        system = os.statvfs(folder)
        return (system.f_blocks - system.f_bfree) * system.f_frsize + (system.f_files - system.f_ffree) * _FILE_BYTES
    return 0
