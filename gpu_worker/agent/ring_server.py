"""A Unix socket on which kernels of this host fetch the shared memory of their session, for a ticket.

One line comes in (a ticket), one byte and two descriptors go out: the ring from kernel to executor, and the one back.
The bytes in the rings pass the agent by.
"""

import asyncio
import contextlib
import os
import socket
import struct
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from gpu_worker.faults import Faults

_TICKET_BYTES = 256
#: How long a visitor may take to show its ticket.
_VISIT_S = 2.0
#: How long to wait where no descriptor is free.
_RETRY_S = 0.1
#: At once, of one Unix user. One that connects and says nothing counts until its time is over.
VISITS_EACH = 16
#: At once, of all of them.
_VISITORS = 256
#: What SO_PEERCRED gives: process, user and group of whoever has connected.
_CREDENTIALS = struct.Struct("3i")
#: Addresses of Unix sockets are short (sun_path holds 108 bytes).
_PATH_BYTES = 100

#: The two rings of the session that a ticket belongs to; None for a ticket that no session has.
FindRings = Callable[[str], tuple[int, ...] | None]


class RingServer:
    """Listens until cancelled. Everybody may connect: what counts is the ticket."""

    def __init__(self, folder: Path, find_rings: FindRings, faults: Faults, visit_s: float = _VISIT_S) -> None:
        """Bind a socket in the folder, or in one of its own where that has too long a path: see `path`."""
        self._find_rings, self._faults, self._visit_s = find_rings, faults, visit_s
        self._free_visits = asyncio.Semaphore(_VISITORS)
        self._visits: Counter[int] = Counter()  #: by Unix user
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
                await self._free_visits.acquire()
                try:
                    visitor, _ = await loop.sock_accept(self._socket)
                except OSError:  # no descriptor is free
                    self._free_visits.release()
                    await asyncio.sleep(_RETRY_S)
                    continue
                visits.create_task(self._let_in(visitor)).add_done_callback(lambda _: self._free_visits.release())

    async def _let_in(self, visitor: socket.socket) -> None:
        """Serve a visitor, unless their Unix user has as many visits as one may have: nobody keeps others out."""
        with self._faults.contain(visitor.close, during="a visit at the door"):
            uid = _uid_of(visitor)
            if self._visits[uid] >= VISITS_EACH:
                visitor.close()
                return
            self._visits[uid] += 1
            try:
                await self._serve(visitor)
            finally:
                self._visits[uid] -= 1
                if not self._visits[uid]:
                    del self._visits[uid]

    async def _serve(self, visitor: socket.socket) -> None:
        with visitor, contextlib.suppress(OSError, TimeoutError):  # a visitor who leaves, or says nothing
            async with asyncio.timeout(self._visit_s):
                line = b""
                while not line.endswith(b"\n") and len(line) < _TICKET_BYTES:
                    more = await asyncio.get_running_loop().sock_recv(visitor, _TICKET_BYTES)
                    if not more:
                        return
                    line += more
            rings = self._find_rings(line.decode("ascii", "replace").strip())
            if rings is not None:
                socket.send_fds(visitor, [b"R"], list(rings))

    def close(self) -> None:
        """Stop listening and take the socket away."""
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # noqa: PTH108  one call, no question before it


def _uid_of(visitor: socket.socket) -> int:
    """Return whose process has connected, by the kernel's word."""
    told = visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(told)[1]
    return uid
