"""Lines at the page: a crowd's requests are taken one after the other, so that what others ask is answered in between.

All whom nobody knows stand in one line together, and the requests of each reader in one of their own.
"""

import asyncio

from tornado import web
from tornado.http1connection import HTTP1Connection

#: So many strangers' requests are answered each second, and at once: whoever logs in is one with two.
PER_S, MOST = 30, 150


class VisitorLine:
    """Lets requests through one after the other, once there were many. Who has left costs nobody time."""

    def __init__(self, per_s: float = PER_S, most: int = MOST) -> None:
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
            if handler is not None and _is_gone(handler):
                raise web.Finish
            await asyncio.sleep(max(0.0, self._next_s - clock_s()))
            self._next_s = max(self._next_s, clock_s() - self._most_s) + self._each_s


class OpenToAll(web.RequestHandler):
    """What is answered whoever asks: by a line of its own, so that a crowd there holds up none of those who log in."""

    line = ""

    async def prepare(self) -> None:
        """Wait for a turn."""
        await self.settings["strangers"][self.line].wait(self)


def make_lines() -> dict[str, VisitorLine]:
    """Make the line of those who log in, and those of what is open to all."""
    files = VisitorLine(50, 300)  # a page has some
    return {"login": VisitorLine(), "files": files, "health": VisitorLine(), "nothing": VisitorLine()}


def _is_gone(handler: web.RequestHandler) -> bool:
    connection = handler.request.connection
    return isinstance(connection, HTTP1Connection) and connection.stream.closed()
