"""What is left in the pipes of an executor that is gone, read by a thread that may wait for ever.

Who writes to a pipe from memory that does not come holds the pipe's lock meanwhile. Whoever reads it then waits in the
kernel, whatever its flags are, and so does the last one that closes it. An executor can pass its pipes to another one
of its user, which lives on and does that.
"""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

from bulletin.ids import UserName

#: So much of what C code wrote last is read at most: a tenant can make a pipe larger than it is.
_MOST_BYTES = 2**17
#: So long an agent waits for it; and longer than that it takes only where somebody holds the pipe.
_WAIT_S = 1.0
_HELD_S = 0.5


class PipeRests:
    """What the agent has of one executor's pipes, which `read` or `close` closes."""

    _finishing: ClassVar[list["PipeRests"]] = []

    def __init__(self, user: UserName, readers: Mapping[str, int], others: Sequence[int]) -> None:
        """Take readers, which do not block, of a user's executor by name, and what else is to be closed with them."""
        self._user, self._readers, self._others = user, dict(readers), tuple(others)
        self._found: list[tuple[str, str]] = []
        self._began_s = 0.0
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_read = asyncio.Event()

    @classmethod
    def is_held_up(cls, user: UserName) -> bool:
        """Tell whether a thread waits for a pipe of this user. Who gives it another one lets threads grow in number."""
        latest_s = time.monotonic() - _HELD_S
        return any(one._user == user and one._began_s < latest_s for one in cls._finishing)

    async def read(self) -> list[tuple[str, str]]:
        """Read what there is, once, as names with texts; what has not come within a second is left out."""
        self._loop = asyncio.get_running_loop()
        if self._finish():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    await self._is_read.wait()
        return list(self._found)

    def close(self) -> None:
        """Give them back, if `read` has not done so."""
        self._finish()

    def _finish(self) -> bool:
        if self._thread is not None or not self._readers:
            return False
        self._began_s = time.monotonic()
        # A daemon: nobody can end it, and a pool of threads would run out of them.
        self._thread = threading.Thread(target=self._read_and_close, name="pipe-rests", daemon=True)
        self._thread.start()
        return True

    def _read_and_close(self) -> None:
        self._finishing.append(self)
        try:
            for name, reader in self._readers.items():
                if self._loop is not None and (text := _read_rest(reader).decode("utf-8", "replace")):
                    self._found.append((name, text))
            for descriptor in (*self._readers.values(), *self._others):
                os.close(descriptor)
        finally:
            self._finishing.remove(self)
            if self._loop is not None:
                with contextlib.suppress(RuntimeError):  # the agent has ended meanwhile
                    self._loop.call_soon_threadsafe(self._is_read.set)


def _read_rest(reader: int) -> bytes:
    data = b""
    while len(data) < _MOST_BYTES:
        try:
            piece = os.read(reader, _MOST_BYTES)
        except BlockingIOError:
            break
        if not piece:
            break
        data += piece
    return data
