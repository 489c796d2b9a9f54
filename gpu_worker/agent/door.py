"""The door: a Unix socket on which kernels of this host fetch the rings of their session, for a ticket.

One line comes in (a ticket), one byte and two descriptors go out: kernel to executor, executor to kernel. The bytes in
the rings pass the agent by.
"""

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

_TICKET_BYTES = 256
_PATIENCE_S = 2.0
_REST_S = 0.1
#: At once. Who knocks and says nothing takes a place for as long as the patience lasts.
_VISITORS = 64
#: Addresses of Unix sockets are short (sun_path holds 108 bytes).
_PATH_BYTES = 100

#: The two rings of the session that a ticket belongs to; None for a ticket that nobody holds.
FindRings = Callable[[str], tuple[int, ...] | None]


class Door:
    """Listens until cancelled. Everybody may knock: what opens is the ticket."""

    def __init__(self, folder: Path, find_rings: FindRings) -> None:
        self._find = find_rings
        self._room = asyncio.Semaphore(_VISITORS)
        path = folder / "door"
        if len(os.fsencode(path)) > _PATH_BYTES:
            path = Path(tempfile.mkdtemp(prefix="bulletin-")) / "door"
            path.parent.chmod(0o711)
        self.path = path
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(path))
        path.chmod(0o666)
        self._socket.listen(64)

    async def run(self) -> None:
        """Serve until cancelled."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as visits:
            while True:
                await self._room.acquire()
                try:
                    visitor, _ = await loop.sock_accept(self._socket)
                except OSError:  # no descriptor is free
                    self._room.release()
                    await asyncio.sleep(_REST_S)
                    continue
                visits.create_task(self._visit(visitor)).add_done_callback(lambda _: self._room.release())

    async def _visit(self, visitor: socket.socket) -> None:
        with visitor, contextlib.suppress(OSError, TimeoutError):  # a visitor who leaves, or says nothing
            async with asyncio.timeout(_PATIENCE_S):
                line = b""
                while not line.endswith(b"\n") and len(line) < _TICKET_BYTES:
                    more = await asyncio.get_running_loop().sock_recv(visitor, _TICKET_BYTES)
                    if not more:
                        return
                    line += more
            rings = self._find(line.decode("ascii", "replace").strip())
            if rings is not None:
                socket.send_fds(visitor, [b"R"], list(rings))

    def close(self) -> None:
        """Stop listening and take the socket away."""
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # noqa: PTH108  one call, no question before it
