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
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bulletin.wire.fileless_sockets import refuse_files
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
Result = TypeVar("Result")


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
        refuse_files(self._socket)
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
        with self._faults.contain(lambda: None, during="a visit at the door"):
            uid = _uid_of(visitor)
            is_one_too_many = self._visits[uid] >= VISITS_EACH
            if not is_one_too_many:
                self._visits[uid] += 1
            try:
                try:
                    if not is_one_too_many:
                        await self._serve(visitor)
                finally:
                    closed = _start_aside(visitor.close)
                await closed
            finally:
                if not is_one_too_many:
                    self._visits[uid] -= 1
                    if not self._visits[uid]:
                        del self._visits[uid]

    async def _serve(self, visitor: socket.socket) -> None:
        line = await _start_aside(_read_line, visitor, self._visit_s)
        rings = self._find_rings(line.decode("ascii", "replace").strip())
        if rings is not None:
            with contextlib.suppress(OSError):  # they have left
                socket.send_fds(visitor, [b"R"], list(rings))

    def close(self) -> None:
        """Stop listening and take the socket away."""
        threading.Thread(target=self._socket.close, daemon=True).start()  # with what those have sent who wait
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # noqa: PTH108  one call, no question before it


def _read_line(visitor: socket.socket, patience_s: float) -> bytes:
    """Wait for a visitor's line, for so long; empty where none comes."""
    until_s, line = time.monotonic() + patience_s, b""
    with contextlib.suppress(OSError, ValueError):  # a visitor who leaves, or says nothing
        while not line.endswith(b"\n") and len(line) < _TICKET_BYTES:
            visitor.settimeout(max(0.001, until_s - time.monotonic()))
            more = visitor.recv(_TICKET_BYTES)
            if not more or time.monotonic() > until_s:
                return b""
            line += more
        return line
    return b""


def _start_aside(work: Callable[..., Result], *words: object) -> asyncio.Future[Result]:
    """Begin what may take hours, in a thread of its own, for which nobody waits when the process ends.

    Reading from a visitor, and hanging up, closes the open files that they have sent along.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def finish(result: Result) -> None:
        if not done.done():
            done.set_result(result)

    def run() -> None:
        result = work(*words)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, result)

    threading.Thread(target=run, name="door", daemon=True).start()
    return done


def _uid_of(visitor: socket.socket) -> int:
    """Return whose process has connected, by the kernel's word."""
    told = visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(told)[1]
    return uid
