"""GPUs for a server that is about to start: asked for as its user, by the token that the server will have.

The broker takes the hub for the server's first notebook: both name the same kernel and the same request. So that
notebook finds what was granted, and nobody else does.
"""

import asyncio
import secrets
import time
from typing import Self

import msgspec
import zmq
import zmq.asyncio
from tornado import web

import bulletin
from bulletin.ids import KernelId, RequestId
from bulletin.wait_words import as_sentence, describe_wait
from bulletin.wire import messages as wire
from bulletin.wire.channel import CONTROL_LIMIT, connect
from bulletin.wire.clients import FromClient, ToClient
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.keys import PublicFile
from bulletin_spawner.form_words import describe_refusal, without_options
from bulletin_spawner.notebook_kinds import NotebookKind

_AGAIN = "Start a notebook on CPUs and ask for a GPU cell by cell, or try again later."
#: How long a broker may take to know the user, and to hear that a place is given back.
_HELLO_S, _GOODBYE_S = 20.0, 10.0
#: A broker that does not know who asks after so long has not heard the hello, which takes the hub its time.
_HELLO_AGAIN_S = 5.0
#: So often a broker wants to hear who waits; it takes a request back of which it has heard nothing for a while.
_PING_S = 1.0


class PlaceRefused(web.HTTPError):
    """A server is not started, since what its user chose could not be had. JupyterHub shows the message.

    It is an error of HTTP that is its user's: of any other the hub's form says that it was not handled, if it comes
    within a second, and a few in a row end a hub that has `Spawner.consecutive_failure_limit`.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(409, sentence)
        self.jupyterhub_message = sentence

    def __str__(self) -> str:
        return self.jupyterhub_message


class ReservedPlace(msgspec.Struct, frozen=True):
    """A place that a server has: the name by which its first notebook asks for it, which only its user can use."""

    name: str
    options: str = ""  #: of `%%gpu`: those of each cell of that notebook

    @classmethod
    def draw(cls, options: str = "") -> "ReservedPlace":
        """Draw a name."""
        return cls(f"server-{secrets.token_hex(16)}", options)


def make_request(place: ReservedPlace, kind: NotebookKind) -> wire.Submit:
    """Make the request for what a kind of notebook has: its cells ask for the same."""
    return wire.Submit(
        request=RequestId(place.name),
        qos=kind.qos or "reserved",
        is_qos_asked=bool(kind.qos),
        gpus=kind.gpus,
        gpu_type=kind.gpu_type,
        walltime_ms=kind.walltime_ms,
        label=kind.title[:100],
        keep_ms=kind.keep_ms,
        keep_at_once=True,
        is_exclusive=kind.exclusive,
    )


async def reserve(pool: PublicFile, token: str, place: ReservedPlace, kind: NotebookKind, wait_s: float) -> None:
    """Ask for what a kind of notebook has, and wait for it for so long at most.

    Raises
    ------
    PlaceRefused
        If it is refused, or not there in time: with the reason, and how long it may take.
    """
    request, told = make_request(place, kind), ""
    async with _Line(pool) as line:
        try:
            async with asyncio.timeout(_HELLO_S):
                await line.say_hello(token, place)
            async with asyncio.timeout(wait_s):
                await line.say(request)
                while True:
                    match await line.hear():
                        case wire.Granted():
                            return
                        case wire.Refusal(sentence=sentence):
                            raise PlaceRefused(describe_refusal(kind.title, sentence))
                        case wire.Queued() as queued:
                            wait = describe_wait(queued.usual_ms, queued.wait_ms)
                            told = (
                                f"{without_options(as_sentence(queued.reason))}{f' It takes {wait}.' if wait else ''}"
                            )
                        case wire.Unknown():  # the broker was started again, and has neither of the two
                            await line.say_hello(token, place)
                            await line.say(request)
                        case _:
                            pass
        except TimeoutError:
            await line.say(wire.Withdraw(request=request.request))
            why = told or "The pool does not answer."
            raise PlaceRefused(f"No GPU came free for your notebook. {why} {_AGAIN}") from None


async def release_place(pool: PublicFile, token: str, place: ReservedPlace) -> None:
    """Give back what a server had, if it has it still.

    Raises TimeoutError or PlaceRefused where the pool does not hear of it: then it ends by itself, later.
    """
    async with _Line(pool) as line, asyncio.timeout(_GOODBYE_S):
        await line.say_hello(token, place)
        await line.say(wire.Withdraw(request=RequestId(place.name)))
        await line.say(wire.Ping())
        while not isinstance(await line.hear(), wire.Pong):
            pass


class _Line:
    """A connection to the broker, for one conversation. Who waits for a word says each second that it is there."""

    def __init__(self, pool: PublicFile) -> None:
        self._context = zmq.asyncio.Context()
        self._unpacker: Unpacker[ToClient] = Unpacker(ToClient)
        self._socket = connect(self._context.socket(zmq.DEALER), pool.address, pool.public_key, CONTROL_LIMIT)
        self._ping_s = time.monotonic() + _PING_S

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._context.destroy(linger=500)

    async def say_hello(self, token: str, place: ReservedPlace) -> None:
        hello = wire.Hello(
            protocol=wire.PROTOCOL, version=bulletin.__version__, token=token, kernel=KernelId(place.name)
        )
        await self.say(hello)
        said_s = time.monotonic()
        while True:
            match await self.hear():
                case wire.Welcome():
                    return
                case wire.Refusal(sentence=sentence):
                    raise PlaceRefused(f"{as_sentence(sentence)} {_AGAIN}")
                case wire.Unknown() if time.monotonic() - said_s > _HELLO_AGAIN_S:  # said to one that is gone
                    await self.say(hello)
                    said_s = time.monotonic()
                case _:
                    pass

    async def say(self, message: FromClient) -> None:
        await self._socket.send_multipart(pack(message))

    async def hear(self) -> ToClient:
        while not await self._socket.poll(max(0, round((self._ping_s - time.monotonic()) * 1_000))):
            await self._ping()
        if time.monotonic() >= self._ping_s:  # where there is always something to hear, too
            await self._ping()
        answer, _ = self._unpacker.unpack(await self._socket.recv_multipart())
        return answer

    async def _ping(self) -> None:
        self._ping_s = time.monotonic() + _PING_S
        await self.say(wire.Ping())
