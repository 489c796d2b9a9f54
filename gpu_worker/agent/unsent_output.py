"""What an executor has written and not sent when it dies: the agent has the other ends of where that lies.

What is printed lies in memory (`UnsentText`); what C code and programs write lies in pipes in the place of the
descriptors 1 and 2, of which the executor reads while it lives.
"""

import asyncio
import fcntl
import os

from gpu_worker.executor.unsent_text import AREA_BYTES, STREAM_NAMES, read_texts

#: So much of what C code wrote last is read at most: a tenant can make a pipe larger than it is.
_MOST_BYTES = 2**17
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class UnsentOutput:
    """Made for one executor, and passed to it; read once, when no process of it is left."""

    def __init__(self) -> None:
        memory = os.memfd_create("bulletin-unsent", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(memory, AREA_BYTES)
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _SEALS)
        self._readers: dict[str, int] = {}
        #: What the executor gets: the memory, and of each pipe both ends.
        self.descriptors: tuple[int, ...] = (memory,)
        for name in STREAM_NAMES.values():
            ends = os.pipe()
            os.set_blocking(ends[0], False)
            # One of its own: a tenant can make that which the executor gets one that waits for ever.
            self._readers[name] = os.open(f"/proc/self/fd/{ends[0]}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self.descriptors += ends
        #: The number of the last text that has come.
        self.received = 0

    async def read(self) -> list[tuple[str, str]]:
        """Read what has not come, as names of streams with their texts; what was printed before what C code wrote."""
        return await asyncio.to_thread(self._read)  # who holds a pipe open elsewhere may hold its reader up

    def _read(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        area = os.pread(self.descriptors[0], AREA_BYTES, 0) if self.descriptors else b""
        for one in read_texts(area, self.received):
            before = found.pop()[1] if found and found[-1][0] == one.stream else ""
            found.append((one.stream, before + one.text))
        for name, reader in self._readers.items():
            if text := _read_rest(reader).decode("utf-8", "replace"):
                found.append((name, text))
        return found

    def close(self) -> None:
        """Give all of it back."""
        held, self.descriptors, self._readers = (*self.descriptors, *self._readers.values()), (), {}
        for descriptor in held:
            os.close(descriptor)


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
