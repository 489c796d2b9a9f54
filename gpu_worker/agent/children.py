"""The processes of a node: one zygote for each environment, the executors it forks, and how they end.

An executor leads a process group and a session of its own; its end is the end of everything below it. The zygote dies
with the agent, and executors with the zygote (the kernel's parent-death signal), so nothing outlives a killed agent
but the executors' own children; those carry a mark in their environment and are swept at the next start.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from bulletin.errors import MalformedMessage
from bulletin.ids import LeaseId
from bulletin.wire import frames, messages as wire, pipe

#: Nothing of these reaches a process that runs users' cells.
SECRETS = ("JUPYTERHUB_", "JPY_", "BULLETIN_", "CONFIGPROXY_")
MARK = "BULLETIN_EXECUTOR"
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 10.0
_TERM_S = 0.5
_UP_S = 30.0


class Executor(msgspec.Struct):
    """One forked executor as its agent holds it."""

    pid: int
    status: int | None = None

    def interrupt(self) -> None:
        """As Ctrl-C in a terminal: the whole group hears it, `!shell` commands too."""
        _signal(self.pid, signal.SIGINT)

    async def end(self, gone: asyncio.Event, *, at_once: bool) -> None:
        """End the executor and all below it; returns when the executor is gone."""
        family: set[int] = set()
        try:
            family |= await asyncio.to_thread(_descendants, self.pid)
            if not at_once:
                _signal(self.pid, signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_TERM_S):
                        await gone.wait()
            family |= await asyncio.to_thread(_descendants, self.pid)
        finally:
            self.sweep()
        for pid in family:  # those that made a group of their own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        await gone.wait()

    def sweep(self) -> None:
        """Kill what is left of the group."""
        _signal(self.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _descendants(pid: int) -> set[int]:
    """All processes below one. They come and go meanwhile."""
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):  # noqa: PTH208  Path.iterdir fails in the middle
                with contextlib.suppress(OSError):
                    listing = Path(f"/proc/{parent}/task/{thread}/children").read_text()
                    children = {int(word) for word in listing.split()} - found
                    found |= children
                    waiting += children
    return found


def sweep(mark: str) -> int:
    """Kill processes that an earlier life of this agent left behind. How many there were."""
    wanted = f"{MARK}={mark}/".encode()
    count = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if any(entry.startswith(wanted) for entry in (folder / "environ").read_bytes().split(b"\0")):
                os.kill(int(folder.name), signal.SIGKILL)
                count += 1
    return count


class Zygote:
    """The zygote of one environment. It is started again when it dies, with growing patience."""

    def __init__(
        self,
        python: str,
        mark: str,
        preload: tuple[str, ...],
        heard: Callable[[wire.FromZygote], None],
        died: Callable[[], None],
    ) -> None:
        self._python, self._mark, self._preload = python, mark, preload
        self._heard, self._died = heard, died
        self._log = structlog.get_logger("agent").bind(zygote=python)
        self._socket: socket.socket | None = None
        self._up = asyncio.Event()
        self._is_warm = False
        self._problem: OSError | None = None
        self._process: subprocess.Popen[bytes] | None = None

    async def run(self) -> None:
        """Keep a zygote alive until cancelled."""
        wait_s = _FIRST_WAIT_S
        try:
            while True:
                began = asyncio.get_running_loop().time()
                gone = asyncio.Event()
                try:
                    self._start(gone)
                except OSError as error:  # the environment's python is gone, say; it may come back
                    self._problem = error
                    self._log.warning("a zygote cannot be started", problem=str(error))
                    await asyncio.sleep(_LONGEST_WAIT_S)
                    continue
                self._problem = None
                await gone.wait()
                assert self._process is not None
                status = await asyncio.to_thread(self._process.wait)
                self._up.clear()
                self._log.warning("the zygote ended and is started again", status=status)
                if not self._is_warm and self._preload:
                    self._log.warning("it ended while it imported: the next one imports nothing ahead")
                    self._preload = ()
                self._died()
                if asyncio.get_running_loop().time() - began > _LONGEST_WAIT_S:
                    wait_s = _FIRST_WAIT_S
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        finally:
            self.close()

    def _start(self, gone: asyncio.Event) -> None:
        ours, theirs = socket.socketpair()
        environ = {name: value for name, value in os.environ.items() if not name.startswith(SECRETS)}
        # Forks keep the environment that their ancestor was started with: the mark stands there too.
        environ |= {
            MARK: f"{self._mark}/zygote",
            "BULLETIN_PRELOAD": ",".join(self._preload),
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        }
        environ.pop("CUDA_VISIBLE_DEVICES", None)
        with theirs:
            self._process = subprocess.Popen(
                [self._python, "-m", "gpu_worker.executor", str(theirs.fileno())],
                env=environ,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket = ours
        self._is_warm = False
        self._up.set()
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(ours, loop, gone), name="zygote", daemon=True).start()

    def _listen(self, sock: socket.socket, loop: asyncio.AbstractEventLoop, gone: asyncio.Event) -> None:
        unpacker: frames.Unpacker[wire.FromZygote] = frames.Unpacker(wire.FromZygote)
        try:
            while True:
                message, _ = unpacker.unpack(pipe.receive(sock))
                self._is_warm = True  # whatever it says, its imports are behind it
                loop.call_soon_threadsafe(self._heard, message)
        except (EOFError, OSError, MalformedMessage):
            with contextlib.suppress(RuntimeError):  # the loop is closed: the agent ends
                loop.call_soon_threadsafe(gone.set)

    async def fork(self, lease: LeaseId, environ: dict[str, str], who: "Who", descriptors: list[int]) -> None:
        """Ask for an executor; Forked follows. Raises OSError (TimeoutError too) if there is no zygote to ask."""
        if self._problem is not None:
            raise self._problem
        try:
            async with asyncio.timeout(_UP_S):
                await self._up.wait()
        except TimeoutError:
            raise TimeoutError("the process that starts them is not up") from None
        assert self._socket is not None
        socket.send_fds(self._socket, [b"F"], descriptors)
        message = wire.Fork(
            lease=lease, environ=environ, uid=who.uid, gid=who.gid, groups=who.groups, folder=who.folder
        )
        pipe.send(self._socket, frames.pack(message))

    def close(self) -> None:
        """End the zygote, and with it its executors."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Who(msgspec.Struct, frozen=True, kw_only=True):
    """The Unix user that an executor becomes, and where it starts; None and empty where it stays the agent's."""

    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    folder: str | None = None
