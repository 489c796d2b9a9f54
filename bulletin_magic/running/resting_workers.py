"""Workers of a sweep that gave their place to somebody else: each asks for another one after a while."""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

Worker = TypeVar("Worker")

#: For so long after the first time, and twice as long after each further one, up to the longest.
_FIRST_S, _LONGEST_S = 1.0, 8.0


class RestingWorkers(Generic[Worker]):
    """Who rests, and until when.

    A worker that asked again at once would have the place back after each cell of somebody who types, or take it from
    another worker of its own sweep, and each time a process begins anew: with short elements that is most of the work.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._until_s: dict[Worker, float] = {}
        self._rests_s: dict[Worker, float] = {}

    def __len__(self) -> int:
        """Count those that rest."""
        return len(self._until_s)

    def add(self, worker: Worker) -> None:
        """Let a worker rest, for longer than the last time."""
        rest_s = self._rests_s[worker] = min(2 * self._rests_s.get(worker, _FIRST_S / 2), _LONGEST_S)
        self._until_s[worker] = self._clock_s() + rest_s

    @property
    def due_in_s(self) -> float | None:
        """How long until one has rested; None if none does."""
        return max(0.0, min(self._until_s.values()) - self._clock_s()) if self._until_s else None

    def take(self, *, is_wanted: bool) -> Worker | None:
        """Wake the one that has rested next, if it has; where one is wanted (nobody works), even before."""
        if not self._until_s:
            return None
        worker = min(self._until_s, key=self._until_s.__getitem__)
        if not is_wanted and self._until_s[worker] > self._clock_s():
            return None
        del self._until_s[worker]
        return worker
