"""What this host lets its agent use beside slots: CPUs and memory, as its mask of CPUs and cgroups (v2) limit them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def cpus(own: Path = Path("/proc/self/cgroup"), root: Path = _CGROUPS) -> int:
    """Whole CPUs, at least 1."""
    found = len(os.sched_getaffinity(0))
    for text in _limits(own, root, "cpu.max"):
        quota, _, period = text.partition(" ")
        if quota.isdecimal() and period.isdecimal() and int(period):
            found = min(found, int(quota) // int(period))
    return max(1, found)


def memory_bytes(own: Path = Path("/proc/self/cgroup"), root: Path = _CGROUPS) -> int:
    """Bytes of host memory."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([found, *(int(text) for text in _limits(own, root, "memory.max") if text.isdecimal())])


def _limits(own: Path, root: Path, name: str) -> Iterator[str]:
    """What the process's cgroup and those that it is in say about a limit; nothing where there are none."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    path = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if path is None:
        return
    at = root / path
    while at == root or root in at.parents:
        with contextlib.suppress(OSError):  # the root has no limits; a container may not show all above it
            yield (at / name).read_text().strip()
        at = at.parent
