"""The processes that run cells, as their agent ends them: each leads a process group, and all of that ends with it.

The zygote dies with the agent, and executors with the zygote (the kernel's parent-death signal), so nothing outlives a
killed agent but the executors' own children; those carry a mark in their environment and are killed at the next start.
"""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import msgspec

#: The variable that marks processes of an agent: its value begins with the agent's id and a slash.
MARK = "BULLETIN_EXECUTOR"
#: From SIGTERM to SIGKILL.
_TERM_GRACE_S = 0.5


class ExecutorProcess(msgspec.Struct):
    """One forked executor. `status`, once it is gone, is as os.waitstatus_to_exitcode gives it."""

    pid: int
    status: int | None = None

    def interrupt(self) -> None:
        """Send SIGINT to the whole group, as Ctrl-C in a terminal does: `!shell` commands hear it too."""
        _signal(self.pid, signal.SIGINT)

    async def end(self, gone: asyncio.Event, *, at_once: bool) -> None:
        """End the executor and all below it; returns when `gone` says that the executor is gone.

        Unless it must be `at_once`, SIGTERM comes first.
        """
        family: set[int] = set()
        try:
            family |= await asyncio.to_thread(_descendants, self.pid)
            if not at_once:
                _signal(self.pid, signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_TERM_GRACE_S):
                        await gone.wait()
            family |= await asyncio.to_thread(_descendants, self.pid)
        finally:
            self.kill_group()
        for pid in family:  # those that made a group of their own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        await gone.wait()

    def kill_group(self) -> None:
        """Kill what is left of the process group."""
        _signal(self.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _descendants(pid: int) -> set[int]:
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


def kill_marked(agent: str) -> int:
    """Kill the processes that an earlier life of the agent of this id left behind; return how many there were."""
    wanted = f"{MARK}={agent}/".encode()
    count = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if any(entry.startswith(wanted) for entry in (folder / "environ").read_bytes().split(b"\0")):
                os.kill(int(folder.name), signal.SIGKILL)
                count += 1
    return count
