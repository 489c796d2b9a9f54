"""The results of a cell on their way to its kernel: begun again after a loss, and kept where nobody takes them.

They come out of the executor in rounds. While the kernel is there each chunk is passed on, or goes through shared
memory. A kernel that comes back after a lost connection gets them from their start, in another round. Where none comes
back, a round goes into a file of the agent's, so that the executor is free: what was sent in a round before is void.
"""

import asyncio
import mmap
import os
import weakref
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import structs

from bulletin.errors import MalformedMessage
from bulletin.wire import messages as wire
from bulletin.wire.blobs import Sender
from bulletin.wire.frames import Blob
from gpu_worker.agent.spool import open_spool

Tell = Callable[[wire.Message, Sequence[Blob]], Awaitable[None]]
Ask = Callable[[wire.Return | wire.Took], None]


class Results:
    """What one cell has handed back."""

    def __init__(
        self, ended: wire.Ended, blobs: Sequence[Blob], folder: Path, tell: Tell, ask: Ask, draw: Callable[[], int]
    ) -> None:
        """`tell` reaches the kernel, if one is there, and `ask` the executor. `draw` numbers rounds."""
        self.ended, self._blobs = ended, blobs
        self._folder, self._tell, self._ask = folder, tell, ask
        self._left = self._total = 0 if ended.parcel.inline else sum(ended.parcel.sizes)
        self._draw, self.round = draw, ended.round
        #: Chunks that the kernel was sent and has not taken in.
        self._untaken = 0
        self._file: int | None = None
        self._kept: mmap.mmap | None = None
        self._sender: Sender | None = None
        self._is_awaited = False
        self._closer: Callable[[], object] = lambda: None

    @property
    def is_out(self) -> bool:
        """Whether the last byte has left the executor."""
        return self._left <= 0

    @property
    def is_safe(self) -> bool:
        """Whether they need the executor no more: the kernel has them, or the agent."""
        return self.ended.parcel.inline or self._kept is not None or (self.is_out and self._untaken <= 0)

    async def tell(self) -> None:
        """Tell the kernel that its cell has ended."""
        await self._tell(structs.replace(self.ended, round=self.round), self._blobs)

    async def again(self, *, has_rings: bool) -> None:
        """A kernel is there, for the first time or again: all of it, from the start."""
        self._is_awaited = True
        if self.ended.parcel.inline:
            await self.tell()
        elif self._kept is not None:
            await self._send_kept()
        elif self._file is None:
            self._begin(has_rings=has_rings)
            await self.tell()

    def keep(self) -> None:
        """No kernel is there: take them into a file. Raises OSError where there is no room for them."""
        if self._file is None and not self.is_safe:
            self.take_in()
            self._begin(has_rings=False)

    def take_in(self) -> None:
        """From now on, chunks go into a file. Raises OSError where the disk has no room for them."""
        if self.is_safe:
            return
        try:
            self._file = open_spool(self._folder)
            self._closer = weakref.finalize(self, os.close, self._file)
            os.posix_fallocate(self._file, 0, self._total)
        except OSError:
            self._drop_file()
            raise
        self._is_awaited = False

    def _begin(self, *, has_rings: bool) -> None:
        self.round = self._draw()
        self._left, self._untaken = self._total, 0
        self._ask(wire.Return(cell=self.ended.cell, round=self.round, has_rings=has_rings))

    def began(self, ended: wire.Ended) -> None:
        """The executor begins a round. Raises MalformedMessage if it is not the one that ended."""
        if ended.parcel != self.ended.parcel:
            raise MalformedMessage("results that come again are others than before")

    async def chunk(self, chunk: wire.Chunk, blobs: Sequence[Blob]) -> None:
        """The executor sent a piece. Raises MalformedMessage if there are too many; OSError when the disk fails."""
        if chunk.round != self.round:
            return  # of a round that was given up
        at = self._total - self._left
        self._left -= chunk.size
        if chunk.size <= 0 or self._left < 0:
            raise MalformedMessage("more results than there should be")
        if self._file is None:
            self._untaken += 1
            await self._tell(chunk, blobs)
            return
        if sum(memoryview(blob).nbytes for blob in blobs) != chunk.size:
            raise MalformedMessage("a chunk of another size than it says")
        await asyncio.to_thread(_write, self._file, at, blobs)
        self._ask(wire.Took(cell=chunk.cell, round=chunk.round))
        if self.is_out:
            self._kept = mmap.mmap(self._file, self._total, access=mmap.ACCESS_READ)
            if self._is_awaited:
                await self._send_kept()

    async def took(self, took: wire.Took) -> None:
        """The kernel took a chunk in."""
        if took.round != self.round:
            return
        if self._sender is not None:
            self._sender.took()
            await self._pump(self._sender)
        elif self._file is None and self._untaken > 0:
            self._untaken -= 1
            self._ask(took)

    async def _send_kept(self) -> None:
        assert self._kept is not None
        self.round = self._draw()
        view, parts = memoryview(self._kept), []
        for size in self.ended.parcel.sizes:
            parts.append(view[:size])
            view = view[size:]
        self._sender = Sender(self.ended.cell, parts, None, self.round)
        await self.tell()
        await self._pump(self._sender)

    async def _pump(self, sender: Sender) -> None:
        for chunk, pieces in sender.ready():
            await self._tell(chunk, pieces)

    def _drop_file(self) -> None:
        self._closer()
        self._file = None

    def close(self) -> None:
        """Forget them."""
        self.round = -1
        self._blobs, self._sender, self._kept = (), None, None  # pieces that are under way hold on to the file's memory
        self._drop_file()


def _write(file: int, at: int, blobs: Sequence[Blob]) -> None:
    for blob in blobs:
        view = memoryview(blob).cast("B")
        while view:
            written = os.pwrite(file, view, at)
            view, at = view[written:], at + written
