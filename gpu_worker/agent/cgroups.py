"""A cgroup (v2) for each lease: limits by the kernel, one kill for all that is in it, and a way to let it stand still.

They are in the part of the tree that the agent may divide: what systemd has delegated to it, or where it is if there is
no systemd. Without controllers there, as beside those of version 1, what needs none still works.
"""

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from bulletin.ids import AgentId, LeaseId

#: What limits a lease. Each is used where it is there.
_CONTROLLERS = frozenset({"memory", "pids", "cpu"})
#: Where processes go that would be in the way of controllers: those that were in the agent's own part of the tree.
_POOL = "bulletin-pool"
_LEASE = "lease-"
#: How long those that were killed may take to end.
_CLOSE_S = 1.0
_SYSTEMD = Path("/run/systemd/system")
_DELEGATED = ("user.delegate", "trusted.delegate")


class LeaseCgroup(msgspec.Struct, frozen=True):
    """The cgroup of one lease."""

    folder: Path

    def add(self, pid: int) -> None:
        """Move a process into it, with all that it starts from now on. It may be gone. Raises OSError."""
        with contextlib.suppress(ProcessLookupError):
            (self.folder / "cgroup.procs").write_text(str(pid))

    def kill(self) -> None:
        """Kill all processes in it, at once: none can start another meanwhile."""
        if (self.folder / "cgroup.kill").exists():
            self._write("cgroup.kill", "1")
        else:
            self.kill_each()

    def kill_each(self) -> None:
        """Kill its processes one by one, as is done before Linux 5.14: what stands still starts none meanwhile."""
        self.set_frozen(frozen=True)
        with contextlib.suppress(FileNotFoundError):
            for pid in _processes(self.folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def set_frozen(self, *, frozen: bool) -> None:
        """Let its processes stand still, or go on."""
        self._write("cgroup.freeze", str(int(frozen)))

    @property
    def is_populated(self) -> bool:
        """Whether a process is in it."""
        return bool(self._read_events("cgroup.events").get("populated", 0))

    def wait_empty(self, timeout_s: float) -> None:
        """Wait until no process is in it, for so long at most. Blocks."""
        deadline_s = time.monotonic() + timeout_s
        changed = select.poll()
        with contextlib.suppress(OSError), (self.folder / "cgroup.events").open() as events:
            changed.register(events, select.POLLPRI)
            while "populated 1" in events.read() and (left_s := deadline_s - time.monotonic()) > 0:
                changed.poll(round(left_s * 1000))
                events.seek(0)

    @property
    def is_frozen(self) -> bool:
        """Whether all its processes stand still."""
        return bool(self._read_events("cgroup.events").get("frozen", 0))

    @property
    def oom_kills(self) -> int:
        """How many processes the kernel has ended because the cgroup was over its memory."""
        return self._read_events("memory.events").get("oom_kill", 0)

    @property
    def peak_bytes(self) -> int:
        """The most memory that it has used; 0 where the kernel does not say."""
        return self._read_number("memory.peak")

    @property
    def memory_bytes(self) -> int:
        """How much memory it may use; 0 where that is not limited."""
        return self._read_number("memory.max")

    def try_remove(self) -> bool:
        """Remove it if no process is in it."""
        with contextlib.suppress(FileNotFoundError):
            try:
                self.folder.rmdir()
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                return False
        return True

    def limit(self, *, memory_bytes: int, processes: int, weight: int) -> None:
        """Set what the kernel is to hold it to; 0 is no limit. What it has no controller for is passed over."""
        limits = {"cpu.weight": weight, "memory.oom.group": 1, "memory.max": memory_bytes, "pids.max": processes}
        if memory_bytes:
            self._write("memory.swap.max", "0")  # swap would be more memory
        for name, number in limits.items():
            if number:
                self._write(name, str(number))

    def _write(self, name: str, text: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # no such controller, or the cgroup is gone
            descriptor = os.open(self.folder / name, os.O_WRONLY | os.O_CLOEXEC)  # cgroup.kill is for nobody to read
            try:
                os.write(descriptor, text.encode())
            finally:
                os.close(descriptor)

    def _read_number(self, name: str) -> int:
        with contextlib.suppress(OSError, ValueError):  # "max", or no such controller
            return int((self.folder / name).read_text())
        return 0

    def _read_events(self, name: str) -> dict[str, int]:
        with contextlib.suppress(OSError):
            return {word: int(count) for word, count in map(str.split, (self.folder / name).read_text().splitlines())}
        return {}


class CgroupTree:
    """The agent's part of the tree."""

    def __init__(self, base: Path, agent: AgentId, wanted: Collection[str] = _CONTROLLERS) -> None:
        """Take the cgroup in which the leases' are to be made, and end what an earlier life of the agent left in them.

        Raises OSError if that is not this process's to divide.
        """
        self._folder = base / f"bulletin-{agent}"
        self._folder.mkdir(exist_ok=True)
        # What others use, and when they stand still, is nobody's to see: who does not know a lease finds none.
        self._folder.chmod(0o711)
        self.kill_all()
        #: Those of the wanted controllers that limit the leases.
        self.controllers = frozenset(word for word in sorted(wanted) if self._enable(base, word))

    def _enable(self, base: Path, controller: str) -> bool:
        """Let a controller limit the leases; False where it is not this agent's to use."""
        try:
            if controller not in (base / "cgroup.controllers").read_text().split():
                return False
            for folder in (base, self._folder):
                try:
                    _add_controller(folder, controller)
                except OSError as error:
                    # Processes are in it, and may not be beside cgroups with limits. Those of others stay there.
                    if error.errno != errno.EBUSY or not is_delegated(folder):
                        raise
                    _move_processes(folder, base / _POOL)
                    _add_controller(folder, controller)
        except OSError:
            return False
        return True

    def create(self, lease: LeaseId) -> LeaseCgroup:
        """Make the cgroup of a lease. Raises OSError."""
        if "/" in lease:  # a broker's word, and this is root's hand
            raise OSError(errno.EINVAL, "this is no name of a lease", lease)
        cgroup = LeaseCgroup(self._folder / f"{_LEASE}{lease}")
        cgroup.folder.mkdir()
        return cgroup

    def remove_ended(self, leases: Collection[LeaseId]) -> None:
        """Remove the cgroups of leases that are none of these, if nothing is left in them."""
        for folder in self._folder.glob(f"{_LEASE}*"):
            if folder.name.removeprefix(_LEASE) not in leases:
                LeaseCgroup(folder).try_remove()

    def close(self) -> None:
        """Kill all that is in the cgroups of leases, and remove them. Blocks until they are empty, but not for long."""
        self.kill_all()
        for folder in self._folder.glob(f"{_LEASE}*"):
            LeaseCgroup(folder).wait_empty(_CLOSE_S)
        self.remove_ended(())
        LeaseCgroup(self._folder).try_remove()

    def kill_all(self) -> None:
        """Kill all that is in the cgroups of leases."""
        for folder in self._folder.glob(f"{_LEASE}*"):
            LeaseCgroup(folder).kill()


def find_base(
    own: Path = Path("/proc/self/cgroup"), mounts: Path = Path("/proc/self/mounts"), systemd: Path = _SYSTEMD
) -> Path:
    """Find the cgroup that this process may divide.

    Raises LookupError, with what is in the way.
    """
    rows = [line.split() for line in mounts.read_text().splitlines()]
    roots = [Path(row[1]) for row in rows if row[2] == "cgroup2"]
    names = [line.removeprefix("0::/") for line in own.read_text().splitlines() if line.startswith("0::/")]
    if not roots or not names:
        raise LookupError("there are no cgroups of version 2")
    folder = roots[0] / names[0]
    for candidate in (folder, folder.parent):  # systemd may have put the unit's processes into a cgroup below its own
        if is_delegated(candidate):
            return candidate
    if systemd.exists():
        raise LookupError("the agent's unit has no Delegate=yes")
    if not os.access(folder, os.W_OK):
        raise LookupError(f"{folder} cannot be changed")
    return folder


def is_delegated(folder: Path) -> bool:
    """Whether systemd has left a cgroup, and all below it, to its unit."""
    for name in _DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return os.access(folder, os.W_OK)
    return False


def _add_controller(folder: Path, controller: str) -> None:
    with (folder / "cgroup.subtree_control").open("r+") as file:
        file.write(f"+{controller}")


def _move_processes(source: Path, target: Path) -> None:
    """Move all processes of a cgroup into another one; those that come meanwhile, too."""
    target.mkdir(exist_ok=True)
    while pids := list(_processes(source)):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError), (target / "cgroup.procs").open("r+") as file:
                file.write(pid)


def _processes(folder: Path) -> Iterator[str]:
    yield from (folder / "cgroup.procs").read_text().split()
