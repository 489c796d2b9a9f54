"""Who starts when at the latest, worked out in slices between what else the broker does.

An estimate never costs the pool: one that fails is in the log, and nobody is told a longest wait.
"""

import asyncio
from collections.abc import Callable, Mapping

import structlog

from bulletin.ids import RequestId
from gpu_worker.scheduler.estimate_cache import Start
from gpu_worker.scheduler.estimates.start_estimator import StartEstimator
from gpu_worker.scheduler.state import State

#: The broker hears nobody for about so long, then does other things for so many times as long.
_SLICE_S, _PAUSES = 0.005, 9
#: Between two looks at the clock so many events are replayed.
_STEPS = 4
#: So much is replayed for one estimate: of who is not reached by then nothing is said.
_MOST_STEPS, _MOST_S = 5_000, 1.0
#: After an estimate that failed none is begun for so long: the next one would most likely fail, and fill the log.
_REST_AFTER_FAILURE_S = 60.0


class WaitEstimates:
    """The latest start of each who waits, as it was foreseen a moment ago; kept for as long as nothing changes."""

    def __init__(self, state: Callable[[], State], clock: Callable[[], float]) -> None:
        """Take `clock`, in seconds, to see how long work takes."""
        self.starts: Mapping[RequestId, Start] = {}
        self._state, self._clock = state, clock
        self._estimator: StartEstimator | None = None
        self._is_stale = True
        self._spent_s = 0.0  #: on the one that is made
        self._rests_until_s = 0.0
        self._is_begun = asyncio.Event()

    def note_change(self) -> None:
        """Note that something has happened: all may be otherwise now."""
        self._is_stale = True

    def update(self, now_ms: int) -> Mapping[RequestId, Start]:
        """Begin anew where something has changed, and return what is known by now. In a small pool that is all."""
        if self._estimator is None and self._is_stale and self._clock() >= self._rests_until_s:
            state = self._state()
            self._is_stale, self._spent_s = False, 0.0
            if state.pending:
                self._begin(state, now_ms)
            else:
                self.starts = {}
        return self.starts

    def _begin(self, state: State, now_ms: int) -> None:
        began_s = self._clock()
        try:
            self._estimator = StartEstimator(state, now_ms)
        except Exception:  # noqa: BLE001  as in `work`
            self._give_up()
            return
        self._spent_s = self._clock() - began_s
        self.work()
        if self._estimator is not None:
            self._is_begun.set()

    def _give_up(self) -> None:
        """Drop the estimate that failed, and what was known before: that no longer holds."""
        structlog.get_logger("broker").exception("the forecast of waits failed; people are told no longest wait")
        self.starts, self._estimator = {}, None
        self._is_begun.clear()
        self._rests_until_s = self._clock() + _REST_AFTER_FAILURE_S

    async def run(self) -> None:
        """Go on with what was begun, a slice at a time."""
        while True:
            await self._is_begun.wait()
            await asyncio.sleep(_SLICE_S * _PAUSES)
            self.work()

    def work(self) -> bool:
        """Work for a slice of time; whether nothing is left to do."""
        estimator = self._estimator
        if estimator is None:
            return True
        began_s = self._clock()
        is_done = False
        try:
            while not is_done and self._clock() - began_s < _SLICE_S:
                is_done = estimator.run(_STEPS)
        except Exception:  # noqa: BLE001  a bug of the scheduler may raise anything; its copy is thrown away
            self._give_up()
            return True
        self._spent_s += self._clock() - began_s
        if is_done or estimator.steps >= _MOST_STEPS or self._spent_s >= _MOST_S:
            self.starts, self._estimator = estimator.starts, None
            self._is_begun.clear()
            self._rests_until_s = self._clock() + _PAUSES * max(0.0, self._spent_s - _SLICE_S)
        return self._estimator is None
