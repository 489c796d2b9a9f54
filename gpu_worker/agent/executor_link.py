"""A session's link to its executor: the pipe, the rings in shared memory, the process, and how it ends."""

import asyncio
import os
from collections.abc import Callable, Sequence

from bulletin.ids import UserName
from bulletin.wire import blobs as bulk, frames, messages as wire, pipe
from bulletin.wire.fileless_sockets import make_pair
from bulletin.wire.frames import Blob
from gpu_worker.agent.cgroups import LeaseCgroup
from gpu_worker.agent.clock import now_ms
from gpu_worker.agent.executor_process import ExecutorProcess
from gpu_worker.agent.folder_link import FolderLink, TellKernel
from gpu_worker.agent.paced_reader import PacedReader
from gpu_worker.agent.unsent_output import UnsentOutput

_PIPE_BUFFER_BYTES = 4 * 2**20
#: What may wait to be read by the executor. A kernel that keeps to its window never has so much on its way.
_UNREAD_LIMIT_BYTES = 4 * bulk.RING
#: How long after the end of a pipe the zygote may take to say why there was no process.
_PROBLEM_S = 1.0
#: How long an executor that has closed its pipe may take to exit.
_EXIT_S = 2.0
#: An executor that is to stand still between cells does so when it has had nothing to do for so long.
_FREEZE_AFTER_MS = 1000
#: How long the way into its cgroup may take.
_JOIN_S = 10.0


class ExecutorLink:
    """There from the start of the session; its `process` is not there before the zygote has forked it."""

    def __init__(self, user: UserName, on_flood: Callable[[], None], tell_kernel: TellKernel) -> None:
        """Take whose it is.

        `on_flood` is called when more waits to be read by the executor than a kernel may send at once; `tell_kernel`
        is for what it asks of the notebook's folder.
        """
        self._on_flood = on_flood
        self.folder = FolderLink(tell_kernel)
        self.process: ExecutorProcess | None = None
        #: Why it was not forked, once the zygote has said so.
        self.problem: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        #: Where its processes are, if the agent has cgroups; and whether they are to stand still there between cells.
        self.cgroup: LeaseCgroup | None = None
        self.is_frozen_when_hot = False
        self._has_joined = asyncio.Event()
        self._is_frozen = False
        #: Since when it has had nothing to do; None while it has.
        self._idle_since_ms: int | None = None
        #: The process is gone.
        self.gone = asyncio.Event()
        #: From kernel to executor, and from executor to kernel.
        self.rings: tuple[int, ...] = (bulk.make_ring(), bulk.make_ring())
        self.unsent = UnsentOutput(user)
        self._socket, self.child_socket = make_pair()
        self._socket.setblocking(False)
        self._unpacker: frames.Unpacker[wire.FromExecutor] = frames.Unpacker(wire.FromExecutor)
        self._reader: PacedReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Open our end of the pipe."""
        reader, self._writer = await asyncio.open_connection(sock=self._socket, limit=_PIPE_BUFFER_BYTES)
        self._reader = PacedReader(reader)
        await self.folder.open()

    async def read(self) -> tuple[wire.FromExecutor, list[Blob]]:
        """Wait for the executor's next message.

        Raises EOFError or OSError when the executor has ended, MalformedMessage when it sent something else.
        """
        assert self._reader is not None
        message, parts = self._unpacker.unpack(await self._reader.read())
        if isinstance(message, wire.Output):
            self.unsent.received = max(self.unsent.received, message.text)
        return message, parts

    def write(self, message: wire.Message, blobs: Sequence[Blob] = ()) -> None:
        """Send a message; drop it if the executor has ended, which `read` tells."""
        if self._writer is None or self._writer.is_closing():
            return
        if isinstance(message, wire.Run | wire.Return):  # of all else it hears with these: a kernel may say it for ever
            self._idle_since_ms = None
            self._set_frozen(frozen=False)
        pipe.write(self._writer, frames.pack(message, blobs))
        # Nobody waits here, or one slow executor would hold up every kernel. An honest kernel keeps to its window.
        if self._writer.transport.get_write_buffer_size() > _UNREAD_LIMIT_BYTES:
            self._on_flood()

    async def join_cgroup(self) -> None:
        """Put the executor, which has not run anybody's code yet, into its cgroup. Raises OSError."""
        if self.cgroup is not None and self.process is not None:
            # The kernel may take some 20 ms for this, while the executor is busy with its own start.
            await asyncio.to_thread(self.cgroup.add, self.process.pid)
        self._has_joined.set()

    async def wait_joined(self) -> None:
        """Wait until the executor is in its cgroup: before that, no cell may come. Raises TimeoutError."""
        async with asyncio.timeout(_JOIN_S):
            await self._has_joined.wait()

    def freeze_when_idle(self) -> None:
        """Let the executor of a hot session stand still, if it is to, until it has something to do.

        To be called now and then while it has nothing.
        """
        if self._idle_since_ms is None:
            self._idle_since_ms = now_ms()
        elif self.is_frozen_when_hot and now_ms() - self._idle_since_ms >= _FREEZE_AFTER_MS:
            self._set_frozen(frozen=True)

    def _set_frozen(self, *, frozen: bool) -> None:
        if self.cgroup is not None and frozen != self._is_frozen:
            self.cgroup.set_frozen(frozen=frozen)
            self._is_frozen = frozen

    async def find_problem(self) -> str:
        """Find why it was never forked, by what the zygote says soon after the pipe has ended."""
        try:
            async with asyncio.timeout(_PROBLEM_S):
                return await self.problem
        except TimeoutError:
            return "its zygote ended"

    def interrupt(self) -> None:
        """Send SIGINT to the executor and to what it has started."""
        if self.process is not None:
            self.process.interrupt()

    def kill(self) -> None:
        """Kill the executor's process group, if there is one."""
        if self.process is not None:
            self.process.kill_group()

    async def end(self, *, at_once: bool) -> None:
        """End the executor, the whole of its process group; or hang up where it was never forked."""
        if self.process is not None:
            await self.process.end(self.gone, at_once=at_once)
        else:
            self.hang_up()

    def record_exit(self, status: int) -> None:
        """Take note that the process is gone, with this status."""
        assert self.process is not None
        self.process.status = status
        self.gone.set()

    async def reap(self) -> bool:
        """Wait until the executor, which has closed its pipe or is as good as gone, is gone indeed.

        Return whether it went on without its pipe, and had to be killed.
        """
        if self.process is None:
            return False
        goes_on = False
        try:
            async with asyncio.timeout(_EXIT_S):
                await self.gone.wait()
        except TimeoutError:
            goes_on = True
        self.process.kill_group()
        await self.gone.wait()
        if self.cgroup is not None:  # what has left the executor's process group has not left this
            self.cgroup.kill()
            await asyncio.to_thread(self.cgroup.wait_empty, _EXIT_S)
        return goes_on

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None where there was no process, or it is not gone."""
        return self.process.status if self.process is not None else None

    def hang_up(self) -> None:
        """Close our end of the pipe, if it is open; `read` then ends."""
        if self._writer is not None:
            self._writer.close()

    def close(self) -> None:
        """Give pipe and rings back; whoever has mapped a ring keeps it mapped."""
        self.child_socket.close()
        self.folder.close()
        self.unsent.close()
        if self._writer is not None:
            self._writer.close()
        else:
            self._socket.close()
        self._reader = None  # with what it has read, and nobody will ask for
        rings, self.rings = self.rings, ()
        for descriptor in rings:
            os.close(descriptor)
