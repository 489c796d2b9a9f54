"""What the pages ask of the broker, once for all who look: answers are kept for a moment, and few are kept."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from bulletin.ids import ProjectId, UserName
from bulletin.wire import page_requests as page
from bulletin.wire.messages import Found
from bulletin_spawner.service.api_problems import ApiRefused
from bulletin_spawner.service.reader_turns import ReaderTurns

Answer = TypeVar("Answer")
#: Many pages look at the pool: the broker draws it this often at most.
POOL_FRESH_S = 2.0
#: What is over changes when a cell ends; history is much to read.
_PAST_FRESH_S, _USE_FRESH_S, _CELLS_FRESH_S = 3.0, 30.0, 5.0
#: So many answers of each kind are kept.
_MOST_KEPT = 200


class PageBroker(Protocol):
    """Whoever asks the broker. Raises NoPool, or ApiRefused with the broker's sentence."""

    async def ask(self, question: Any, kind: type[Answer]) -> Answer:
        """Ask, and return an answer of this kind."""
        ...


class _FreshAnswers:
    """Answers by their questions, each fresh for so long; who asks while it is asked waits for the same answer."""

    def __init__(self, fresh_s: float) -> None:
        self._fresh_s = fresh_s
        self._answers: OrderedDict[object, tuple[float, Any]] = OrderedDict()
        self._asking: dict[object, asyncio.Task[Any]] = {}

    async def fetch(self, question: object, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Return the kept answer, or ask. What the asking raises is raised to all who wait for it."""
        found = self._answers.get(question)
        if found is not None and asyncio.get_running_loop().time() - found[0] < self._fresh_s:
            return found[1]
        asking = self._asking.get(question)
        if asking is None:
            asking = self._asking[question] = asyncio.ensure_future(ask())
            asking.add_done_callback(lambda done: self._note(question, done))
        return await asyncio.shield(asking)

    def clear(self) -> None:
        """Forget all answers: something was changed."""
        self._answers.clear()

    def _note(self, question: object, done: asyncio.Task[Any]) -> None:
        self._asking.pop(question, None)
        if done.cancelled() or done.exception() is not None:
            return
        self._answers[question] = asyncio.get_running_loop().time(), done.result()
        self._answers.move_to_end(question)
        while len(self._answers) > _MOST_KEPT:
            self._answers.popitem(last=False)


class _SharedLink:
    """A link to the broker, which takes one question after the other; each reader has one in that line."""

    def __init__(self, broker: PageBroker) -> None:
        self._broker, self._turns = broker, ReaderTurns()

    async def ask(self, reader: UserName, question: Any, kind: type[Answer]) -> Answer:
        """Ask in the reader's turn."""
        async with self._turns.take(reader):
            return await self._broker.ask(question, kind)


class PoolSource:
    """The pool, for the pages, by four links to the broker: nobody waits for what others ask that takes long.

    To read what a project used takes the ledger seconds; to ask nodes for cells, as long as the slowest takes; to sum
    the ledger up, minutes.
    """

    def __init__(self, broker: PageBroker, finder: PageBroker, sums: PageBroker, history: PageBroker) -> None:
        self._broker, self._sums = broker, sums
        self._acting, self._finder, self._history = _SharedLink(broker), _SharedLink(finder), _SharedLink(history)
        self._pool, self._past = _FreshAnswers(POOL_FRESH_S), _FreshAnswers(_PAST_FRESH_S)
        self._use, self._cells = _FreshAnswers(_USE_FRESH_S), _FreshAnswers(_CELLS_FRESH_S)

    async def fetch_pool(self) -> page.PoolReport:
        """Ask for the whole pool as it is now, with everybody's names."""
        asked = page.AskPool()
        report: page.PoolReport = await self._pool.fetch(asked, lambda: self._broker.ask(asked, page.PoolReport))
        return report

    async def fetch_past(self, user: UserName, limit: int) -> page.PastCells:
        """Ask for a user's last cells."""
        question = page.AskPast(user=user, limit=limit)
        ask = partial(self._acting.ask, user, question, page.PastCells)
        past: page.PastCells = await self._past.fetch(question, ask)
        return past

    async def fetch_use(
        self, reader: UserName, project: ProjectId, stretch: page.Stretch, count: int
    ) -> page.UseReport:
        """Ask what a project used: all who ask the same have the answer of the first."""
        question = page.AskUse(project=project, stretch=stretch, count=count)
        ask = partial(self._history.ask, reader, question, page.UseReport)
        use: page.UseReport = await self._use.fetch(question, ask)
        return use

    async def fetch_usage(self, question: page.AskUsage) -> page.UsageTable:
        """Ask who used how much, over a link that waits for minutes: all of the ledger may be read."""
        table: page.UsageTable = await self._use.fetch(question, lambda: self._sums.ask(question, page.UsageTable))
        return table

    async def fetch_cells(self, user: UserName) -> Found:
        """Ask all nodes for a user's cells."""
        question = page.FindFor(user=user)
        found: Found = await self._cells.fetch(question, partial(self._finder.ask, user, question, Found))
        return found

    async def fetch_for(self, asked: page.OnBehalf, kind: type[Answer]) -> Answer:
        """Ask something in a reader's name that changes nothing."""
        return await self._acting.ask(asked.reader.user, asked, kind)

    async def change(self, asked: page.OnBehalf, kind: type[Answer]) -> Answer:
        """Ask or change something in a reader's name; the pool is drawn anew for all after that."""
        is_refused = False
        try:
            return await self._acting.ask(asked.reader.user, asked, kind)
        except ApiRefused:
            is_refused = True
            raise
        finally:
            if not is_refused:
                self._pool.clear()
                self._cells.clear()
