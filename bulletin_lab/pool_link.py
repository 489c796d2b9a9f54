"""The server's link to the broker: one for all pages, asked now and then, with the token that the server has.

The token stays here. However many pages are open, and however often they ask, the broker is asked once in a while.
"""

import asyncio
import os
import secrets
from collections.abc import Mapping
from typing import TypeVar

import msgspec
import zmq
import zmq.asyncio

import bulletin
from bulletin.errors import MalformedMessage, NotDone
from bulletin.ids import CellId, KernelId
from bulletin.wire.channel import CONTROL_LIMIT, connect
from bulletin.wire.clients import FromClient, ToClient
from bulletin.wire.console import Cancel, Cancelled
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.messages import PROTOCOL, CellNote, Find, Found, Hello, Refusal, Unknown, Welcome
from bulletin.wire.messages.own_cells import AskOwn, OwnReport
from bulletin_lab.pool_search import FoundPool, NoneHere, search

Answer = TypeVar("Answer", OwnReport, Found, Cancelled)
_ANSWER_S = 4.0
#: The broker is asked this often at most, and nodes which cells they have.
_FRESH_S, _FOUND_FRESH_S = 2.0, 15.0
#: Where one page asks for all, others get that, too, for so long: the broker is not asked for each in turn.
_WHOLE_S = 10.0
#: After a broker that did not answer, or did not let us in, it is left alone for so long.
_REST_S = 15.0
#: So many cells that have ended are asked for.
_ENDED = 10


class NotLetIn(NotDone):
    """The broker does not let this user in. Nothing is shown then: the pool is not for this user."""


class OwnCells(msgspec.Struct, frozen=True, kw_only=True):
    """What the pool says of the user's cells."""

    report: OwnReport
    #: What nodes said of them so long ago; none where that was not asked.
    notes: tuple[CellNote, ...] = ()
    notes_age_ms: int = 0
    #: Whether `report` has the cells that ended, and `notes` were asked for.
    is_whole: bool = False


