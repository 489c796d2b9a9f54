"""The service as a client of the broker, by wire: it asks for a picture of the pool, as any status client does."""

import asyncio
import os
import secrets
from pathlib import Path
from typing import TypeVar

import zmq
import zmq.asyncio

import bulletin
from bulletin.errors import BadConfig, MalformedMessage, NoPool
from bulletin.ids import KernelId
from bulletin.wire.channel import CONTROL_LIMIT, connect
from bulletin.wire.clients import FromClient, ToClient
from bulletin.wire.console import AskMetrics, MetricsReport
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.keys import Connection, read_private, read_public
from bulletin.wire.messages import (
    PROTOCOL,
    Hello,
    Look,
    Malformed,
    Picture,
    Refusal,
    Unknown,
    Welcome,
)
from bulletin.wire.page_requests import FromPage
from bulletin_spawner.service.api_problems import refused

Answer = TypeVar("Answer", Picture, MetricsReport)
Asked = TypeVar("Asked")
_IF_IT_STAYS = "If this stays, tell an admin of the hub: `bulletin doctor` says what is wrong."
_ANSWER_S = 3.0
#: So long a link waits that asks for sums over the ledger, which has millions of cells after years.
SUMS_S = 300.0
#: And one that reads what projects used: who gives up and asks again has the ledger read the same twice.
HISTORY_S = 30.0
#: Many pages ask; the broker is asked this often at most.
_FRESH_S = 0.5


class BrokerClient:
    """The link to the broker: connects on the first question, and again after a failure."""

    def __init__(self, folder: Path, own_token: str, patience_s: float = _ANSWER_S) -> None:
        """Take the pool's folder, the service's token to the hub's API, and for how long an answer is waited for."""
        self._folder, self._own_token, self._patience_s = folder, own_token, patience_s
        self._unpacker: Unpacker[ToClient] = Unpacker(ToClient)
        self._context = zmq.asyncio.Context()
        self._socket: zmq.asyncio.Socket | None = None
        self._asking = asyncio.Lock()
        self._picture: Picture | None = None
        self._fetched_s = 0.0

    async def fetch_picture(self) -> Picture:
        """Ask for the pool as it is now, with everybody's names: the caller leaves out what its reader may not see.

        Raises
        ------
        NoPool
            If the pool is not up, does not answer, or does not know us.
        """
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if self._picture is None or now - self._fetched_s > _FRESH_S:
                self._picture = None
                self._picture = await self._fetch(Look(), Picture)
                self._fetched_s = now
            return self._picture

    async def fetch_metrics(self) -> str:
        """Ask for what is counted of the pool, in Prometheus' text format: it names all projects. Raises NoPool."""
        async with self._asking:
            return (await self._fetch(AskMetrics(), MetricsReport)).text

    async def ask(self, question: FromPage, kind: type[Asked]) -> Asked:
        """Ask anything that the pages may, and return the answer if it is of this kind.

        Raises
        ------
        NoPool
            If the pool is not up, does not answer, or does not know us.
        ApiRefused
            With the broker's own sentence, where it says no.
        """
        async with self._asking:
            message = await self._exchange(question)
        if isinstance(message, Refusal):
            raise refused(message)
        if not isinstance(message, kind):
            self._drop()
            raise NoPool("The pool answered something else than it was asked.", _advice(message))
        return message

    def close(self) -> None:
        """Disconnect for good: nothing can be asked any more."""
        self._drop()
        self._context.term()

    async def _fetch(self, question: Look | AskMetrics, kind: type[Answer]) -> Answer:
        """Ask, and hold what comes to what was asked for. Raises NoPool."""
        message = await self._exchange(question)
        if not isinstance(message, kind):
            self._drop()
            raise NoPool("The pool answered something else than it was asked.", _advice(message))
        return message

    async def _exchange(self, question: FromClient) -> ToClient:
        """Ask over the link, which is made where there is none, or where the broker was restarted. Raises NoPool."""
        try:
            if self._socket is None or self._patience_s > _ANSWER_S:  # whether it is there is known soon
                async with asyncio.timeout(_ANSWER_S):
                    await self._introduce()
            async with asyncio.timeout(self._patience_s):
                message = await self._ask(question)
                if isinstance(message, Unknown):  # a broker that was restarted
                    await self._introduce()
                    message = await self._ask(question)
        except TimeoutError:
            self._drop()
            raise NoPool("The pool does not answer.", _IF_IT_STAYS) from None
        except FileNotFoundError:
            raise NoPool("The pool is not running.", _IF_IT_STAYS) from None
        except (BadConfig, MalformedMessage, zmq.ZMQError) as error:
            self._drop()
            raise NoPool(f"The pool cannot be asked: {error}.", _IF_IT_STAYS) from error
        return message

    async def _introduce(self) -> None:
        """Connect anew, and say who this is. Raises NoPool where the broker does not let it in."""
        self._drop()
        connection = self._find_connection()
        self._socket = connect(
            self._context.socket(zmq.DEALER), connection.address, connection.public_key, CONTROL_LIMIT
        )
        hello = Hello(
            protocol=PROTOCOL,
            version=bulletin.__version__,
            token=connection.token,
            kernel=KernelId(f"hub-page-{secrets.token_hex(8)}"),
        )
        answer = await self._ask(hello)
        if not isinstance(answer, Welcome):
            self._drop()
            raise NoPool("The pool does not let its own page in.", _advice(answer))

    def _find_connection(self) -> Connection:
        """Read how to reach the pool. Raises FileNotFoundError where it is not up, or BadConfig.

        A pool that runs as another user knows the page by the token that both have of the hub.
        """
        private = self._folder / "connection.json"
        if private.stat().st_uid == os.getuid():
            return read_private(private, Connection)
        public = read_public(self._folder / "public.json")
        return Connection(address=public.address, public_key=public.public_key, token=self._own_token)

    async def _ask(self, message: FromClient) -> ToClient:
        assert self._socket is not None
        await self._socket.send_multipart(pack(message))
        while True:
            answer, _ = self._unpacker.unpack(await self._socket.recv_multipart())
            if not isinstance(answer, Welcome) or isinstance(message, Hello):  # said again where slots are renamed
                return answer

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _advice(answer: ToClient) -> str:
    """Say what to do about an answer that was not asked for."""
    match answer:
        case Refusal(sentence=sentence) | Malformed(problem=sentence):
            return sentence
        case _:
            return _IF_IT_STAYS
