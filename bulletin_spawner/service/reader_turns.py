"""Whose turn it is to ask the broker: of each reader one question at a time, whatever else they ask meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from bulletin.ids import UserName
from bulletin_spawner.service.api_problems import ApiRefused

#: So many questions of one reader may be there at once, with the one that is asked: some tabs of a browser ask fewer.
MOST_WAITING = 16
_TOO_MANY = "{count} questions of yours wait for an answer already. Ask again when they are answered."


class _OwnQuestions:
    """The questions of one reader."""

    def __init__(self) -> None:
        self.turn, self.count = asyncio.Lock(), 0


class ReaderTurns:
    """The readers who ask over one link, which takes one question after the other."""

    def __init__(self) -> None:
        self._lines: dict[UserName, _OwnQuestions] = {}

    @asynccontextmanager
    async def take(self, reader: UserName) -> AsyncIterator[None]:
        """Wait until the reader's earlier questions are answered. Raises ApiRefused where they are too many."""
        line = self._lines.setdefault(reader, _OwnQuestions())
        if line.count >= MOST_WAITING:
            raise ApiRefused(HTTPStatus.TOO_MANY_REQUESTS, "too-fast", _TOO_MANY.format(count=line.count))
        line.count += 1
        try:
            async with line.turn:
                yield
        finally:
            line.count -= 1
            if not line.count:
                del self._lines[reader]
