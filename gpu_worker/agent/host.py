"""What this host lets its agent use beside slots: CPUs and memory, as its mask of CPUs and cgroups (v2) limit them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def cpus(cgroup_file: Path = Path("/proc/self/cgroup"), cgroups: Path = _CGROUPS) -> int:
    """Count the whole CPUs that this process may use, at least 1."""
    found = len(os.sched_getaffinity(0))
    for text in _limits(cgroup_file, cgroups, "cpu.max"):
        quota, _, period = text.partition(" ")
        if quota.isdecimal() and period.isdecimal() and int(period):
            found = min(found, int(quota) // int(period))
    return max(1, found)


def memory_bytes(cgroup_file: Path = Path("/proc/self/cgroup"), cgroups: Path = _CGROUPS) -> int:
    """Count the bytes of host memory that this process may use."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([found, *(int(text) for text in _limits(cgroup_file, cgroups, "memory.max") if text.isdecimal())])


def _limits(cgroup_file: Path, cgroups: Path, name: str) -> Iterator[str]:
    """Read a limit of the process's cgroup and of those that it is in; nothing where there are none."""
    try:
        lines = cgroup_file.read_text().splitlines()
    except OSError:
        return
    path = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if path is None:
        return
    folder = cgroups / path
    while folder == cgroups or cgroups in folder.parents:
        with contextlib.suppress(OSError):  # the root has no limits; a container may not show all above it
            yield (folder / name).read_text().strip()
        folder = folder.parent
