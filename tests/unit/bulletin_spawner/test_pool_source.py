"""What one reader of the pages asks that takes long keeps no other from theirs."""

import asyncio
from http import HTTPStatus
from typing import Any, TypeVar

import pytest

from bulletin.codes import RefusalCode
from bulletin.ids import ProjectId, UserName
from bulletin.wire import console, page_requests as page
from bulletin.wire.messages import Found, Refusal
from bulletin_spawner.service.api_problems import ApiRefused, refused
from bulletin_spawner.service.pool_source import PoolSource
from bulletin_spawner.service.reader_turns import MOST_WAITING

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
        broker, finder = OneAfterAnother(past, now), OneAfterAnother(Found(cells=()), now)
        sums, history = OneAfterAnother(TABLE, later), OneAfterAnother(None, later)
        pool = PoolSource(broker, finder, sums, history)
        usage = asyncio.create_task(pool.fetch_usage(page.AskUsage(since_ms=0, until_ms=1)))
        await asyncio.sleep(0)
        assert await asyncio.wait_for(pool.fetch_cells(UserName("ann")), 30) == Found(cells=())
        assert await asyncio.wait_for(pool.fetch_past(UserName("ann"), 5), 30) == past
        later.set()
        assert await usage == TABLE

    asyncio.run(scenario())


EVE, ANN, ML = UserName("eve"), UserName("ann"), ProjectId("ml")


class Ledger:
    """A link by which what projects used is asked; it takes note of what comes, and answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[page.AskUse] = []
        self.may_answer = asyncio.Semaphore(0)
        self._asking = asyncio.Lock()

    async def ask(self, question: page.AskUse, kind: type[Answer]) -> Answer:
        """Answer one after the other."""
        async with self._asking:
            self.asked.append(question)
            await self.may_answer.acquire()
        report = page.UseReport(
            project=question.project, stretch=question.stretch, parts=(), users=(), labels=(), lenders=(), slot_word=""
        )
        assert isinstance(report, kind)
        return report


def test_of_many_questions_of_one_reader_another_waits_for_one() -> None:
    async def scenario() -> None:
        ledger, nothing = Ledger(), OneAfterAnother(None, asyncio.Event())
        pool = PoolSource(nothing, nothing, nothing, ledger)
        flood = [asyncio.create_task(pool.fetch_use(EVE, ML, "day", 1 + count)) for count in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(ApiRefused, match="questions of yours wait") as error:
            await asyncio.wait_for(pool.fetch_use(EVE, ML, "week", 1), 30)
        assert error.value.status == HTTPStatus.TOO_MANY_REQUESTS
        hers = asyncio.create_task(pool.fetch_use(ANN, ProjectId("vision"), "day", 14))
        await asyncio.sleep(0)
        for _ in range(2):
            ledger.may_answer.release()
        assert (await asyncio.wait_for(hers, 30)).project == "vision"
        for _ in range(MOST_WAITING):
            ledger.may_answer.release()
        await asyncio.gather(*flood)
        assert [asked.project for asked in ledger.asked] == ["ml", "vision", *["ml"] * (MOST_WAITING - 1)]

    asyncio.run(scenario())


class Refusing:
    """A broker that changes nothing, and draws the pool."""

    def __init__(self) -> None:
        self.drawn = 0

    async def ask(self, question: Any, kind: type[Answer]) -> Answer:
        """Refuse what would change something."""
        if isinstance(question, page.OnBehalf):
            raise refused(Refusal(code=RefusalCode.UNKNOWN_ID, sentence="There is no such cell."))
        self.drawn += 1
        report = page.PoolReport(slots=(), leases=(), waiting=(), waiting_count=0, projects=())
        assert isinstance(report, kind)
        return report


def test_what_was_refused_has_the_pool_not_drawn_anew() -> None:
    async def scenario() -> None:
        broker = Refusing()
        pool = PoolSource(broker, broker, broker, broker)
        asked = page.OnBehalf(reader=page.PageReader(user=EVE), question=console.Cancel(id="x"))
        for _ in range(3):
            await pool.fetch_pool()
            with pytest.raises(ApiRefused):
                await pool.change(asked, console.Cancelled)
        assert broker.drawn == 1

    asyncio.run(scenario())
