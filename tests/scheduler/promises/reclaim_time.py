"""How long it may take until somebody has left: the reclaim time, with the delays of the history that is played."""

from collections.abc import Iterable

from tests.scheduler.promises.books import Tenancy
from tests.scheduler.promises.history import Delays
from tests.scheduler.promises.view import View

#: What is not counted: ticks, and messages on their way.
_SPARE_MS = 2_000


class ReclaimTime:
    """Knows the delays that the driver plays, which nobody may be blamed for."""

    def __init__(self, delays: Delays) -> None:
        self.delays = delays
        asked_again = 10_000 + delays.tick_ms if delays.lost_percent else 0
        self.hot_ms = delays.evict_ms + asked_again + delays.tick_ms + _SPARE_MS

    def until(self, view: View, leaving: Iterable[Tenancy], *, together: bool = False) -> int:
        """Compute until when all of these can have left, if they are asked now, as a time of the clock.

        `together` is for somebody who needs several of them: all are asked when the last one may be.
        """
        times = [self._of(view, lease) for lease in leaving]
        if together and times:
            return max(asked_ms for asked_ms, _ in times) + max(grace_ms for _, grace_ms in times) + self.hot_ms
        return max((asked_ms + grace_ms for asked_ms, grace_ms in times), default=view.now_ms) + self.hot_ms

    def longest_ms(self, view: View) -> int:
        """Compute the longest of any class."""
        longest = max((qos.grace_ms + qos.min_runtime_ms for qos in view.tree.qos.values()), default=0)
        return longest + self.hot_ms

    def _of(self, view: View, lease: Tenancy) -> tuple[int, int]:
        """Find when it can be asked, and how long it may take from then on."""
        qos = view.tree.qos.get(lease.qos)
        if qos is None or lease.is_hot or lease.is_over:
            return view.now_ms, 0
        unanswered = 10_000 if qos.preemption.value == "pause" else 0
        if lease.is_reclaimed:
            return lease.asked_ms, lease.grace_ms + unanswered + self.delays.tick_ms
        began = lease.began_ms
        if lease.cell is None:
            stall = view.tree.settings.start_ms if self.delays.stalled_percent else self.delays.start_ms
            began = lease.granted_ms + stall
        return max(view.now_ms, began + qos.min_runtime_ms), qos.grace_ms + unanswered + self.delays.tick_ms
