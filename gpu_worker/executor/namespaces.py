"""Namespaces of an executor: it sees no process but its own, a /tmp that nobody else has, and the devices of its lease.

An executor is a fork, and unshare(1) and bubblewrap start programs; Python has unshare(2) from 3.12 on and mount(2) not
at all. So these few calls go to the C library.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import re
import shutil
import signal
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from bulletin.wire.messages import Namespaces

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWPID = 0x00020000, 0x08000000, 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_SLAVE = 2, 4, 8, 4096, 16384, 1 << 19
#: Folders that everybody writes to.
TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  each executor gets its own
#: Here, too, folders that everybody writes to are for each executor alone; what they are for is small.
_RUN = Path("/run")
_SMALL_SHARED = ("/var/crash", "/var/lock")
#: Sockets of what starts processes for its users outside of all that holds an executor (logind and its lingering users,
#: their own systemd), and of the log, where lines count as those of the unit that the executor is in.
_MANAGERS = ("/run/dbus", "/run/systemd", "/run/user")
#: What is needed of that: names of hosts and of users.
_NAMES = ("/run/systemd/resolve", "/run/systemd/userdb")
_SMALL = "size=1m,nr_inodes=4096"
#: What every process may need of /dev, besides terminals and shared memory.
_EVERYBODYS_NODES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_DEVICES = Path("/dev")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
#: So many files may be in a /tmp: each takes memory, also an empty one.
_MOST_FILES = 2**20
#: So many terminals at once: the system has some thousand for all.
_MOST_TERMINALS = 64
_TERMINALS = f"newinstance,ptmxmode=0666,mode=0620,max={_MOST_TERMINALS}"
#: So many message queues of System V: each holds 16 kB that no process seems to have.
_MOST_QUEUES = 1024
#: Semaphores of System V: so many in a set, in all, to an operation, and sets. Each takes 64 bytes of nobody's memory.
_MOST_SEMAPHORES = "8192 65536 500 1024"
#: From this version of Linux on, pid_max is of the namespace of who writes it.
_LIMITS_NAMESPACES = (6, 14)
#: None of the first numbers is given a second time.
_RESERVED_PIDS = 302
#: Waits for the end of its standard input. The first process of a pid namespace: all others of it end with it.
_INIT = "cat"
_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceInit(msgspec.Struct):
    """The first process of a pid namespace. It ends when `writer` is closed, also by the death of who holds it."""

    pid: int
    writer: int

    def end(self) -> None:
        """Kill it, and with it whatever is in its namespace. It is to be reaped."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.writer)


@contextlib.contextmanager
def fork_into_pid_namespace() -> Iterator[NamespaceInit]:
    """Let what is forked in this block be in a pid namespace of its own. Raises OSError.

    Its first process is a small one, so that the executor is a process like any other: signals that it sends to itself
    mean what they always mean. The parent of both is this process, which stays where it is.
    """
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(own, _CLONE_NEWPID), "setns")  # should it be in the namespace of another fork still
        _check(_libc.unshare(_CLONE_NEWPID), "unshare")
        try:
            init = _start_init()
            try:
                yield init
            except BaseException:
                init.end()
                raise
        finally:
            _check(_libc.setns(own, _CLONE_NEWPID), "setns")
    finally:
        os.close(own)


def _start_init() -> NamespaceInit:
    program = shutil.which(_INIT)
    if program is None:
        raise FileNotFoundError(errno.ENOENT, "the first process of a pid namespace needs it", _INIT)
    reader, writer = os.pipe()
    try:
        nothing = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
        actions = [(os.POSIX_SPAWN_DUP2, reader, 0), nothing, (os.POSIX_SPAWN_DUP2, 1, 2)]
        return NamespaceInit(os.posix_spawn(program, [_INIT], {}, file_actions=actions, setpgroup=0), writer)
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)


def enter(private: Namespaces, kept: Iterable[str]) -> None:
    """Move this process, which is in a pid namespace of its own, into others of its own, with what it is to see there.

    The paths in `kept` are what it needs (its interpreter, its home): those in a folder for temporary files stay there.
    Raises OSError; the process must then not go on.
    """
    _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWIPC), "unshare")
    # What is mounted on the host later, such as a home by NFS, comes here too, and nothing goes from here to there.
    _mount(None, "/", None, _MS_REC | _MS_SLAVE)
    umask, folder = os.umask(0), Path.cwd()
    try:
        if private.has_own_tmp:
            _replace_shared_folders(private, [*kept, *_NAMES])
        _replace_devices(private)
        _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
        _limit_system_v(private)
        if not private.has_user_namespaces:
            _forbid_user_namespaces()
        os.chdir(folder if folder.is_dir() else "/")  # the folder that it was in may be below what is now hidden
    finally:
        os.umask(umask)


