"""What one reader of the pages asks that takes long keeps no other from theirs."""

import asyncio
from typing import Any, TypeVar

from bulletin.ids import UserName
from bulletin.wire import page_requests as page
from bulletin.wire.messages import Found
from bulletin_spawner.service.pool_source import PoolSource

Answer = TypeVar("Answer")
TABLE = page.UsageTable(csv="of,held_ms", has_more=False)


class OneAfterAnother:
    """A link: what is asked is answered in turn, once it may be."""

    def __init__(self, answer: object, may_answer: asyncio.Event) -> None:
        self._answer, self._may_answer, self._asking = answer, may_answer, asyncio.Lock()

    async def ask(self, question: Any, kind: type[Answer]) -> Answer:
        """Answer with what this link has, whatever was asked."""
        async with self._asking:
            await self._may_answer.wait()
        assert isinstance(self._answer, kind)
        return self._answer


def test_while_usage_is_summed_up_everybody_sees_their_cells_and_what_is_over() -> None:
    async def scenario() -> None:
        now, later = asyncio.Event(), asyncio.Event()
        now.set()
        past = page.PastCells(cells=(), slot_word="GPU")
        links = OneAfterAnother(past, now), OneAfterAnother(Found(cells=()), now), OneAfterAnother(TABLE, later)
        pool = PoolSource(*links)
        usage = asyncio.create_task(pool.fetch_usage(page.AskUsage(since_ms=0, until_ms=1)))
        await asyncio.sleep(0)
        assert await asyncio.wait_for(pool.fetch_cells(UserName("ann")), 30) == Found(cells=())
        assert await asyncio.wait_for(pool.fetch_past(UserName("ann"), 5), 30) == past
        later.set()
        assert await usage == TABLE

    asyncio.run(scenario())
