"""How busy the node's GPUs are, and for how long one does nothing: told to the broker with each sign of life."""

import asyncio
from collections.abc import Callable, Iterator

from bulletin.ids import SlotId
from bulletin.wire.messages import SlotUse
from gpu_worker.agent.clock import now_ms
from gpu_worker.agent.inventory import Inventory

_EVERY_S = 2.0
#: A GPU that is busy for less of a moment does nothing: drivers count their own work, too.
_IDLE_PERCENT = 2


class SlotMeter:
    """Looks at each GPU every two seconds. CPU slots are not measured: nothing is told of them."""

    def __init__(self, inventory: Inventory, clock_ms: Callable[[], int] = now_ms) -> None:
        self._inventory, self._now_ms = inventory, clock_ms
        #: How busy each slot was when it was looked at last, and the bytes in use there.
        self._loads: dict[SlotId, tuple[int, int]] = {}
        self._idle_since_ms: dict[SlotId, int] = {}

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_EVERY_S)

    async def look(self) -> None:
        """Look at each GPU once. One that does not answer is told no more."""
        for offer in self._inventory.offers:
            found = await self._inventory.measure(offer.slot)
            if found is None:
                self._loads.pop(offer.slot, None)
                self._idle_since_ms.pop(offer.slot, None)
                continue
            used_bytes, busy_percent = found
            self._loads[offer.slot] = min(100, max(0, busy_percent)), max(0, used_bytes)
            if busy_percent >= _IDLE_PERCENT:
                self._idle_since_ms.pop(offer.slot, None)
            else:
                self._idle_since_ms.setdefault(offer.slot, self._now_ms())

    @property
    def uses(self) -> tuple[SlotUse, ...]:
        """What is told of them now."""
        return tuple(self._uses())

    def _uses(self) -> Iterator[SlotUse]:
        for slot, (busy_percent, used_bytes) in self._loads.items():
            since_ms = self._idle_since_ms.get(slot)
            idle_ms = 0 if since_ms is None else max(0, self._now_ms() - since_ms)
            yield SlotUse(slot=slot, busy_percent=busy_percent, used_bytes=used_bytes, idle_ms=idle_ms)
