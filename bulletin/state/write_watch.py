"""Which blocks of large memory may have been written since somebody looked: asked of the kernel, where it knows.

One watch for a process. Several tables may look at the same memory, each at its own time: a write has a number, drawn
from a counter, and whoever looks compares it with the number at which it looked last.

The rule that makes it right: memory is protected first and read afterwards. So a write that the reader may have missed
is among those that the next look finds.
"""

import os
import threading
import weakref
from collections.abc import Iterable

from . import page_scan, pinned_memory
from .page_scan import PAGE_BYTES, PageScan

#: Smaller memory is hashed sooner than asked about.
LEAST_BYTES = 8 << 20
#: Each watched range splits a mapping of the process, of which there may be 65,530.
_MOST_SPANS = 512


class WatchedSpan:
    """A range of whole pages that is watched, with the number of the last write to each of its blocks."""

    def __init__(self, start: int, end: int, block_bytes: int, origin: int) -> None:
        """`origin` is where the first block begins: before the first whole page, or with it."""
        self.start, self.end = start, end
        self._block_bytes, self._origin = block_bytes, origin
        #: The number of the last write found, and that of each block.
        self.number = 0
        self._written = [0] * (-(-(end - origin) // block_bytes))
        self.is_watched = True
        #: What the watch does when nobody looks at the span any more.
        self.ended: weakref.finalize[..., WatchedSpan] | None = None

    def is_of(self, address: int, block_bytes: int) -> bool:
        """Tell whether its blocks are these."""
        return self._origin == address and self._block_bytes == block_bytes

    def note(self, ranges: Iterable[tuple[int, int]]) -> bool:
        """Give a number to the writes to these ranges; tell whether there were any."""
        number, written = self.number + 1, self._written
        for low, high in ranges:
            self.number = number
            first, last = ((at - self._origin) // self._block_bytes for at in (low, high - 1))
            written[first : last + 1] = [number] * (last + 1 - first)
        return self.number == number

    def written_since(self, number: int) -> list[int]:
        """List the blocks with a write of a later number than this."""
        if self.number <= number:
            return []
        return [block for block, last in enumerate(self._written) if last > number]


class WriteWatch:
    """Owns what is watched in this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._scan: PageScan | None = None
        self._spans: weakref.WeakValueDictionary[tuple[int, int], WatchedSpan] = weakref.WeakValueDictionary()

    def begin(self, address: int, size: int, block_bytes: int) -> WatchedSpan | None:
        """Watch the whole pages of a range from now on; None where that cannot be done, or would not be certain.

        Who watches the same range already is given the same span. To be called before the memory is read.
        """
        start, end = -(-address // PAGE_BYTES) * PAGE_BYTES, (address + size) // PAGE_BYTES * PAGE_BYTES
        if start >= end:
            return None
        with self._lock:
            scan = self._scan if self._pid == os.getpid() else self._open()
            if scan is None:
                return None
            known = self._spans.get((start, end))
            if known is not None and known.is_watched:
                return known if known.is_of(address, block_bytes) and self._look(known) else None
            if len(self._spans) >= _MOST_SPANS or any(low < end and start < high for low, high in self._spans):
                return None  # two spans must not share a page: each look protects it again, for both
            if not pinned_memory.is_private(start, end):
                return None
            span = WatchedSpan(start, end, block_bytes, address)
            try:
                scan.watch(start, end)
            except OSError:
                return None
            self._spans[start, end] = span
            span.ended = weakref.finalize(span, _forget, scan, self._pid, start, end)
            span.ended.atexit = False
        return span if self.look(span) else None

    def look(self, span: WatchedSpan) -> bool:
        """Note what was written to a span. False where that is not known: the span is then watched no more."""
        with self._lock:
            return self._look(span)

    def end(self, span: WatchedSpan) -> None:
        """Watch a span no more: each first write to one of its pages takes longer than to others."""
        with self._lock:
            self._drop(span)

    def _look(self, span: WatchedSpan) -> bool:
        if self._scan is None or self._pid != os.getpid() or not span.is_watched:
            span.is_watched = False
            return False
        try:
            has_found = span.note(self._scan.written(span.start, span.end))
        except OSError:
            self._drop(span)
            return False
        # Asked after the pages were protected, and before anybody reads them: what was pinned at that moment shows now,
        # or has come to its end.
        if has_found and pinned_memory.may_be_pinned():
            self._drop(span)
        return span.is_watched

    def _drop(self, span: WatchedSpan) -> None:
        span.is_watched = False
        if self._spans.get((span.start, span.end)) is span:
            del self._spans[span.start, span.end]
        if span.ended is not None:
            span.ended()  # once: another span may come to be where this one was

    def _open(self) -> PageScan | None:
        """Begin in this process, which may be a fork: what its parent has watched is not watched here."""
        if self._scan is not None:
            self._scan.close()  # the descriptors of the parent
        self._pid, self._scan = os.getpid(), None
        self._spans = weakref.WeakValueDictionary()
        try:
            scan = PageScan()
        except OSError:
            return None
        if page_scan.check(scan):
            self._scan = scan
        else:
            scan.close()
        return self._scan


def _forget(scan: PageScan, pid: int, start: int, end: int) -> None:
    if pid == os.getpid():
        scan.forget(start, end)


of_process = WriteWatch()
