"""The processes that run cells, as their agent ends them: each leads a process group, and all of that ends with it.

The zygote dies with the agent, and executors with the zygote (the kernel's parent-death signal), so nothing outlives a
killed agent but the executors' own children; those carry a mark in their environment and are killed at the next start.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec

from gpu_worker.agent.process_tree import open_descendants

#: The variable that marks processes of an agent: its value begins with the agent's id and a slash.
MARK = "BULLETIN_EXECUTOR"
#: So many processes of a session are held by descriptors at most: a tenant must not use up those of the agent.
_MOST_OPENED = 64
#: From SIGTERM to SIGKILL.
_TERM_GRACE_S = 0.5


class ExecutorProcess(msgspec.Struct):
    """One forked executor. `status`, once it is gone, is as os.waitstatus_to_exitcode gives it."""

    pid: int
    #: The first process of its pid namespace, where it has one of its own.
    init: int | None = None
    #: Sends a signal to the process group of a leader, where this process may not.
    send_signal: Callable[[int, int], None] | None = None
    status: int | None = None

    @property
    def roots(self) -> tuple[int, ...]:
        """All that it has started is below one of these."""
        return (self.pid,) if self.init is None else (self.pid, self.init)

    def interrupt(self) -> None:
        """Send SIGINT to the whole group, as Ctrl-C in a terminal does: `!shell` commands hear it too."""
        self._signal(signal.SIGINT)

    async def end(self, gone: asyncio.Event, *, at_once: bool) -> None:
        """End the executor and all below it; returns when `gone` says that the executor is gone.

        Unless it must be `at_once`, SIGTERM comes first.
        """
        with contextlib.ExitStack() as family:  # those that made a group of their own end with it
            try:
                await asyncio.to_thread(_kill_at_end, family, self.pid)
                if not at_once:
                    self._signal(signal.SIGTERM)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_TERM_GRACE_S):
                            await gone.wait()
                await asyncio.to_thread(_kill_at_end, family, self.pid)
            finally:
                self.kill_group()
        await gone.wait()

    def kill_group(self) -> None:
        """Kill the process group and all of the namespace, unless the executor is gone: numbers may be others' by now.

        What traces an executor keeps its exit from its parent for as long as it likes, so it has to end, too.
        """
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.status is not None:
            return
        if self.send_signal is not None:
            self.send_signal(self.pid, number)  # what sends it knows the namespace
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        if self.init is not None and number == signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.init, number)


def _kill_at_end(stack: contextlib.ExitStack, pid: int) -> None:
    """Let the stack kill, at its end, what is below this process now and has left its group: those, and no other.

    Of very many, those that are left come to the zygote when their parents end, and it kills them.
    """
    for descriptor in open_descendants(pid, most=_MOST_OPENED):
        stack.callback(_kill, descriptor)


def _kill(descriptor: int) -> None:
    """Kill a process by its descriptor (pidfd), which is closed."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    os.close(descriptor)


def kill_marked(agent: str) -> int:
    """Kill the processes that an earlier life of the agent of this id left behind; return how many there were."""
    wanted = f"{MARK}={agent}/".encode()
    count = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(int(folder.name))  # its number may be another's by the time it is killed
            try:
                if any(entry.startswith(wanted) for entry in (folder / "environ").read_bytes().split(b"\0")):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    count += 1
            finally:
                os.close(descriptor)
    return count
