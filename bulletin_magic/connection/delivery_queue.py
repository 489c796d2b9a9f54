"""What whoever asked the session something reads: deliveries, from the link's thread to another one."""

import queue

from bulletin_magic.connection.deliveries import Delivery, OutputMessage

#: Outputs that wait to be shown. Beyond, the agent is not heard: it keeps them, and in the end the cell waits.
_WAITING_LIMIT_BYTES = 16 * 2**20
#: What an output counts beside its content.
_OVERHEAD_BYTES = 200


class DeliveryQueue:
    """Deliveries up to one that ends the conversation, or the error that broke the link."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Delivery | BaseException] = queue.SimpleQueue()
        # Each counter has one writer, so no lock is needed.
        self._put_bytes = 0
        self._got_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether more outputs wait than should."""
        return self._put_bytes - self._got_bytes > _WAITING_LIMIT_BYTES

    def put(self, delivery: Delivery | BaseException) -> None:
        """Add one, also where the queue is full."""
        self._put_bytes += _size_bytes(delivery)
        self._queue.put(delivery)

    def get(self, timeout_s: float | None = None) -> Delivery | BaseException:
        """Wait for the next and take it out. Raises queue.Empty after `timeout_s`."""
        delivery = self._queue.get(timeout=timeout_s)
        self._got_bytes += _size_bytes(delivery)
        return delivery

    def is_empty(self) -> bool:
        """Tell whether none waits."""
        return self._queue.empty()


def _size_bytes(delivery: Delivery | BaseException) -> int:
    return len(delivery.content) + _OVERHEAD_BYTES if isinstance(delivery, OutputMessage) else 0
