"""How often each reader of the pages is answered, whatever they ask: a flood of one's requests is not others' wait."""

import asyncio
import time

from bulletin.rate_limiter import RateLimiter

#: So many requests a second are answered, and at once: a tab of a browser makes two a second.
PER_S, MOST = 30, 150
#: Of who asks more, each request is refused only after so long: a program that asks again at once is slowed by that.
_LATER_S = 1.0
#: After so many requests those are forgotten who ask no more.
_TIDY_EVERY = 1000
TOO_OFTEN = f"You ask more than {PER_S} times a second. Ask again in a moment"


class ReaderPace:
    """Counts the requests of each reader, by the name that the hub says."""

    def __init__(self, later_s: float = _LATER_S) -> None:
        """Take how late a refusal comes."""
        self._later_s = later_s
        self._limiter: RateLimiter[str] = RateLimiter(PER_S, MOST, time.monotonic)
        self._counted = 0

    async def admit(self, reader: str) -> bool:
        """Count a request; return whether it is to be answered. False comes late."""
        self._counted += 1
        if self._counted % _TIDY_EVERY == 0:
            self._limiter.tidy()
        if self._limiter.has_credit(reader):
            self._limiter.charge(reader, 1)
            return True
        await asyncio.sleep(self._later_s)
        return False
