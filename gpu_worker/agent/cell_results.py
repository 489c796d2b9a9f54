"""The results of a cell on their way to its kernel: begun again after a loss, and kept where nobody takes them.

They come out of the executor in rounds. While the kernel is there each chunk is passed on, or goes through shared
memory. A kernel that comes back after a lost connection gets them from their start, in another round. Where none comes
back, a round goes into a file of the agent's, so that the executor is free: what was sent in a round before is void.
"""

import asyncio
import mmap
from collections.abc import Awaitable, Callable, Sequence

from msgspec import structs

from bulletin.errors import MalformedMessage
from bulletin.wire import messages as wire
from bulletin.wire.blobs import WINDOW, Sender
from bulletin.wire.frames import Blob
from gpu_worker.agent.spool import DiskShare, SpoolFile

#: What the size of one part takes of memory: a number in a list. And a text, beside its letters.
_SIZE_BYTES, _TEXT_BYTES = 40, 64

#: Sends a message to the kernel, if one is there.
Tell = Callable[[wire.Message, Sequence[Blob]], Awaitable[None]]
#: Sends a request or an acknowledgement to the executor.
Ask = Callable[[wire.Return | wire.Took], None]


class CellResults:
    """What one cell has handed back."""

    def __init__(
        self,
        ended: wire.Ended,
        blobs: Sequence[Blob],
        share: DiskShare,
        tell: Tell,
        ask: Ask,
        draw_round: Callable[[], int],
    ) -> None:
        """Take the head of the first round (`ended` and its blobs), and what numbers the later ones (`draw_round`)."""
        self.ended, self._blobs = ended, blobs
        self._share, self._tell, self._ask, self._draw_round = share, tell, ask, draw_round
        self.total_bytes = 0 if ended.parcel.inline else sum(ended.parcel.sizes)
        #: In all rounds together.
        self.received_bytes = 0
        #: Bytes of this round that have not left the executor.
        self._remaining_bytes = self.total_bytes
        self.round = ended.round
        #: Chunks that the kernel was sent and has not taken in.
        self._unacknowledged = 0
        self._file: SpoolFile | None = None
        #: The whole file, once everything is in it.
        self._stored: mmap.mmap | None = None
        #: Of what is stored.
        self._sender: Sender | None = None
        #: A kernel has come since a file was opened: it gets them when all is there.
        self._is_kernel_waiting = False

    @property
    def is_out(self) -> bool:
        """Whether the last byte has left the executor."""
        return self._remaining_bytes <= 0

    @property
    def is_owed(self) -> bool:
        """Whether the executor's next piece is waited for, and not what is done with those that have come."""
        return not self.is_out and (self._file is not None or self._unacknowledged < WINDOW)

    @property
    def is_safe(self) -> bool:
        """Whether they need the executor no more: the kernel has them, or the agent."""
        return self.ended.parcel.inline or self._stored is not None or (self.is_out and self._unacknowledged <= 0)

    @property
    def memory_bytes(self) -> int:
        """About how much of the agent's memory is what tells of them, and what came with that."""
        error = self.ended.error
        texts = () if error is None else (error.name, error.value, *error.traceback)
        said = sum(_TEXT_BYTES + len(text) for text in texts)
        inline = sum(memoryview(blob).nbytes for blob in self._blobs)
        return said + inline + _SIZE_BYTES * len(self.ended.parcel.sizes)

    async def tell(self) -> None:
        """Tell the kernel that its cell has ended."""
        await self._tell(structs.replace(self.ended, round=self.round), self._blobs)

    async def send_again(self, *, has_rings: bool) -> None:
        """Send a kernel that is there, for the first time or again, all of it from the start."""
        self._is_kernel_waiting = True
        if self.ended.parcel.inline:
            await self.tell()
        elif self._stored is not None:
            await self._send_stored()
        elif self._file is None:
            self._request_round(has_rings=has_rings)
            await self.tell()

    def keep(self, *, for_kernel: bool = False) -> None:
        """Have them sent into a file: no kernel is there, or (`for_kernel`) one that gets them from the file.

        Raises OSError where there is no room for them.
        """
        if self._file is None and not self.is_safe:
            self.take_in()
            self._is_kernel_waiting = for_kernel
            self._request_round(has_rings=False)

    def take_in(self) -> None:
        """Begin to write chunks into a file. Raises OSError where the user's share, or the disk, has no room."""
        if self.is_safe:
            return
        # Not taken ahead: so many bytes are no more than what the executor says, which user code can forge.
        self._share.check_room(self.total_bytes)
        self._file = SpoolFile(self._share)
        self._is_kernel_waiting = False

    def _request_round(self, *, has_rings: bool) -> None:
        self.round = self._draw_round()
        self._remaining_bytes, self._unacknowledged = self.total_bytes, 0
        self._ask(wire.Return(cell=self.ended.cell, round=self.round, has_rings=has_rings))

    def check_round(self, ended: wire.Ended) -> None:
        """Raise MalformedMessage if the executor begins a round of other results than those that it first had."""
        if ended.parcel != self.ended.parcel:
            raise MalformedMessage("results that come again are others than before")

    async def receive(self, chunk: wire.Chunk, blobs: Sequence[Blob]) -> None:
        """Pass on a piece that the executor sent, or store it.

        Raises MalformedMessage if there are too many; OSError when the disk fails.
        """
        if chunk.round != self.round:
            return  # of a round that was given up
        offset = self.total_bytes - self._remaining_bytes
        self._remaining_bytes -= chunk.size
        self.received_bytes += max(0, chunk.size)
        if chunk.size <= 0 or self._remaining_bytes < 0:
            raise MalformedMessage("more results than there should be")
        if self._file is None:
            self._unacknowledged += 1
            await self._tell(chunk, blobs)
            return
        if sum(memoryview(blob).nbytes for blob in blobs) != chunk.size:
            raise MalformedMessage("a chunk of another size than it says")
        try:
            self._file.reserve(offset + chunk.size)
            await asyncio.to_thread(_write, self._file, offset, blobs)
        except OSError:
            self.round = -1  # the executor still has them, for a kernel that asks
            self._drop_file()
            raise
        self._ask(wire.Took(cell=chunk.cell, round=chunk.round))
        if self.is_out:
            self._stored = mmap.mmap(self._file.number, self.total_bytes, access=mmap.ACCESS_READ)
            if self._is_kernel_waiting:
                await self._send_stored()

    async def acknowledge(self, took: wire.Took) -> None:
        """Take note that the kernel took a chunk in, and let the next one come."""
        if took.round != self.round:
            return
        if self._sender is not None:
            self._sender.took()
            await self._send_ready(self._sender)
        elif self._file is None and self._unacknowledged > 0:
            self._unacknowledged -= 1
            self._ask(took)

    async def _send_stored(self) -> None:
        assert self._stored is not None
        self.round = self._draw_round()
        view, parts = memoryview(self._stored), []
        for size in self.ended.parcel.sizes:
            parts.append(view[:size])
            view = view[size:]
        self._sender = Sender(self.ended.cell, parts, None, self.round)
        await self.tell()
        await self._send_ready(self._sender)

    async def _send_ready(self, sender: Sender) -> None:
        for chunk, pieces in sender.ready():
            await self._tell(chunk, pieces)

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Forget the results, and give their file back."""
        self.round = -1
        # Pieces that are under way keep the file's memory mapped.
        self._blobs, self._sender, self._stored = (), None, None
        self._drop_file()


def _write(file: SpoolFile, offset: int, blobs: Sequence[Blob]) -> None:
    for blob in blobs:
        file.write(offset, blob)
        offset += memoryview(blob).nbytes
