"""Bulk bytes: a stream and its buffers as one sequence of chunks, through blobs or a ring of shared memory.

A sender may have `WINDOW` chunks under way; each Took lets it send one more. So memory is bounded at every hop. On one
host the chunk's bytes go through a ring that both ends have mapped (a sealed memfd: neither end can shrink it under
the other); the messages then carry places in the ring, and the agent between the two sees no byte.
"""

import ctypes
import fcntl
import mmap
import os
from collections.abc import Iterator, Sequence

from bulletin.errors import MalformedMessage
from bulletin.ids import CellId
from bulletin.wire.frames import Blob
from bulletin.wire.messages import Chunk, Parcel

CHUNK = 2 * 2**20
WINDOW = 8
RING = CHUNK * WINDOW
#: Parcels up to this size travel inside their message.
INLINE_LIMIT = 256 * 1024
#: More parts than this would be more blobs than a message may have.
_INLINE_PARTS = 1024
#: What one cell may carry each way.
PARCEL_LIMIT = 256 * 2**30
#: From here on, memory is asked of the system directly and in huge pages: 4 KB pages cost 5 times more to touch first.
_HUGE = 4 * 2**20


def make_ring() -> int:
    """Make a descriptor of `RING` bytes of shared memory that nobody can resize."""
    ring = os.memfd_create("bulletin-ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(ring, RING)
    fcntl.fcntl(ring, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return ring


def map_ring(ring: int) -> mmap.mmap:
    """Map a ring that came through a door. Raises ValueError if it is not one."""
    seals = fcntl.fcntl(ring, fcntl.F_GET_SEALS)
    if os.fstat(ring).st_size != RING or not seals & fcntl.F_SEAL_SHRINK:
        raise ValueError("the descriptor is not a ring")
    return mmap.mmap(ring, RING)


def allocate(size: int) -> Blob:
    """Return writable memory for one buffer, quick to touch for the first time."""
    if size < _HUGE:
        return bytearray(size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def describe(parts: Sequence[Blob]) -> Parcel:
    """Describe these parts as a parcel: in the message itself where they are small."""
    sizes = tuple(memoryview(part).nbytes for part in parts)
    return Parcel(sizes=sizes, inline=sum(sizes) <= INLINE_LIMIT and len(sizes) <= _INLINE_PARTS)


def check(parcel: Parcel, limit: int = PARCEL_LIMIT) -> None:
    """Raise MalformedMessage for a parcel that no honest peer describes: a negative size, or too many bytes."""
    total = sum(parcel.sizes)
    if min(parcel.sizes, default=0) < 0 or total > limit:
        raise MalformedMessage(f"a parcel of {total} bytes, at most {limit} allowed")
    if parcel.inline and total > INLINE_LIMIT:
        raise MalformedMessage(f"an inline parcel of {total} bytes, at most {INLINE_LIMIT} allowed")


def _copy(target: memoryview, source: memoryview) -> None:
    """Copy while other threads run, which slice assignment does not allow."""
    size = source.nbytes
    if size < 65536:
        target[:size] = source
        return
    to = ctypes.addressof(ctypes.c_char.from_buffer(target))
    try:
        ctypes.memmove(to, ctypes.addressof(ctypes.c_char.from_buffer(source)), size)
    except (
        TypeError
    ):  # a read-only source has no from_buffer; PyObject_GetBuffer through a bytes-like copy would be slower
        target[:size] = source


class Sender:
    """Cuts a parcel into chunks. Its owner sends each chunk that `ready` yields, and reports each Took."""

    def __init__(self, cell: CellId, parts: Sequence[Blob], ring: mmap.mmap | None, number: int = 0) -> None:
        """Start to send. `number` is that of the sending, where parts are sent more than once."""
        self._cell, self._ring, self.round = cell, ring, number
        self._parts = [memoryview(part).cast("B") for part in parts if memoryview(part).nbytes]
        self._window = WINDOW
        self._sent = 0

    @property
    def is_done(self) -> bool:
        """Whether everything has been handed out (not: taken in)."""
        return not self._parts

    def took(self) -> None:
        """Count one chunk that the other side took in: another may follow."""
        self._window += 1

    def ready(self) -> Iterator[tuple[Chunk, list[Blob]]]:
        """Cut the chunks that may be sent now, each with its pieces."""
        while self._window > 0 and self._parts:
            pieces = self._cut()
            size = sum(piece.nbytes for piece in pieces)
            self._window -= 1
            if self._ring is None:
                yield Chunk(cell=self._cell, size=size, round=self.round), list(pieces)
            else:
                at = (self._sent % WINDOW) * CHUNK
                target = memoryview(self._ring)[at : at + CHUNK]
                for piece in pieces:
                    _copy(target, piece)
                    target = target[piece.nbytes :]
                yield Chunk(cell=self._cell, size=size, at=at, round=self.round), []
            self._sent += 1

    def _cut(self) -> list[memoryview]:
        pieces: list[memoryview] = []
        room = CHUNK
        while room and self._parts and len(pieces) < _INLINE_PARTS:
            part = self._parts[0]
            pieces.append(part[:room])
            room -= pieces[-1].nbytes
            if part.nbytes > pieces[-1].nbytes:
                self._parts[0] = part[pieces[-1].nbytes :]
            else:
                self._parts.pop(0)
        return pieces


class Receiver:
    """Takes a parcel in, chunk by chunk, into memory of its own."""

    def __init__(
        self, parcel: Parcel, blobs: Sequence[Blob], ring: mmap.mmap | None, limit: int = PARCEL_LIMIT
    ) -> None:
        """Receive a parcel. Raises MalformedMessage for absurd sizes, MemoryError where it does not fit here."""
        check(parcel, limit)
        self._ring = ring
        if parcel.inline:
            if tuple(memoryview(blob).nbytes for blob in blobs) != parcel.sizes:
                raise MalformedMessage("the blobs are not of the sizes that the parcel says")
            self.parts: list[Blob] = [blob if isinstance(blob, bytearray) else bytearray(blob) for blob in blobs]
            self._open: list[memoryview] = []
        else:
            try:
                self.parts = [allocate(size) for size in parcel.sizes]
            except OSError as error:
                raise MemoryError(f"no memory for {sum(parcel.sizes)} bytes of state") from error
            self._open = [memoryview(part).cast("B") for part in self.parts if memoryview(part).nbytes]

    @property
    def is_done(self) -> bool:
        """Whether every byte is here, in `parts`."""
        return not self._open

    def take(self, chunk: Chunk, blobs: Sequence[Blob]) -> None:
        """Take a chunk in; answer it with Took. Raises MalformedMessage if it does not fit."""
        if chunk.at is None:
            pieces = [memoryview(blob).cast("B") for blob in blobs]
        elif self._ring is None or chunk.at < 0 or not 0 <= chunk.size <= CHUNK or chunk.at + chunk.size > RING:
            raise MalformedMessage("a chunk outside of the ring")
        else:
            pieces = [memoryview(self._ring)[chunk.at : chunk.at + chunk.size]]
        if sum(piece.nbytes for piece in pieces) != chunk.size:
            raise MalformedMessage("a chunk of another size than it says")
        for piece in pieces:
            self._pour(piece)

    def _pour(self, piece: memoryview) -> None:
        while piece:
            if not self._open:
                raise MalformedMessage("more bytes than the parcel has")
            target = self._open[0]
            size = min(target.nbytes, piece.nbytes)
            _copy(target[:size], piece[:size])
            piece = piece[size:]
            if size < target.nbytes:
                self._open[0] = target[size:]
            else:
                self._open.pop(0)