def limit_processes(processes: int) -> None:
    """Let the pid namespace that this process is in have no more than about so many processes and threads.

    Who has as many is ended by the agent; this holds until that has looked. Only from Linux 6.14 on is this number the
    namespace's; before, it was that of the whole host.
    """
    version = tuple(int(word) for word in re.findall(r"\d+", os.uname().release)[:2])
    if version >= _LIMITS_NAMESPACES:
        Path("/proc/sys/kernel/pid_max").write_text(str(_RESERVED_PIDS + processes))


def _forbid_user_namespaces() -> None:
    """Let neither this process nor what it starts make a user namespace, and be root there of what the system counts.

    Terminals, message queues and shared memory would be there once more, without the limits of here. By unshare(2),
    only a process whose root is that of its mount namespace can make one. So its root is a copy of that, elsewhere.
    """
    _mount("/", _DEVICES, None, _MS_BIND | _MS_REC)
    os.chroot(_DEVICES)


def _limit_system_v(private: Namespaces) -> None:
    """Limit what the IPC namespace that this process is in may hold: some is there that no process has mapped."""
    kernel = Path("/proc/sys/kernel")
    with contextlib.suppress(FileNotFoundError):  # a kernel without it
        (kernel / "msgmni").write_text(str(_MOST_QUEUES))
        (kernel / "sem").write_text(_MOST_SEMAPHORES)
        if private.scratch_bytes:
            (kernel / "shmall").write_text(str(private.scratch_bytes // mmap.PAGESIZE))


def _replace_shared_folders(private: Namespaces, kept: Iterable[str]) -> None:
    """Hide what everybody writes to, and who would start a process outside of here; show again what is kept."""
    temporary = _find_folders(TEMPORARY)
    managers = _find_folders(_MANAGERS)
    small = _find_folders(_SMALL_SHARED) | set(_find_writable_by_all(_RUN))
    # A link from one to another is the other.
    small = {one for one in small - temporary - managers if _DEVICES not in one.parents}
    opened = {path: _open_path(path) for path in _find_outermost(kept, temporary | managers | small)}
    for folder in temporary:
        _mount_scratch(folder, private.scratch_bytes)
    for folder in small:
        _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, f"mode=1777,{_SMALL}")
    for folder in managers:
        _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, f"mode=755,{_SMALL}")
    for path, descriptor in opened.items():
        _bind(descriptor, path)


def _find_folders(paths: Iterable[str]) -> set[Path]:
    """Find those of these folders that are there, each once whatever links lead to it."""
    return {Path(path).resolve() for path in paths if Path(path).is_dir()}


def _find_writable_by_all(parent: Path) -> Iterator[Path]:
    """Find the folders directly in this one that everybody may write to."""
    with contextlib.suppress(FileNotFoundError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mode & stat.S_IWOTH:
                yield Path(entry.path).resolve()


def _find_outermost(paths: Iterable[str], folders: Collection[Path]) -> list[Path]:
    """List those of these paths that are inside one of the folders, without those that are inside another of them."""
    every = {one for path in paths if path for one in (Path(path).absolute(), Path(path).resolve())}
    found: list[Path] = []
    for path in sorted(every):
        if not set(path.parents).isdisjoint(folders) and path.exists() and set(path.parents).isdisjoint(found):
            found.append(path)
    return found


def _replace_devices(private: Namespaces) -> None:
    nodes = (Path(path) for path in (*_EVERYBODYS_NODES, *private.devices))
    opened = {path: _open_path(path) for path in nodes if path.exists()}
    _mount("tmpfs", _DEVICES, "tmpfs", _MS_NOSUID | _MS_NOEXEC, f"mode=755,{_SMALL}")
    for path, descriptor in opened.items():
        _bind(descriptor, path)
    for name, target in _DEVICE_LINKS.items():
        (_DEVICES / name).symlink_to(target)
    for name in ("pts", "shm", "mqueue"):
        (_DEVICES / name).mkdir(0o755)
    _mount("devpts", _DEVICES / "pts", "devpts", _MS_NOSUID | _MS_NOEXEC, _TERMINALS)
    _mount_scratch(_DEVICES / "shm", private.scratch_bytes)
    with contextlib.suppress(OSError):  # a kernel without message queues
        _mount("mqueue", _DEVICES / "mqueue", "mqueue", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _open_path(path: Path) -> int:
    """Take hold of what is at a path, which is to be shown there again."""
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _mount_scratch(folder: Path, size_bytes: int) -> None:
    size = f",size={size_bytes}" if size_bytes else ""
    _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=1777,nr_inodes={_MOST_FILES}{size}")


def _bind(descriptor: int, path: Path) -> None:
    """Show what is open at a path, which is made, and close it."""
    source = Path(f"/proc/self/fd/{descriptor}")
    path.parent.mkdir(0o755, parents=True, exist_ok=True)
    if source.is_dir():
        path.mkdir(0o755)
    else:
        path.touch(0o644)
    _mount(source, path, None, _MS_BIND | _MS_REC)
    os.close(descriptor)


def _mount(
    source: str | Path | None, target: str | Path, kind: str | None, flags: int, data: str | None = None
) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    _check(_libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]), f"mount {target}")


def _check(status: int, what: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
