"""An agent's steady clock, read from afar: how long ago was what the agent says of a time of its own. Pure.

No clock is compared with another. A message that was under way for the shortest time shows best how far two clocks
differ; whatever comes later than that was under way for longer, or waited for a broker that stood still.
"""

from collections import deque

#: So many of the last messages that come once a second are compared: the clocks of two machines drift apart.
_COMPARED = 120


class AgentClock:
    """The clock of one process of an agent, in the broker's time. All times are milliseconds."""

    def __init__(self) -> None:
        self._differences: deque[int] = deque(maxlen=_COMPARED)

    def compare(self, said_ms: int | None, now_ms: int) -> None:
        """Compare the clocks by a message that was sent at `said_ms` by the agent's clock, where it says so."""
        if said_ms is not None:
            self._differences.append(now_ms - said_ms)

    @property
    def behind_ms(self) -> int:
        """By how much the agent's clock is behind the broker's, below 0 ahead, where both tell the time of day."""
        return min(self._differences, default=0)

    def ago_ms(self, said_ms: int | None, now_ms: int) -> int:
        """Return how long ago the agent's clock said that; 0 where nobody can know."""
        if said_ms is None or not self._differences:
            return 0
        return max(0, now_ms - said_ms - min(self._differences))
