"""The line of those whom nobody is known to be: however many they are, and whatever they ask, readers do not wait."""

import asyncio

from tornado import web
from tornado.http1connection import HTTP1Connection

#: So many strangers' requests are answered each second, and at once: whoever logs in is one with two.
PER_S, MOST = 30, 150


class StrangerLine:
    """Lets strangers' requests through one after the other, once there were many. Who has left costs nobody time."""

    def __init__(self, per_s: float = PER_S, most: int = MOST) -> None:
        """Take how many are let through in a second, and how many at once after a pause."""
        self._each_s, self._most_s = 1 / per_s, most / per_s
        self._first = asyncio.Lock()  # who waits for it has it in order
        self._next_s = 0.0

    async def wait(self, handler: web.RequestHandler) -> None:
        """Return when it is the request's turn. Raises Finish where nobody waits for its answer any more."""
        clock_s = asyncio.get_running_loop().time
        async with self._first:
            if _is_gone(handler):
                raise web.Finish
            await asyncio.sleep(max(0.0, self._next_s - clock_s()))
            self._next_s = max(self._next_s, clock_s() - self._most_s) + self._each_s


class OpenToAll(web.RequestHandler):
    """What is answered whoever asks: by a line of its own, so that a crowd there holds up none of those who log in."""

    line = ""

    async def prepare(self) -> None:
        """Wait for a turn."""
        await self.settings["strangers"][self.line].wait(self)


def make_lines() -> dict[str, StrangerLine]:
    """Make the line of those who log in, and those of what is open to all."""
    files = StrangerLine(50, 300)  # a page has some
    return {"login": StrangerLine(), "files": files, "health": StrangerLine(), "nothing": StrangerLine()}


def _is_gone(handler: web.RequestHandler) -> bool:
    connection = handler.request.connection
    return isinstance(connection, HTTP1Connection) and connection.stream.closed()
