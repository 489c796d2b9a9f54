"""Turns of those whom nobody knows at the page: one after the other, and readers are answered between any two."""

import asyncio
import random

from tornado import web
from tornado.iostream import IOStream

from bulletin_spawner.service.presence import has_left


class StrangerTurns:
    """Gives one turn in each round of the event loop, in which whatever else is ready has its own.

    Whose turn is next is drawn among those who are still there. In their order it would be one whose connection is the
    next to be ended where there are too many, and in the opposite one it would be whoever asks most.
    """

    def __init__(self, pause_s: float = 0.0) -> None:
        """Take how long a pause there is after each turn."""
        self._pause_s = pause_s
        self._waiting: list[tuple[asyncio.Future[None], web.RequestHandler | IOStream | None]] = []
        self._is_calling = False

    async def take(self, visitor: web.RequestHandler | IOStream | None = None) -> None:
        """Return when it is the request's turn. Raises Finish where nobody waits for its answer any more."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append((turn, visitor))
        if not self._is_calling:
            self._is_calling = True
            loop.call_soon(self._call_next)
        await turn
        if visitor is not None and has_left(visitor):
            raise web.Finish

    def _call_next(self) -> None:
        while self._waiting:
            turn, visitor = self._waiting.pop(random.randrange(len(self._waiting)))  # noqa: S311  no secret
            if turn.done():
                continue
            turn.set_result(None)
            if visitor is None or not has_left(visitor):
                asyncio.get_running_loop().call_later(self._pause_s, self._call_next)
                return
        self._is_calling = False


def make_turns() -> dict[str, StrangerTurns]:
    """Make the turns of those who log in, and those of what is open to all."""
    return {kind: StrangerTurns() for kind in ("login", "files", "health", "nothing")}
