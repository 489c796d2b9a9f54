"""How long people waited before: what somebody who waits now will usually wait. Pure, and of bounded size."""

from bisect import bisect_left

import msgspec

from bulletin.units import DAY_MS, HOUR_MS
from gpu_worker.scheduler.estimates.explain import WaitExplanation

#: The upper edges of the bins that waits are counted in: each is a quarter more than the one before, up to a week.
_EDGES_MS = tuple(round(1000 * 1.25**number) for number in range(60))
#: Beyond so many waits all count for half: what is new says more.
_MOST_WAITS = 64
#: Fewer waits say nothing.
_LEAST_WAITS = 5
#: Places in line that are told apart: 0 is one for whom room is being made.
_PLACES = (0, 1, 2, 3, 5, 8, 12, 20, 40, 80)
#: Classes of service that are told apart: admins name few.
_MOST_CLASSES = 64


class WaitKind(msgspec.Struct, frozen=True):
    """What a wait is like when it begins."""

    qos: str
    hour: int  #: of the day, UTC
    place: int  #: the first place in line, rounded up to one of those that are told apart
    in_quota: bool


def wait_kind(qos: str, at_ms: int, waiting: WaitExplanation) -> WaitKind:
    """Describe a wait that begins at this time, in milliseconds since 1970, by what is told first."""
    at = min(bisect_left(_PLACES, 0 if waiting.is_room_made else waiting.position), len(_PLACES) - 1)
    return WaitKind(qos, at_ms % DAY_MS // HOUR_MS, _PLACES[at], waiting.in_quota)


class WaitHistory:
    """Counts waits by what they were like; where few were like that, by less of it."""

    def __init__(self) -> None:
        self._counts: dict[tuple[object, ...], list[float]] = {}
        self._classes: set[str] = set()

    def note(self, kind: WaitKind, wait_ms: int) -> None:
        """Count a wait that is over, because its request was granted."""
        if kind.qos not in self._classes and len(self._classes) == _MOST_CLASSES:
            return
        self._classes.add(kind.qos)
        at = min(bisect_left(_EDGES_MS, wait_ms), len(_EDGES_MS) - 1)
        for key in _keys(kind):
            counts = self._counts.setdefault(key, [0.0] * len(_EDGES_MS))
            counts[at] += 1
            if sum(counts) > _MOST_WAITS:
                counts[:] = [count / 2 for count in counts]

    def usual_ms(self, kind: WaitKind, waited_ms: int = 0) -> int | None:
        """Find what half of those who waited so, and as long as this one already, waited from here on at most.

        None where too few are known.
        """
        first = bisect_left(_EDGES_MS, waited_ms)
        for key in _keys(kind):
            counts = self._counts.get(key, [])[first:]
            total = sum(counts)
            if total < _LEAST_WAITS:
                continue
            reached = 0.0
            for at, count in enumerate(counts, first):
                reached += count
                if reached * 2 >= total:
                    return max(0, _EDGES_MS[at] * 9 // 10 - waited_ms)
        return None


def _keys(kind: WaitKind) -> tuple[tuple[object, ...], ...]:
    """By what a wait is counted, the closest first."""
    return (
        (kind.qos, kind.place, kind.in_quota, kind.hour),
        (kind.qos, kind.place, kind.in_quota),
        (kind.qos, kind.place),
    )
