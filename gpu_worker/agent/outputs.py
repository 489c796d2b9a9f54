"""The journal of a cell's outputs: numbered, kept from the first on, sent again after a loss or to another kernel.

Little stays in memory, more goes to a file. Where that is full, what the kernel has seen goes first; then the cell's
next print waits, as long as a kernel is there to read.
"""

import asyncio
import json
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bulletin.ids import CellId
from bulletin.wire.frames import Blob
from bulletin.wire.messages import Output
from gpu_worker.agent.spool import Ring

#: What may wait for a kernel to see it. Beyond, the executor's pipe is not read, and the cell's next print waits.
ROOM_BYTES = 32 * 2**20
#: A cell that has said less has no file.
_IN_MEMORY = 64 * 1024
#: What each output counts beside its bytes: there are not more of them than memory can list.
_EACH = 256


class _Entry(NamedTuple):
    cell: CellId
    type: str
    at: int
    size: int
    data: Blob | None  # while there is no file


class Journal:
    """One cell's outputs, from the first that is kept; or those of cells that have ended."""

    def __init__(self, cell: CellId | None, folder: Path, limit: int) -> None:
        """Without a cell, of those that have ended. `limit` is what may be kept, in bytes."""
        self.cell = cell
        self._folder, self._limit = folder, max(limit, _IN_MEMORY)
        self._kept: deque[_Entry] = deque()
        self._first = 1  # the number of the first that is kept
        self._bytes = 0
        self._end = 0  # where the next will be written
        self._file: Ring | None = None
        self._unseen: deque[tuple[int, int]] = deque()  # number and size
        self._unseen_bytes = 0
        self._is_read = True
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._closer: Callable[[], object] = lambda: None

    @property
    def last(self) -> int:
        """The number of the last output; 0 before the first."""
        return self._first + len(self._kept) - 1

    def append(self, output: Output, blobs: Sequence[Blob]) -> Output:
        """Number an output and keep it. Raises OSError if the disk is full; it is then numbered and not kept."""
        data = bytes(blobs[0]) if blobs else b"{}"
        cell = self.cell or output.cell
        numbered = Output(cell=cell, type=output.type, seq=self.last + 1, late=self.cell is None)
        size = len(data) + _EACH
        self._unseen.append((numbered.seq, size))
        self._unseen_bytes += size
        self._say_room()
        self._kept.append(_Entry(cell, output.type, self._end, len(data), data))
        self._end += len(data)
        self._bytes += size
        while self._bytes > self._limit:
            self._forget_first()
        try:
            self._put_away()
        except OSError:
            self._kept.clear()
            self._first, self._bytes = numbered.seq + 1, 0
            raise
        return numbered

    def _put_away(self) -> None:
        """Move what is in memory to the file, once it is worth one."""
        if self._file is None:
            if self._bytes <= _IN_MEMORY:
                return
            self._file = Ring(self._folder, self._limit)
            self._closer = weakref.finalize(self, self._file.close)
            waiting = range(len(self._kept))
        else:
            waiting = range(len(self._kept) - 1, len(self._kept))
        for index in waiting:
            entry = self._kept[index]
            if entry.data is not None:
                self._file.write(entry.at, entry.data)
                self._kept[index] = entry._replace(data=None)

    def _forget_first(self) -> None:
        self._bytes -= self._kept.popleft().size + _EACH
        self._first += 1
        if self._unseen and self._unseen[0][0] < self._first:  # nobody will see it
            self._unseen_bytes -= self._unseen.popleft()[1]

    def seen(self, seq: int) -> None:
        """The kernel has so many."""
        while self._unseen and self._unseen[0][0] <= seq:
            self._unseen_bytes -= self._unseen.popleft()[1]
        self._say_room()

    def after(self, seq: int) -> Iterator[tuple[Output, Sequence[Blob]]]:
        """What a kernel that has seen `seq` outputs has missed; first, one that stands for all that are gone."""
        if seq + 1 < self._first:
            yield self._gap(seq)
        for number in range(max(seq + 1, self._first), self.last + 1):
            entry = self._kept[number - self._first]
            data = entry.data
            if data is None:
                assert self._file is not None
                data = self._file.read(entry.at, entry.size)
            yield Output(cell=entry.cell, type=entry.type, seq=number, late=self.cell is None), (data,)

    def _gap(self, seq: int) -> tuple[Output, Sequence[Blob]]:
        count = self._first - 1 - seq
        text = f"bulletin: {count} outputs before this were not kept: nobody read them.\n"
        content = json.dumps({"name": "stderr", "text": text}).encode()
        cell = self.cell or self._kept[0].cell  # what is gone is older than something that is kept
        return Output(cell=cell, type="stream", seq=self._first - 1, late=self.cell is None), (content,)

    # --- room

    def read(self, *, is_read: bool) -> None:
        """Whether a kernel is there. Where none is, nobody waits, and the oldest outputs go."""
        self._is_read = is_read
        self._say_room()

    def release(self) -> None:
        """Wait no more: the executor is ending."""
        self._unseen_bytes = -(2**62)
        self._say_room()

    async def room(self) -> None:
        """Wait until there is room for more."""
        await self._has_room.wait()

    def _say_room(self) -> None:
        if self._is_read and self._unseen_bytes > min(ROOM_BYTES, self._limit // 2):
            self._has_room.clear()
        else:
            self._has_room.set()

    def close(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self._closer()
