"""When the scheduler decides: at most half of the time, so that a long line never keeps the broker from listening."""

import asyncio
import contextlib
from collections.abc import Callable

#: A decision that takes no longer is made with each fact. In pools of some hundred GPUs all are.
_QUICK_S = 0.02


class DecisionPace:
    """Has facts only be noted after a decision that took long, for as long as it took; the next one is for all."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._rests_until_s = 0.0
        self._is_behind = asyncio.Event()

    @property
    def is_due(self) -> bool:
        """Whether the next fact is to be decided upon."""
        return self._clock_s() >= self._rests_until_s

    def note_decision(self, began_s: float) -> None:
        """Note that all was decided upon until now, by a step that began then."""
        now_s = self._clock_s()
        self._rests_until_s = 2 * now_s - began_s if now_s - began_s > _QUICK_S else now_s
        self._is_behind.clear()

    def note_fact(self) -> None:
        """Note that something was noted that is to be decided upon soon."""
        self._is_behind.set()

    async def sleep(self, most_s: float) -> None:
        """Sleep for so long, or until something is to be decided upon."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_behind.wait(), most_s)
            await asyncio.sleep(self._rests_until_s - self._clock_s())
