"""The zygote of one environment as a process of the agent: kept alive, and asked to fork executors."""

import asyncio
import contextlib
import socket
import subprocess
import threading
from collections.abc import Callable

import structlog

from bulletin.errors import MalformedMessage
from bulletin.restarts import LONGEST_DELAY_S, RestartDelays
from bulletin.wire import frames, messages as wire, pipe
from gpu_worker.agent.zygote_start import ZygoteStarter

_FIRST_DELAY_S, _HEALTHY_AFTER_S = 0.2, 10.0
#: How long a fork waits for a zygote that is being started.
_START_S = 30.0


class ZygoteProcess:
    """Starts a zygote, starts it again when it dies, with growing delays, and passes on what it says."""

    def __init__(
        self,
        environment: str,
        starter: ZygoteStarter,
        on_message: Callable[[wire.FromZygote], None],
        on_exit: Callable[[], None],
    ) -> None:
        """Take the environment's id, and who starts its zygotes.

        `on_message` gets what the zygote says; `on_exit` is called when it has died, and all its executors with it.
        """
        self._environment, self._starter = environment, starter
        self._is_to_preload = True
        self._on_message, self._on_exit = on_message, on_exit
        self._log = structlog.get_logger("agent").bind(zygote=environment)
        self._delays = RestartDelays(_FIRST_DELAY_S, healthy_after_s=_HEALTHY_AFTER_S)
        self._socket: socket.socket | None = None
        #: It is up, or there is a problem.
        self._is_settled = asyncio.Event()
        self._is_warm = False
        #: Why it could not be started the last time.
        self._problem: OSError | LookupError | None = None
        self._process: subprocess.Popen[bytes] | None = None

    async def run(self) -> None:
        """Keep a zygote alive until cancelled."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                started_s = clock()
                try:
                    hung_up = await self._start()
                except (OSError, LookupError) as error:  # the environment's python is gone, say; it may come back
                    self._problem = error
                    self._is_settled.set()  # who waits for it is told
                    self._log.warning("a zygote cannot be started", problem=str(error))
                    await asyncio.sleep(LONGEST_DELAY_S)
                    continue
                self._problem = None
                await hung_up.wait()
                status = await asyncio.to_thread(self._process.wait) if self._process is not None else None
                self._is_settled.clear()
                self._log.warning("the zygote ended and is started again", status=status)
                if not self._is_warm and self._is_to_preload:
                    self._log.warning("it ended while it imported: the next one imports nothing ahead")
                    self._is_to_preload = False
                self._on_exit()
                await asyncio.sleep(self._delays.record_exit(clock() - started_s))
        finally:
            self.close()

    async def _start(self) -> asyncio.Event:
        """Start the process; the event it returns is set when the process hangs up. Raises OSError or LookupError."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = await self._starter.start(
                    self._environment, theirs.fileno(), is_to_preload=self._is_to_preload
                )
            except BaseException:
                ours.close()
                raise
        self._socket = ours
        self._is_warm = False
        self._is_settled.set()
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

    async def fork(self, request: wire.Fork, descriptors: list[int]) -> None:
        """Ask for an executor that gets these descriptors (`zygote.LINKS` says which); Forked follows.

        Raises OSError (TimeoutError too) if there is no zygote to ask.
        """
        try:
            async with asyncio.timeout(_START_S):
                await self._is_settled.wait()
        except TimeoutError:
            raise TimeoutError("the process that starts them is not up") from None
        if self._problem is not None:
            raise self._problem
        assert self._socket is not None
        socket.send_fds(self._socket, [b"F"], descriptors)
        pipe.send(self._socket, frames.pack(request))

    def send_signal(self, pid: int, number: int) -> None:
        """Have a signal sent to the process group of one of its executors; dropped if it is gone."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.sendall(b"S")
                pipe.send(self._socket, frames.pack(wire.SignalGroup(pid=pid, number=number)))

    def close(self) -> None:
        """End the zygote, and with it its executors."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
