"""The line of one reader's requests: they are begun one after the other, and others' in between."""

import asyncio

from tornado import web

from bulletin_spawner.service.presence import has_left


class ReaderLine:
    """Lets requests through one after the other, once there were many. Who has left costs nobody time."""

    def __init__(self, per_s: float, most: int) -> None:
        """Take how many are let through in a second, and how many at once after a pause."""
        self._each_s, self._most_s = 1 / per_s, (most - 1) / per_s
        self._first = asyncio.Lock()  # who waits for it has it in order
        self._next_s = 0.0

    def is_empty(self, now_s: float) -> bool:
        """Tell whether nobody is in it, and as many may come at once as ever."""
        return not self._first.locked() and self._next_s + self._most_s < now_s

    async def wait(self, handler: web.RequestHandler | None = None) -> None:
        """Return when it is the request's turn. Raises Finish where nobody waits for its answer any more."""
        clock_s = asyncio.get_running_loop().time
        async with self._first:
            if handler is not None and has_left(handler):
                raise web.Finish
            await asyncio.sleep(max(0.0, self._next_s - clock_s()))
            self._next_s = max(self._next_s, clock_s() - self._most_s) + self._each_s
