"""How often each reader of the pages is answered, whatever they ask: a flood of one's requests is not others' wait."""

import asyncio
import time

from tornado import web

from bulletin.rate_limiter import RateLimiter
from bulletin_spawner.service.reader_line import ReaderLine

#: So many requests a second are answered, and at once: a tab of a browser makes two a second.
PER_S, MOST = 30, 150
#: And so many of one reader are begun at once, and then in a second, the others after them: a hundred that come
#: together would be answered together, and everybody else after that.
TURNS_PER_S, AT_ONCE = 50, 10
#: Of who asks more, each request is refused only after so long: a program that asks again at once is slowed by that.
_LATER_S = 1.0
#: After so many requests those are forgotten who ask no more.
_TIDY_EVERY = 1000
TOO_OFTEN = f"You ask more than {PER_S} times a second. Ask again in a moment"


class ReaderPace:
    """Counts the requests of each reader, by the name that the hub says."""

    def __init__(self, later_s: float = _LATER_S, turns_per_s: float = TURNS_PER_S) -> None:
        """Take how late a refusal comes, and how many of one reader are begun in a second after those at once."""
        self._later_s, self._turns_per_s = later_s, turns_per_s
        self._limiter: RateLimiter[str] = RateLimiter(PER_S, MOST, time.monotonic)
        self._lines: dict[str, ReaderLine] = {}
        self._counted = 0

    async def admit(self, reader: str, handler: web.RequestHandler | None = None) -> bool:
        """Count a request when it is its turn; return whether it is to be answered. False comes late.

        Raises Finish where nobody waits for the answer any more.
        """
        self._counted += 1
        if self._counted % _TIDY_EVERY == 0:
            self._tidy()
        await self._lines.setdefault(reader, ReaderLine(self._turns_per_s, AT_ONCE)).wait(handler)
        if self._limiter.has_credit(reader):
            self._limiter.charge(reader, 1)
            return True
        await asyncio.sleep(self._later_s)
        return False

    def _tidy(self) -> None:
        self._limiter.tidy()
        now_s = asyncio.get_running_loop().time()
        self._lines = {reader: line for reader, line in self._lines.items() if not line.is_empty(now_s)}
