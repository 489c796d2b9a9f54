"""Digests of the blocks of large memory: of which it is certain that nobody has written to them are not made again."""

import xxhash

from . import write_watch
from .page_scan import PAGE_BYTES
from .write_watch import WatchedSpan

BLOCK_BYTES = 1 << 20
DIGEST_BYTES = 16
#: Where more than one block in so many was written, hashing all of them takes less than watching.
_FEW = 4
#: How many times memory is hashed, at most, before it is watched again.
_LONGEST_PAUSE = 64


def digests_of(view: memoryview) -> bytes:
    """Compute sixteen bytes for each block: xxh3_128, which finds accidents and trusts the peer."""
    return b"".join(
        xxhash.xxh3_128_digest(view[start : start + BLOCK_BYTES]) for start in range(0, view.nbytes, BLOCK_BYTES)
    )


class BlockDigests:
    """The digests of one range of memory, time after time.

    The range is watched once it is asked about a second time, and as long as few of its blocks are written in between.
    """

    __slots__ = ("_known", "_next_pause", "_number", "_pause", "_span")

    def __init__(self) -> None:
        self._known = b""
        self._span: WatchedSpan | None = None
        self._number = 0  # of the last write that is in the digests
        self._pause, self._next_pause = 0, 2

    def expect(self, digests: bytes) -> None:
        """Note what somebody else has computed: the next time is the second that the memory is asked about."""
        if self._span is None:
            self._known = digests

    def compute(self, view: memoryview, address: int) -> bytes:
        """Return the digests of memory as it is now. `view` is of all of it, and begins at `address`."""
        if view.nbytes < write_watch.LEAST_BYTES:
            return digests_of(view)
        before, written = self._known, self._written(address, view.nbytes)
        if written is None:
            self._known = digests_of(view)
        elif written:
            digests = bytearray(before)
            for block in written:
                start = block * BLOCK_BYTES
                digest = xxhash.xxh3_128_digest(view[start : start + BLOCK_BYTES])
                digests[block * DIGEST_BYTES : (block + 1) * DIGEST_BYTES] = digest
            self._known = bytes(digests)
        if self._span is not None and self._known != before:
            self._end_if_busy(before)
        return self._known

    def _written(self, address: int, size: int) -> list[int] | None:
        """List the blocks that may have been written; None where that is not known. Begins to watch, if it is time."""
        number, self._number = self._number, 0
        if self._span is not None and write_watch.of_process.look(self._span):
            self._number = self._span.number  # read first: a write that another thread finds now may come twice
            written = set(self._span.written_since(number))
            return sorted(written | _edges(address, size))
        self._span = None
        if self._pause:
            self._pause -= 1
        elif self._known:
            self._span = write_watch.of_process.begin(address, size, BLOCK_BYTES)
            self._number = self._span.number if self._span is not None else 0
        return None

    def _end_if_busy(self, before: bytes) -> None:
        """Stop watching what is written all over: that costs the writer more than hashing costs us."""
        pairs = (slice(start, start + DIGEST_BYTES) for start in range(0, len(before), DIGEST_BYTES))
        changed = sum(before[pair] != self._known[pair] for pair in pairs)
        if self._span is not None and changed * _FEW * DIGEST_BYTES > len(before):
            write_watch.of_process.end(self._span)
            self._span = None
            self._pause, self._next_pause = self._next_pause, min(2 * self._next_pause, _LONGEST_PAUSE)


def _edges(address: int, size: int) -> set[int]:
    """List the blocks with a part of a page that is not watched, since something else is in it as well."""
    first = {0} if address % PAGE_BYTES else set()
    return first | ({(size - 1) // BLOCK_BYTES} if (address + size) % PAGE_BYTES else set())
