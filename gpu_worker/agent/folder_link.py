"""A session's way for the notebook's working folder: what the executor's side asks goes to the kernel, answers go back.

The agent opens no file for it, and looks into nothing but the kind of a message.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

from bulletin.errors import MalformedMessage
from bulletin.wire import blobs as bulk, frames, messages as wire, pipe
from bulletin.wire.fileless_sockets import make_pair
from bulletin.wire.frames import Blob
from gpu_worker.agent.paced_reader import PacedReader

#: What may wait to be read there. An answer for which there is no room is dropped, and asked for again.
_UNREAD_LIMIT_BYTES = 2 * bulk.RING
_PIPE_BUFFER_BYTES = 2 * 2**20

#: Tells the session's kernel, if one is there.
TellKernel = Callable[[wire.Message, Sequence[Blob]], Awaitable[None]]


class FolderLink:
    """A second pipe to the executor: one that holds its interpreter while it opens a file does not hold up the file."""

    def __init__(self, tell_kernel: TellKernel) -> None:
        self._tell_kernel = tell_kernel
        self._socket, self.child_socket = make_pair()
        self._socket.setblocking(False)
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to pass on what is asked."""
        reader, self._writer = await asyncio.open_connection(sock=self._socket, limit=_PIPE_BUFFER_BYTES)
        self._task = asyncio.create_task(self._pass_on(reader))

    async def _pass_on(self, reader: asyncio.StreamReader) -> None:
        """Pass requests on until the other end is closed, or says what is none; it is not heard any more then."""
        unpacker: frames.Unpacker[wire.FromFolder] = frames.Unpacker(wire.FromFolder)
        paced = PacedReader(reader)
        with contextlib.suppress(EOFError, OSError, MalformedMessage):
            while True:
                message, blobs = unpacker.unpack(await paced.read())
                await self._tell_kernel(message, blobs)
                await asyncio.sleep(0)  # what has come already is read without waiting, and others have their turn

    def answer(self, reply: wire.FolderReply, blobs: Sequence[Blob]) -> None:
        """Pass an answer of the kernel back."""
        writer = self._writer
        if writer is None or writer.is_closing():
            return
        if writer.transport.get_write_buffer_size() <= _UNREAD_LIMIT_BYTES:
            pipe.write(writer, frames.pack(reply, blobs))

    def close(self) -> None:
        """Give the pipe back."""
        self.child_socket.close()
        if self._task is not None:
            self._task.cancel()
        if self._writer is not None:
            self._writer.close()
        else:
            self._socket.close()
