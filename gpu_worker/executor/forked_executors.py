"""The executors of a zygote, and the first process of each one's pid namespace, until all of both is gone."""

import contextlib
import os
import select
import signal
from pathlib import Path
from typing import NamedTuple

from gpu_worker.executor.namespaces import NamespaceInit

#: What an agent ends executors and interrupts cells with.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
#: Of the flags in /proc/PID/stat (PF_EXITING).
_EXITING = 4


class ExecutorExit(NamedTuple):
    """An executor that is gone; `status` is as os.waitstatus_to_exitcode gives it."""

    pid: int
    status: int


class ForkedExecutors:
    """Knows the zygote's children that are to be there."""

    def __init__(self) -> None:
        self._inits: dict[int, NamespaceInit | None] = {}
        #: Executors that have exited while their namespace is being emptied, by its first process.
        self._emptied: dict[int, ExecutorExit] = {}
        #: Of those, the namespaces that were empty when looked at last: twice is true.
        self._found_empty: set[int] = set()

    def add(self, pid: int, init: NamespaceInit | None) -> None:
        """Take note of a fork, and of the first process of its pid namespace if it has one of its own."""
        self._inits[pid] = init

    def send_signal(self, pid: int, number: int) -> None:
        """Send a signal to the process group of an executor that is there, and to nobody else's.

        SIGKILL is for all of its namespace: what traces an executor keeps its exit from its parent.
        """
        if pid in self._inits and number in _SIGNALS:
            init = self._inits[pid]
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)
            if init is not None and number == signal.SIGKILL:
                os.kill(init.pid, number)  # which is reaped after its executor, so that the number is still its own

    @property
    def children(self) -> set[int]:
        """All processes that are to be there."""
        inits = {init.pid for init in self._inits.values() if init is not None}
        return {*self._inits, *inits, *self._emptied}

    def reap(self) -> list[ExecutorExit]:
        """Reap executors that have exited, and return those of which nothing is left: no process in their namespace.

        What traces an executor, or the last of its namespace, from elsewhere keeps it from being reaped. It has ended.
        """
        ended = []
        for pid, init in list(self._inits.items()):
            status = _reap(pid)
            if status is None:
                continue
            del self._inits[pid]
            exited = ExecutorExit(pid, status)
            if init is None:
                ended.append(exited)
            else:
                init.end()
                self._emptied[init.pid] = exited
        for init_pid in list(self._emptied):
            gone, _ = os.waitpid(init_pid, os.WNOHANG)  # it goes last: the kernel empties its namespace before
            is_empty = bool(gone) or _is_empty(init_pid)
            if gone or (is_empty and init_pid in self._found_empty):
                ended.append(self._emptied.pop(init_pid))
            self._found_empty.discard(init_pid)
            if is_empty and not gone:
                self._found_empty.add(init_pid)
        self._found_empty &= self._emptied.keys()
        return ended


def _reap(pid: int) -> int | None:
    """Reap a child that has exited, and return its status; -SIGKILL where another traces it, None while it lives."""
    has_exited = _has_exited(pid)
    gone, status = os.waitpid(pid, os.WNOHANG)
    if gone:
        return os.waitstatus_to_exitcode(status)
    return -signal.SIGKILL if has_exited else None


def _has_exited(pid: int) -> bool:
    """Whether all threads of a process have ended, whoever is to reap it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError:  # no descriptor is free
        return False
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        return bool(ended.poll(0))
    finally:
        os.close(descriptor)


def _is_empty(init: int) -> bool:
    """Whether the first process of a namespace is ending, and all others of it have: those are its children then."""
    try:
        flags = int(Path(f"/proc/{init}/stat").read_text().rpartition(") ")[2].split()[6])
        children = Path(f"/proc/{init}/task/{init}/children").read_text().split()
    except OSError:
        return False
    return bool(flags & _EXITING) and all(_has_exited(int(child)) for child in children)
