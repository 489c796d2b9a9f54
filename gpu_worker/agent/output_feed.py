"""How far a kernel has been sent what a buffer keeps: ahead of what it has seen by so much at most."""

from collections import deque
from collections.abc import Sequence

from bulletin.wire.frames import Blob
from bulletin.wire.messages import Output
from gpu_worker.agent.output_buffer import UNSEEN_LIMIT_BYTES, OutputBuffer

#: So many outputs may be under way to a kernel, and so many bytes of them: live, and of those that are sent again.
_MOST = 1_000
_LIVE_BYTES, _REPLAY_BYTES = UNSEEN_LIMIT_BYTES, UNSEEN_LIMIT_BYTES // 4
#: What each blob counts beside its bytes.
_OVERHEAD_BYTES = 256


class OutputFeed:
    """One buffer's outputs on their way to whichever kernel is attached."""

    def __init__(self, buffer: OutputBuffer) -> None:
        self._buffer = buffer
        self._sent = 0
        #: What was sent and not seen: numbers and bytes.
        self._ahead: deque[tuple[int, int]] = deque()
        self._ahead_bytes = 0

    @property
    def is_behind(self) -> bool:
        """Whether outputs are kept that were not sent."""
        return self._sent < self._buffer.last

    def restart(self, seen: int | None = None) -> None:
        """Begin anew, for a connection whose kernel has seen outputs up to this one; None: for what comes from now on.

        What was on its way to another connection, or the same one, no longer counts.
        """
        self._sent = self._buffer.last if seen is None else max(0, min(seen, self._buffer.last))
        self._ahead.clear()
        self._ahead_bytes = 0

    def take_newest(self, output: Output, blobs: Sequence[Blob]) -> bool:
        """Tell whether the newest output is to be sent at once, and count it as sent; else it is its turn later."""
        if self._sent < output.seq - 1 or not self._has_credit(_LIVE_BYTES):
            return False
        self._count(output, blobs)
        return True

    def take_next(self) -> tuple[Output, Sequence[Blob]] | None:
        """Return the next output that is to be sent, and count it; None where there is none, or no credit."""
        if not self.is_behind or not self._has_credit(_REPLAY_BYTES):
            return None
        output, blobs = next(self._buffer.after(self._sent))
        self._count(output, blobs)
        return output, blobs

    def mark_seen(self, number: int) -> None:
        """Take note that the kernel has the outputs up to this one."""
        while self._ahead and self._ahead[0][0] <= number:
            self._ahead_bytes -= self._ahead.popleft()[1]

    def _has_credit(self, limit_bytes: int) -> bool:
        return len(self._ahead) < _MOST and self._ahead_bytes <= limit_bytes

    def _count(self, output: Output, blobs: Sequence[Blob]) -> None:
        cost_bytes = sum(memoryview(blob).nbytes + _OVERHEAD_BYTES for blob in blobs)
        self._sent = output.seq
        self._ahead.append((output.seq, cost_bytes))
        self._ahead_bytes += cost_bytes
