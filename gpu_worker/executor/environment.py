"""What a process of the pool is before the user's code runs in it: bound to its parent, without secrets, its user's.

Everything here is about the process itself (prctl, identity, environ); nothing is about cells.
"""

import contextlib
import ctypes
import itertools
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import bulletin
from bulletin.wire.messages import Fork
from gpu_worker.executor import job_signals, namespaces

_SECRET = ("JUPYTERHUB_", "JPY_", "BULLETIN_")
#: What tells user code that it runs in an executor.
MARK = "BULLETIN_EXECUTOR"
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
#: What the driver answers while nobody has called cuInit.
_CUDA_NOT_INITIALIZED = 3
#: The number of keyctl(2) by machine, which glibc has no function for, and what it is to do.
_KEYCTL, _JOIN_SESSION_KEYRING = {"x86_64": 250, "aarch64": 219}, 1
#: How much sooner the system ends an executor than others when memory runs out, of 1000; and who is not preferred.
_OOM_SCORE, _NO_OOM_SCORE = "500", "0"
#: Above all descriptors that a process may have.
_MOST_DESCRIPTORS = 2**20
_libc = ctypes.CDLL(None, use_errno=True)


def without_secrets(environ: Mapping[str, str], keep: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment as a user's code may see it: without what the hub and Bulletin set, but for `keep`."""
    exceptions = (MARK, *keep)
    return {name: value for name, value in environ.items() if name in exceptions or not name.startswith(_SECRET)}


def die_with_parent(parent: int) -> None:
    """Be killed when the parent dies; leave at once if it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Be the parent of all processes below whose own parent has ended, so that none of them can leave."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_strays(known: Collection[int]) -> None:
    """Kill children of the zygote that are none of these: what executors that have ended left behind, and reap it.

    An executor adopts its own orphans; only with its end, or where it has refused them, do they come to the zygote.
    Whatever a stray has started comes next, by another SIGCHLD.
    """
    with contextlib.suppress(OSError):  # a system without this list has none
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        for pid in {int(word) for word in listed.split()} - set(known):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)


def choose_plots() -> None:
    """Let plots be outputs of their cell. matplotlib reads this once, when it is imported."""
    if find_spec("matplotlib_inline") is not None and not os.environ.get("MPLBACKEND"):
        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"


def is_cuda_untouched() -> bool:
    """Tell whether nobody in this process has called cuInit: only then may it fork users of CUDA."""
    with Path("/proc/self/maps").open() as maps:
        library = next((line.split()[-1] for line in maps if "libcuda.so" in line), None)
    if library is None:
        return True
    count = ctypes.c_int()
    return int(ctypes.CDLL(library).cuDeviceGetCount(ctypes.byref(count))) == _CUDA_NOT_INITIALIZED


def keep_only(log: int, links: Sequence[int]) -> None:
    """Close every descriptor of a fork but these: what its zygote and its agent have open is not its tenant's.

    Standard input is empty, standard output and error are the way to the log, until the executor captures them.
    """
    signal.set_wakeup_fd(-1)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    kept = sorted({0, 1, 2, log, *links})
    for before, after in itertools.pairwise([*kept, _MOST_DESCRIPTORS]):
        os.closerange(before + 1, after)


def give_pipes(descriptors: Sequence[int], uid: int) -> None:
    """Let a Unix user open these by name (/dev/stdout), which an agent has made; pipes without a name, nothing else.

    Who is root for an agent that is not must not give away what the agent has opened somewhere.
    """
    ends = os.pipe()
    device = os.fstat(ends[0]).st_dev
    for end in ends:
        os.close(end)
    for descriptor in descriptors:
        if os.fstat(descriptor).st_dev == device:
            os.fchown(descriptor, uid, -1)


def become_executor(fork: Fork, zygote: int) -> None:
    """Turn a fresh fork of the zygote into its tenant's process.

    Raises
    ------
    OSError
        If the identity that was asked for cannot be taken on. The process must then not go on.
    """
    # A parent in another pid namespace has no number here, and another process has if it is gone.
    parent = zygote if fork.namespaces is None else 0
    os.setsid()
    die_with_parent(parent)
    if fork.namespaces is not None:
        home = fork.environ.get("HOME", "")
        namespaces.enter(fork.namespaces, [*sys.path, sys.prefix, sys.base_prefix, fork.folder or "", home])
        if fork.processes:
            namespaces.limit_processes(fork.processes)
    job_signals.reset_in_executor()
    for number in (signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until there is a cell to interrupt
    _join_own_keyring()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _write_oom_score(_OOM_SCORE)  # before agent, broker and hub
    if fork.uid is not None:
        os.umask(0o077)
        if fork.user_processes:
            _lower_limit(resource.RLIMIT_NPROC, fork.user_processes)
    if fork.gid is not None or fork.groups:
        os.setgroups(fork.groups)
    if fork.gid is not None:
        os.setresgid(fork.gid, fork.gid, fork.gid)
    if fork.uid is not None:
        os.setresuid(fork.uid, fork.uid, fork.uid)
        if 0 in os.getresuid():
            raise PermissionError("a cell never runs as root for a user of a hub")
    die_with_parent(parent)  # a change of identity has cleared it
    _take_environ(fork)
    adopt_orphans()
    _prctl(_PR_SET_DUMPABLE, 1)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if fork.uid is not None:
        # Only by CAP_SYS_RESOURCE is it for good. Where user code could take it back, nobody has it: who did that
        # would have all other tenants ended before.
        _write_oom_score(_NO_OOM_SCORE)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()  # inherited, it would be the same in every executor


def _write_oom_score(score: str) -> None:
    """Say how soon the system is to end this process when memory runs out, if it may say so."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(score)


def _lower_limit(which: int, most: int) -> None:
    """Set both limits of the process, without raising the hard one."""
    _, hard = resource.getrlimit(which)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def _join_own_keyring() -> None:
    """Leave the session keyring of the pool, which all executors would share: keys of Kerberos or AFS lie there."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:  # a kernel without keyrings, or one that denies it, has none to share
        _libc.syscall(ctypes.c_long(number), ctypes.c_int(_JOIN_SESSION_KEYRING), None)


def _take_environ(fork: Fork) -> None:
    os.environ.update(fork.environ)
    clean = without_secrets(os.environ)
    for name in set(os.environ) - set(clean):
        del os.environ[name]
    _leave_lost_temporary_folder()
    choose_plots()
    started_in = str(Path.cwd())
    if fork.folder is not None:
        try:
            os.chdir(fork.folder)
        except OSError as error:
            print(f"bulletin: the notebook's folder is not on this node: {error}", file=sys.stderr)  # noqa: T201
    # As in a notebook: no arguments, and modules are looked for in the current folder first.
    sys.argv = [""]
    if sys.path and sys.path[0] == started_in:
        sys.path[0] = ""
    else:
        sys.path.insert(0, "")
    ours = str(Path(bulletin.__path__[0]).parent)
    if ours not in sys.path:
        sys.path.append(ours)


def _leave_lost_temporary_folder() -> None:
    """Have temporary files where they go by default, if the folder for the agent's is not there: /tmp is another one.

    A job of Slurm, for one, may have its own folder below /tmp.
    """
    if not Path(os.environ.get("TMPDIR", "/")).is_dir():
        del os.environ["TMPDIR"]
        tempfile.tempdir = None  # what was found out in the zygote


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")
