"""The service as a client of the broker, by wire: against a broker of five lines."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from bulletin.codes import RefusalCode
from bulletin.errors import NoPool
from bulletin.ids import UserName
from bulletin.wire import channel
from bulletin.wire.clients import FromClient
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.keys import Connection, make_keys, write_private
from bulletin.wire.messages import Hello, Look, Message, Picture, Refusal, Unknown, Welcome
from bulletin.wire.page_requests import AskUsage, UsageTable
from bulletin_spawner.service.broker_client import SUMS_S, BrokerClient

PICTURE = Picture(slots=(), waiting=(), recent=(), counters={}, uptime_ms=1, slot_word="GPU")
WELCOME = Welcome(user=UserName("root"), version="0")


def against(
    folder: Path,
    answers: list[Message],
    scenario: Callable[[BrokerClient], Awaitable[None]],
    *,
    takes_s: float = 0.0,
    patience_s: float = 3.0,
) -> list[object]:
    """Run a scenario against a broker that gives these answers in order, and takes so long for all but a Welcome.

    What it was asked.
    """
    asked: list[object] = []

    async def broker(socket: zmq.asyncio.Socket) -> None:
        unpacker: Unpacker[FromClient] = Unpacker(FromClient)
        for answer in answers:
            route, *frames = await socket.recv_multipart()
            asked.append(unpacker.unpack(frames)[0])
            if not isinstance(answer, Welcome):
                await asyncio.sleep(takes_s)  # the sums are long
            await socket.send_multipart([route, *pack(answer)])

    async def main() -> None:
        keys = make_keys()
        with zmq.asyncio.Context() as context, context.socket(zmq.ROUTER) as socket:
            channel.serve(socket, keys, channel.CONTROL_LIMIT, 0)
            address = channel.bind(socket, "tcp://127.0.0.1:0")
            write_private(
                folder / "connection.json", Connection(address=address, public_key=keys.public, token="the token")
            )
            task = asyncio.create_task(broker(socket))
            client = BrokerClient(folder, "the token of the service", patience_s)
            try:
                await scenario(client)
                await task
            finally:
                task.cancel()
                client.close()

    asyncio.run(main())
    return asked


#: Longer than a page waits for what it shows.
LONG_S = 3.5
TABLE = UsageTable(csv="of,held_ms", has_more=False)


async def sums(client: BrokerClient) -> None:
    assert await client.ask(AskUsage(since_ms=0, until_ms=1), UsageTable) == TABLE


async def looks(client: BrokerClient) -> None:
    assert await client.fetch_picture() == PICTURE


def test_it_says_who_it_is_with_the_connections_token_and_gets_the_picture(tmp_path: Path) -> None:
    hello, look = against(tmp_path, [WELCOME, PICTURE], looks)
    assert isinstance(hello, Hello)
    assert hello.token == "the token"
    assert look == Look()


def test_many_pages_at_once_are_one_question(tmp_path: Path) -> None:
    async def scenario(client: BrokerClient) -> None:
        assert await asyncio.gather(*(client.fetch_picture() for _ in range(20))) == [PICTURE] * 20

    assert len(against(tmp_path, [WELCOME, PICTURE], scenario)) == 2


def test_it_introduces_itself_again_to_a_broker_that_has_forgotten_it(tmp_path: Path) -> None:
    asked = against(tmp_path, [WELCOME, Unknown(), WELCOME, PICTURE], looks)
    assert [type(message) for message in asked] == [Hello, Look, Hello, Look]


def test_a_broker_that_refuses_is_quoted_and_asked_again_next_time(tmp_path: Path) -> None:
    async def scenario(client: BrokerClient) -> None:
        with pytest.raises(NoPool, match="An old token"):
            await client.fetch_picture()
        await looks(client)

    against(tmp_path, [Refusal(code=RefusalCode.NOT_ALLOWED, sentence="An old token."), WELCOME, PICTURE], scenario)


def test_without_a_pool_it_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = BrokerClient(tmp_path, "")
        with pytest.raises(NoPool, match="not running"):
            await client.fetch_picture()
        client.close()

    asyncio.run(scenario())


def test_a_sum_that_takes_the_ledger_longer_than_a_page_waits_comes(tmp_path: Path) -> None:
    asked = against(tmp_path, [WELCOME, TABLE], sums, takes_s=LONG_S, patience_s=SUMS_S)
    assert [type(message) for message in asked] == [Hello, AskUsage]


def test_who_waits_for_minutes_hears_soon_that_the_pool_has_gone(tmp_path: Path) -> None:
    async def scenario(client: BrokerClient) -> None:
        await sums(client)
        with pytest.raises(NoPool, match="does not answer"):
            await asyncio.wait_for(sums(client), SUMS_S / 2)

    against(tmp_path, [WELCOME, TABLE], scenario, patience_s=SUMS_S)
