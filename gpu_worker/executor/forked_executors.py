"""The executors of a zygote, and the first process of each one's pid namespace, until all of both is gone."""

import contextlib
import os
import signal
from typing import NamedTuple

from gpu_worker.executor.namespaces import NamespaceInit

#: What an agent ends executors and interrupts cells with.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


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
        """Reap executors that have exited, and return those of which nothing is left: no process in their namespace."""
        ended = []
        for pid, init in list(self._inits.items()):
            gone, status = os.waitpid(pid, os.WNOHANG)
            if not gone:
                continue
            del self._inits[pid]
            exited = ExecutorExit(pid, os.waitstatus_to_exitcode(status))
            if init is None:
                ended.append(exited)
            else:
                init.end()
                self._emptied[init.pid] = exited
        for init_pid in list(self._emptied):
            gone, _ = os.waitpid(init_pid, os.WNOHANG)  # it goes last: the kernel empties its namespace before
            if gone:
                ended.append(self._emptied.pop(init_pid))
        return ended
