"""The journal of a cell's outputs: numbered, kept until the kernel has seen them, sent again after a loss."""

import asyncio
from collections import deque
from collections.abc import Sequence

from bulletin.ids import CellId
from bulletin.wire.frames import Blob
from bulletin.wire.messages import Output

#: What may wait for a kernel to see it. Beyond, the executor's pipe is not read, and the cell's next print waits.
ROOM_BYTES = 32 * 2**20


class Journal:
    """One cell's outputs, from the first that its kernel has not seen; or those of cells that have ended."""

    def __init__(self, cell: CellId | None) -> None:
        """Without a cell, of those that have ended."""
        self.cell = cell
        self._last = 0
        self._kept: deque[tuple[int, Output, Sequence[Blob], int]] = deque()
        self._bytes = 0
        self._room = asyncio.Event()
        self._room.set()

    def append(self, output: Output, blobs: Sequence[Blob]) -> Output:
        """Number an output and keep it."""
        self._last += 1
        cell = self.cell or output.cell
        numbered = Output(cell=cell, type=output.type, seq=self._last, late=self.cell is None)
        size = sum(memoryview(blob).nbytes for blob in blobs) + 256
        self._kept.append((self._last, numbered, blobs, size))
        self._bytes += size
        if self._bytes > ROOM_BYTES:
            self._room.clear()
        return numbered

    def seen(self, seq: int) -> None:
        """Forget what the kernel has."""
        while self._kept and self._kept[0][0] <= seq:
            self._bytes -= self._kept.popleft()[3]
        if self._bytes <= ROOM_BYTES:
            self._room.set()

    def after(self, seq: int) -> list[tuple[Output, Sequence[Blob]]]:
        """What a kernel that has seen `seq` outputs has missed."""
        return [(output, blobs) for number, output, blobs, _ in self._kept if number > seq]

    def release(self) -> None:
        """Wait no more: the executor is ending."""
        self._bytes = -(2**62)
        self._room.set()

    async def room(self) -> None:
        """Wait until there is room for more."""
        await self._room.wait()
