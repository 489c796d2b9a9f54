"""The replay buffer of a cell's outputs: numbered, kept from the first on, sent again to a kernel that missed some.

Little stays in memory, more goes to a file. Where that is full, what the kernel has seen goes first; then the cell's
next print waits, as long as a kernel is there to read.
"""

import asyncio
import json
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bulletin.ids import CellId
from bulletin.wire.frames import Blob
from bulletin.wire.messages import Output
from gpu_worker.agent.spool import DiskShare, RingFile

#: How many bytes may wait for a kernel to see them. Beyond, the executor's pipe is not read, and the next print waits.
UNSEEN_LIMIT_BYTES = 32 * 2**20
#: A cell that has said less has no file.
_IN_MEMORY_BYTES = 64 * 1024
#: What each blob counts beside its bytes: there are not more of them than memory can list.
_OVERHEAD_BYTES = 256
#: What an output takes of the agent's memory, wherever its bytes are.
_LISTED_BYTES = 512


class _BufferedOutput(NamedTuple):
    """One output: where it lies in the file, or while it is not there, its blobs themselves."""

    cell: CellId
    type: str
    offset: int
    sizes: tuple[int, ...]
    blobs: tuple[bytes, ...] | None

    @property
    def cost_bytes(self) -> int:
        """What it takes of the buffer's limit. Its names count, which user code can make long."""
        return sum(self.sizes) + _OVERHEAD_BYTES * len(self.sizes) + len(self.type) + len(self.cell)


class _UnseenOutput(NamedTuple):
    number: int
    cost_bytes: int


class OutputBuffer:
    """One cell's outputs, from the first that is kept; or those of cells that have ended."""

    def __init__(self, cell: CellId | None, share: DiskShare, limit_bytes: int) -> None:
        """Keep the outputs of a cell, or of all that have ended if it is None; what is long goes to the disk."""
        self.cell = cell
        self._share, self._limit_bytes = share, max(limit_bytes, _IN_MEMORY_BYTES)
        self._outputs: deque[_BufferedOutput] = deque()
        #: The number of the first output in `_outputs`.
        self._first = 1
        self._bytes = 0
        #: Where in the file the next output will be written.
        self._end = 0
        self._file: RingFile | None = None
        #: Whose the last output was that had to go.
        self._last_dropped = cell or CellId("")
        #: Why outputs had to go.
        self._why_dropped = "nobody read them"
        self._unseen: deque[_UnseenOutput] = deque()
        self._unseen_bytes = 0
        self._has_reader = True
        self._is_released = False
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def last(self) -> int:
        """The number of the last output; 0 before the first."""
        return self._first + len(self._outputs) - 1

    @property
    def memory_bytes(self) -> int:
        """About how much of the agent's memory it takes."""
        in_memory = self._bytes if self._file is None else 0
        return in_memory + _LISTED_BYTES * len(self._outputs)

    def append(self, output: Output, blobs: Sequence[Blob]) -> Output:
        """Give an output its number and keep it, with all of its blobs: its content, and a comm's binary buffers.

        Raises
        ------
        OSError
            If the disk is full, or the user's share of it. The output is then numbered, and neither it nor what came
            before is kept.
        """
        copies = tuple(bytes(blob) for blob in blobs) or (b"{}",)
        numbered = Output(cell=self.cell or output.cell, type=output.type, seq=self.last + 1, late=self.cell is None)
        added = _BufferedOutput(numbered.cell, output.type, self._end, tuple(map(len, copies)), copies)
        self._unseen.append(_UnseenOutput(numbered.seq, added.cost_bytes))
        self._unseen_bytes += added.cost_bytes
        self._update_room()
        self._outputs.append(added)
        self._end += sum(added.sizes)
        self._bytes += added.cost_bytes
        while self._bytes > self._limit_bytes:
            self._drop_first()
        try:
            self._write_to_file()
        except OSError as error:
            self.close()
            self._first, self._bytes, self._end, self._last_dropped = numbered.seq + 1, 0, 0, numbered.cell
            self._why_dropped = error.strerror or str(error)
            raise
        return numbered

    def _write_to_file(self) -> None:
        """Move what is in memory to the file, once it is worth one."""
        if self._file is None:
            if self._bytes <= _IN_MEMORY_BYTES:
                return
            self._file = RingFile(self._share, self._limit_bytes)
            in_memory = range(len(self._outputs))
        else:  # all but the newest are there
            in_memory = range(max(0, len(self._outputs) - 1), len(self._outputs))
        for index in in_memory:
            output = self._outputs[index]
            self._file.write(output.offset, output.blobs or ())
            self._outputs[index] = output._replace(blobs=None)

    def _drop_first(self) -> None:
        dropped = self._outputs.popleft()
        self._bytes -= dropped.cost_bytes
        self._first += 1
        self._last_dropped = dropped.cell
        if self._unseen and self._unseen[0].number < self._first:  # nobody will see it
            self._unseen_bytes -= self._unseen.popleft().cost_bytes

    def mark_seen(self, number: int) -> None:
        """Take note that the kernel has the outputs up to this one: they stay kept, and no longer count as unseen."""
        while self._unseen and self._unseen[0].number <= number:
            self._unseen_bytes -= self._unseen.popleft().cost_bytes
        self._update_room()

    def after(self, seen: int) -> Iterator[tuple[Output, Sequence[Blob]]]:
        """Yield the outputs after number `seen`; first, where some were dropped, one that stands for all of those."""
        if seen + 1 < self._first:
            yield self._gap(seen)
        for number in range(max(seen + 1, self._first), self.last + 1):
            output = self._outputs[number - self._first]
            yield Output(cell=output.cell, type=output.type, seq=number, late=self.cell is None), self._blobs(output)

    def _blobs(self, output: _BufferedOutput) -> Sequence[Blob]:
        if output.blobs is not None:
            return output.blobs
        assert self._file is not None
        view = memoryview(self._file.read(output.offset, sum(output.sizes)))
        blobs: list[Blob] = []
        for size in output.sizes:
            blobs.append(view[:size])
            view = view[size:]
        return blobs

    def _gap(self, seen: int) -> tuple[Output, Sequence[Blob]]:
        count = self._first - 1 - seen
        text = f"bulletin: {count} outputs before this were not kept: {self._why_dropped}.\n"
        content = json.dumps({"name": "stderr", "text": text}).encode()
        return Output(cell=self._last_dropped, type="stream", seq=self._first - 1, late=self.cell is None), (content,)

    # --- room

    def set_has_reader(self, *, has_reader: bool) -> None:
        """Say whether a kernel is there. Where none is, nobody waits for room, and the oldest outputs go."""
        self._has_reader = has_reader
        self._update_room()

    def release(self) -> None:
        """Let nobody wait for room any more: the executor is ending."""
        self._is_released = True
        self._update_room()

    async def wait_for_room(self) -> None:
        """Wait until there is room for more."""
        await self._has_room.wait()

    def _update_room(self) -> None:
        is_full = self._unseen_bytes > min(UNSEEN_LIMIT_BYTES, self._limit_bytes // 2)
        if is_full and self._has_reader and not self._is_released:
            self._has_room.clear()
        else:
            self._has_room.set()

    def close(self) -> None:
        """Forget everything and give the file back."""
        self._outputs.clear()
        if self._file is not None:
            self._file.close()
            self._file = None
