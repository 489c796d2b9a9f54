"""How much is heard of each who speaks: a token bucket for each, filled by time and drained by what is said."""

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
#: Who is not heard is told so, so often at most.
_TELL_S = 1.0


class RateLimiter(Generic[Key]):
    """Buckets by key. A bucket may be overdrawn once; then its key is not heard until it has something again."""

    def __init__(self, per_s: float, most: float, clock_s: Callable[[], float]) -> None:
        """Fill each bucket by `per_s` a second, up to `most`, by this clock in seconds."""
        self._per_s, self._full_s, self._clock_s = per_s, most / per_s, clock_s
        #: When the bucket of each key will be full; one that is not here is full.
        self._full_at_s: dict[Key, float] = {}
        self._told_s: dict[Key, float] = {}

    def has_credit(self, key: Key) -> bool:
        """Tell whether there is something in the bucket."""
        full_at_s = self._full_at_s.get(key)
        return full_at_s is None or full_at_s - self._clock_s() < self._full_s

    def charge(self, key: Key, cost: float) -> None:
        """Take what was said out of the bucket."""
        now_s = self._clock_s()
        self._full_at_s[key] = max(now_s, self._full_at_s.get(key, now_s)) + cost / self._per_s

    def take_telling(self, key: Key) -> bool:
        """Tell whether somebody who is not heard is to be told so now; once a second."""
        now_s = self._clock_s()
        if now_s - self._told_s.get(key, -_TELL_S) < _TELL_S:
            return False
        self._told_s[key] = now_s
        return True

    def tidy(self) -> None:
        """Forget those whose bucket is full again. To be called now and then."""
        now_s = self._clock_s()
        self._full_at_s = {key: full_at_s for key, full_at_s in self._full_at_s.items() if full_at_s > now_s}
        self._told_s = {key: told_s for key, told_s in self._told_s.items() if now_s - told_s < _TELL_S}
