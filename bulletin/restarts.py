"""How long to wait before a process that has ended is started again: longer each time, until it stays up for a while.

Not tenacity: that retries a call that fails and counts its attempts, while a child that has lived for a day counts from
the beginning again; its wait strategies know no lifetime, and would have to be reset from outside.
"""

LONGEST_DELAY_S = 10.0


class RestartDelays:
    """The delays between the lives of one process. Knows no clock: whoever restarts it says how long it lived."""

    def __init__(self, first_s: float, *, healthy_after_s: float) -> None:
        """Begin with a delay of `first_s`, also after a process that lived for longer than `healthy_after_s`."""
        self._first_s, self._healthy_after_s = first_s, healthy_after_s
        self._next_s = first_s
        #: Whether the process was well at least once: what keeps it from starting now may come back.
        self.was_healthy = False

    def record_exit(self, lived_s: float) -> float:
        """Take in that the process has ended after so long; return the seconds to wait before its next start."""
        if lived_s > self._healthy_after_s:
            self.was_healthy, self._next_s = True, self._first_s
        delay_s = self._next_s
        self._next_s = min(2 * delay_s, LONGEST_DELAY_S)
        return delay_s
