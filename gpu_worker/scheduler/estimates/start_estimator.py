"""How long each of those who wait will wait at most, whatever comes first of what happens at the same time.

Cells that began together end together, and who of two is first may decide who of two others is next. So where anything
happens at the same time as something else, the replay is made in several orders, and the latest start of each counts.
"""

from bulletin.ids import RequestId
from gpu_worker.scheduler.estimate_cache import Start
from gpu_worker.scheduler.estimates.replay_ahead import ReplayAhead
from gpu_worker.scheduler.estimates.state_copy import copy_state
from gpu_worker.scheduler.state import State

#: As they come, the other way round, and mixed.
_ORDERS = (1, -1, 7_919)
#: Of a longer line one order is enough: the others cost as much again.
_MOST_IN_ORDERS = 200


class StartEstimator:
    """When each request starts at the latest, worked out in as many slices as one likes.

    The state may go on meanwhile: what is found holds for the time at which this was made.
    """

    def __init__(self, state: State, now_ms: int) -> None:
        """Begin at `now_ms`, in the time of the scheduler's steps."""
        self.starts: dict[RequestId, Start] = {}  #: as far as is known by now; of others nobody can say
        self.steps = 0  #: events replayed so far
        self._now_ms = now_ms
        self._replay: ReplayAhead | None = ReplayAhead(state, now_ms)
        #: In which orders it is tried after that, the next one last.
        self._orders = list(reversed(_ORDERS[1:])) if len(state.pending) <= _MOST_IN_ORDERS else []
        self._is_first = True
        self._state = copy_state(state) if self._orders else state

    def run(self, most_steps: int) -> bool:
        """Go on for so many events at most; whether all is known that can be."""
        last = self.steps + most_steps
        while self._replay is not None and self.steps < last:
            before = self._replay.steps
            is_done = self._replay.run(last - self.steps)
            self.steps += self._replay.steps - before
            self._take(self._replay.starts, is_done=is_done)
            if is_done:
                self._replay = self._next(self._replay)
        return self._replay is None

    def _take(self, starts: dict[RequestId, Start], *, is_done: bool) -> None:
        if self._is_first:
            self.starts = dict(starts)
            return
        for request, start in list(self.starts.items()):
            if request in starts:
                self.starts[request] = max(start, starts[request], key=lambda one: one[0])
            elif is_done:  # in this order it never starts
                del self.starts[request]

    def _next(self, replay: ReplayAhead) -> ReplayAhead | None:
        self._is_first = False
        if not replay.has_ties or not self._orders:
            return None
        return ReplayAhead(self._state, self._now_ms, self._orders.pop())
