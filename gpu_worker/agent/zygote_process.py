"""The zygote of one environment as a process of the agent: kept alive, and asked to fork executors."""

import asyncio
import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable

import msgspec
import structlog

from bulletin.errors import MalformedMessage
from bulletin.ids import LeaseId
from bulletin.restarts import LONGEST_DELAY_S, RestartDelays
from bulletin.wire import frames, messages as wire, pipe
from gpu_worker.agent.executor_process import MARK

#: Nothing of these reaches a process that runs users' cells.
_SECRETS = ("JUPYTERHUB_", "JPY_", "BULLETIN_", "CONFIGPROXY_")
_FIRST_DELAY_S, _HEALTHY_AFTER_S = 0.2, 10.0
#: How long a fork waits for a zygote that is being started.
_START_S = 30.0


class UnixUser(msgspec.Struct, frozen=True, kw_only=True):
    """The Unix user that an executor becomes, and where it starts; None and empty where it stays the agent's."""

    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    folder: str | None = None


class ZygoteProcess:
    """Starts a zygote, starts it again when it dies, with growing delays, and passes on what it says."""

    def __init__(
        self,
        python: str,
        agent: str,
        preload: tuple[str, ...],
        on_message: Callable[[wire.FromZygote], None],
        on_exit: Callable[[], None],
    ) -> None:
        """Take the environment's interpreter (`python`), the agent's id, and the modules to import ahead (`preload`).

        `on_message` gets what the zygote says; `on_exit` is called when it has died, and all its executors with it.
        """
        self._python, self._agent, self._preload = python, agent, preload
        self._on_message, self._on_exit = on_message, on_exit
        self._log = structlog.get_logger("agent").bind(zygote=python)
        self._delays = RestartDelays(_FIRST_DELAY_S, healthy_after_s=_HEALTHY_AFTER_S)
        self._socket: socket.socket | None = None
        self._is_up = asyncio.Event()
        self._is_warm = False
        #: Why it could not be started the last time.
        self._problem: OSError | None = None
        self._process: subprocess.Popen[bytes] | None = None

    async def run(self) -> None:
        """Keep a zygote alive until cancelled."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                started_s = clock()
                try:
                    hung_up = self._start()
                except OSError as error:  # the environment's python is gone, say; it may come back
                    self._problem = error
                    self._log.warning("a zygote cannot be started", problem=str(error))
                    await asyncio.sleep(LONGEST_DELAY_S)
                    continue
                self._problem = None
                await hung_up.wait()
                assert self._process is not None
                status = await asyncio.to_thread(self._process.wait)
                self._is_up.clear()
                self._log.warning("the zygote ended and is started again", status=status)
                if not self._is_warm and self._preload:
                    self._log.warning("it ended while it imported: the next one imports nothing ahead")
                    self._preload = ()
                self._on_exit()
                await asyncio.sleep(self._delays.record_exit(clock() - started_s))
        finally:
            self.close()

    def _start(self) -> asyncio.Event:
        """Start the process; the event it returns is set when the process hangs up."""
        ours, theirs = socket.socketpair()
        environ = {name: value for name, value in os.environ.items() if not name.startswith(_SECRETS)}
        # Forks keep the environment that their ancestor was started with: the mark stands there too.
        environ |= {
            MARK: f"{self._agent}/zygote",
            "BULLETIN_PRELOAD": ",".join(self._preload),
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        }
        environ.pop("CUDA_VISIBLE_DEVICES", None)
        with theirs:
            self._process = subprocess.Popen(
                [self._python, "-P", "-m", "gpu_worker.executor", str(theirs.fileno())],
                env=environ,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket = ours
        self._is_warm = False
        self._is_up.set()
        hung_up = asyncio.Event()
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(ours, loop, hung_up), name="zygote", daemon=True).start()
        return hung_up

    def _listen(self, sock: socket.socket, loop: asyncio.AbstractEventLoop, hung_up: asyncio.Event) -> None:
        """Read what the zygote says, in a thread of its own."""
        unpacker: frames.Unpacker[wire.FromZygote] = frames.Unpacker(wire.FromZygote)
        try:
            while True:
                message, _ = unpacker.unpack(pipe.receive(sock))
                self._is_warm = True  # whatever it says, its imports are behind it
                loop.call_soon_threadsafe(self._on_message, message)
        except (EOFError, OSError, MalformedMessage):
            with contextlib.suppress(RuntimeError):  # the loop is closed: the agent ends
                loop.call_soon_threadsafe(hung_up.set)

    async def fork(self, lease: LeaseId, environ: dict[str, str], user: UnixUser, descriptors: list[int]) -> None:
        """Ask for an executor that gets these descriptors (a pipe and two rings); Forked follows.

        Raises OSError (TimeoutError too) if there is no zygote to ask.
        """
        if self._problem is not None:
            raise self._problem
        try:
            async with asyncio.timeout(_START_S):
                await self._is_up.wait()
        except TimeoutError:
            raise TimeoutError("the process that starts them is not up") from None
        assert self._socket is not None
        socket.send_fds(self._socket, [b"F"], descriptors)
        message = wire.Fork(
            lease=lease, environ=environ, uid=user.uid, gid=user.gid, groups=user.groups, folder=user.folder
        )
        pipe.send(self._socket, frames.pack(message))

    def close(self) -> None:
        """End the zygote, and with it its executors."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
