"""How much waits at the agent to be sent on one connection: as ZeroMQ knows it, whatever the kernel says."""

from collections import deque
from collections.abc import Sequence

import zmq

from bulletin.wire.frames import Blob

#: What is smaller is bounded by the number of messages that may wait.
_LARGE_BYTES = 4 * 1024
#: So many bytes may wait. A kernel that keeps to its windows never lets so much come together.
_MOST_BYTES = 192 * 2**20


class _Queue:
    """The large frames of one connection that ZeroMQ has not let go of, in the order in which they were sent."""

    def __init__(self) -> None:
        self.frames: deque[tuple[zmq.MessageTracker, int]] = deque()
        self.bytes = 0

    def drop_sent(self) -> None:
        while self.frames and self.frames[0][0].done:
            self.bytes -= self.frames.popleft()[1]


class UnsentBytes:
    """What waits for each connection."""

    def __init__(self) -> None:
        self._queues: dict[bytes, _Queue] = {}

    def is_full(self, route: bytes) -> bool:
        """Tell whether so much waits for a connection that its kernel does not read."""
        queue = self._queues.get(route)
        return queue is not None and queue.bytes > _MOST_BYTES

    def track(self, route: bytes, parts: Sequence[Blob]) -> list[Blob | zmq.Frame]:
        """Make frames of a message's parts whose fate is known, and count them; to be sent without being copied."""
        frames: list[Blob | zmq.Frame] = []
        for part in parts:
            size = memoryview(part).nbytes
            if size < _LARGE_BYTES:
                frames.append(part)
                continue
            frame = zmq.Frame(part, track=True, copy=False)
            assert isinstance(frame.tracker, zmq.MessageTracker)
            queue = self._queues.setdefault(route, _Queue())
            queue.frames.append((frame.tracker, size))
            queue.bytes += size
            frames.append(frame)
        return frames

    def drop_sent(self, route: bytes) -> None:
        """Forget what has been sent to a connection by now."""
        queue = self._queues.get(route)
        if queue is not None:
            queue.drop_sent()
            if not queue.frames:
                del self._queues[route]

    def tidy(self) -> None:
        """Do that for all connections. To be called now and then."""
        for route in list(self._queues):
            self.drop_sent(route)