class PoolLink:
    """Connects on the first question, and again after a failure."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        """Take what the server's environment says of the pool."""
        self._environ = environ
        self._context: zmq.asyncio.Context | None = None
        self._socket: zmq.asyncio.Socket | None = None
        self._connected: FoundPool | None = None
        self._unpacker: Unpacker[ToClient] = Unpacker(ToClient)
        self._asking = asyncio.Lock()
        self._known: OwnCells | None = None
        self._known_s = self._found_s = self._resting_until_s = self._whole_until_s = float("-inf")
        self._notes: tuple[CellNote, ...] = ()
        self._running_then: frozenset[CellId] = frozenset()  #: when nodes were asked
        self._trouble = NotDone("")

    async def fetch(self, *, whole: bool) -> OwnCells | NoneHere:
        """Ask for the user's cells, or return what was said a moment ago.

        `whole`: with cells that have ended, and with what nodes say of those that run.

        Raises
        ------
        NotLetIn
            If the pool is not for this user.
        NotDone
            With a sentence, where the pool does not answer.
        """
        async with self._asking:
            pool = search(self._environ)
            if not isinstance(pool, FoundPool):
                self._drop()
                return pool
            if pool != self._connected:  # another one: what the last one said is of no use
                self._drop()
                self._connected, self._known = pool, None
                self._resting_until_s = self._found_s = float("-inf")
            try:
                return await self._fetch_seldom(pool, whole=whole)
            except NotLetIn:
                raise
            except NotDone:
                if pool.is_own:
                    return "startable"  # it ended without a word, and the next cell starts another
                raise

    async def cancel(self, name: str) -> Cancelled:
        """Withdraw a request of the user's, or stop its cell as the stop button does.

        Raises
        ------
        NotDone
            With a sentence, where the broker says no or does not answer, or nothing of the user's is called so: the
            server's token may be an admin's, whose page is no place to stop others' cells.
        """
        async with self._asking:
            pool = search(self._environ)
            if not isinstance(pool, FoundPool):
                raise NotDone("There is no GPU pool here.")
            self._connected = pool
            report = await self._ask(pool, AskOwn(), OwnReport)
            if name not in {*(one.lease for one in report.waiting), *(one.lease for one in report.running)}:
                raise NotDone("This cell neither waits nor runs any more.")
            self._known = None
            return await self._ask(pool, Cancel(id=name), Cancelled)

    def close(self) -> None:
        """Disconnect for good."""
        self._drop()
        if self._context is not None:
            self._context.destroy(linger=0)
            self._context = None

    async def _fetch_seldom(self, pool: FoundPool, *, whole: bool) -> OwnCells:
        now_s = asyncio.get_running_loop().time()
        if whole:
            self._whole_until_s = now_s + _WHOLE_S
        if now_s < self._resting_until_s:
            raise self._trouble
        known = self._known
        if known is not None and now_s - self._known_s <= _FRESH_S and (known.is_whole or not whole):
            return known
        try:
            known = await self._fetch(pool, whole=now_s < self._whole_until_s)
        except NotDone as error:
            self._trouble, self._known = error, None
            self._resting_until_s = asyncio.get_running_loop().time() + _REST_S
            raise
        self._known, self._known_s = known, now_s
        return known

    async def _fetch(self, pool: FoundPool, *, whole: bool) -> OwnCells:
        report = await self._ask(pool, AskOwn(ended=_ENDED if whole else 0), OwnReport)
        now_s = asyncio.get_running_loop().time()
        running = frozenset(one.cell for one in report.running if one.cell is not None)
        if whole and (now_s - self._found_s > _FOUND_FRESH_S or self._is_one_over(running)):
            self._notes = (await self._ask(pool, Find(), Found)).cells
            self._found_s, self._running_then = now_s, running
        age_ms = round((now_s - self._found_s) * 1000) if self._notes else 0
        return OwnCells(report=report, notes=self._notes, notes_age_ms=age_ms, is_whole=whole)

    def _is_one_over(self, running: frozenset[CellId]) -> bool:
        """Tell whether a cell without a notebook ran when nodes were asked, and does not any more."""
        over = self._running_then - running
        return any(note.cell in over for note in self._notes if not note.is_attended)

    async def _ask(self, pool: FoundPool, question: AskOwn | Find | Cancel, kind: type[Answer]) -> Answer:
        """Ask over the link, which is made where there is none, or where the broker was restarted."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                if self._socket is None:
                    await self._introduce(pool)
                message = await self._exchange(question)
                if isinstance(message, Unknown):  # a broker that was restarted
                    await self._introduce(pool)
                    message = await self._exchange(question)
        except TimeoutError:
            self._drop()
            raise NotDone("The GPU pool does not answer.") from None
        except (MalformedMessage, zmq.ZMQError, ValueError):
            self._drop()
            raise NotDone("The GPU pool cannot be asked.") from None
        if isinstance(message, kind):
            return message
        if isinstance(message, Refusal):
            raise NotDone(message.sentence)
        self._drop()
        raise NotDone("The GPU pool is of a version that does not answer this page.")

    async def _introduce(self, pool: FoundPool) -> None:
        """Connect anew, and say who this is. Raises NotLetIn where the broker does not want to know."""
        self._drop()
        if self._context is None:
            self._context = zmq.asyncio.Context()
        where = pool.connection
        self._socket = connect(self._context.socket(zmq.DEALER), where.address, where.public_key, CONTROL_LIMIT)
        hello = Hello(
            protocol=PROTOCOL,
            version=bulletin.__version__,
            token=where.token,
            kernel=KernelId(f"lab-{secrets.token_hex(8)}"),
        )
        answer = await self._exchange(hello)
        if not isinstance(answer, Welcome):
            self._drop()
            raise NotLetIn(
                answer.sentence if isinstance(answer, Refusal) else "The GPU pool does not know this server."
            )

    async def _exchange(self, message: FromClient) -> ToClient:
        assert self._socket is not None
        await self._socket.send_multipart(pack(message))
        while True:
            answer, _ = self._unpacker.unpack(await self._socket.recv_multipart())
            if not isinstance(answer, Welcome) or isinstance(message, Hello):
                return answer  # else it came by itself: slots are called otherwise now

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
