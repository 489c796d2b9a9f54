"""A ZeroMQ socket in an event loop that costs no future for each message: what waits is taken without waiting.

ZeroMQ's descriptor tells of a change once: it is quiet again as soon as anything has made ZeroMQ look, a send included.
So after each send we look whether something has come, too.
"""

import asyncio
from collections.abc import Sequence

import zmq

from bulletin.wire.frames import Blob

#: As a number: an operation on pyzmq's flags makes an object of an enumeration each time.
_READABLE = int(zmq.POLLIN)


class PolledSocket:
    """One reader and any number of writers, all in one event loop. Of a plain socket, or the shadow of another."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: asyncio.Future[None] | None = None

    async def receive(self) -> list[zmq.Frame]:
        """Wait for the next message; one that is there already is returned without a turn of the event loop."""
        while (received := self.take()) is None:
            await self._wait()
        return received

    def take(self) -> list[zmq.Frame] | None:
        """Return the next message; None where none has come."""
        try:
            return self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return None

    def send(self, frames: Sequence[Blob | zmq.Frame], *, copy: bool = True) -> None:
        """Send a message without waiting. Raises zmq.ZMQError where it cannot be sent now (EAGAIN), or to nobody."""
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK, copy=copy)
        finally:
            self._look()

    def close(self) -> None:
        """Wait for nothing any more; the socket is closed with its context, after this."""
        if self._loop is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._loop = None

    async def _wait(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._socket.fileno(), self._look)
        self._waiting = self._loop.create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _look(self) -> None:
        is_readable = int(self._socket.getsockopt(zmq.EVENTS)) & _READABLE
        if is_readable and self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
