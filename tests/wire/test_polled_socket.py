"""A socket that is read and written without futures: nothing that has come is overlooked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import zmq

from bulletin.wire.polled_socket import PolledSocket

_PATIENCE_S = 30


@asynccontextmanager
async def _pair() -> AsyncIterator[tuple[PolledSocket, zmq.Socket[bytes]]]:
    """A polled ROUTER, and a plain DEALER that is connected to it and has said one word."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    server, client = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    server.router_mandatory = True
    client.routing_id = b"peer"
    client.connect(f"tcp://127.0.0.1:{server.bind_to_random_port('tcp://127.0.0.1')}")
    polled = PolledSocket(server)
    try:
        client.send(b"hello")
        assert await _next(polled) == b"hello"
        yield polled, client
    finally:
        polled.close()
        context.destroy(linger=0)


async def _next(polled: PolledSocket) -> bytes:
    async with asyncio.timeout(_PATIENCE_S):
        route, frame = await polled.receive()
    assert route.bytes == b"peer"
    return frame.bytes


def test_what_comes_while_something_is_sent_is_heard_by_who_waits_already() -> None:
    async def main() -> None:
        async with _pair() as (polled, client):
            for number in range(200):
                waiting = asyncio.create_task(_next(polled))
                await asyncio.sleep(0)
                client.send(str(number).encode())
                for _ in range(20):
                    polled.send([b"peer", b"said meanwhile"])  # makes ZeroMQ look, after which its descriptor is quiet
                    assert client.recv() == b"said meanwhile"
                assert await waiting == str(number).encode()

    asyncio.run(main())


def test_many_messages_come_in_their_order_with_all_their_frames() -> None:
    async def main() -> None:
        async with _pair() as (polled, client):
            for number in range(1000):
                client.send_multipart([str(number).encode(), b"", bytes(number)])
            for number in range(1000):
                _, *frames = await polled.receive()
                assert [frame.bytes for frame in frames] == [str(number).encode(), b"", bytes(number)]

    asyncio.run(main())


def test_who_waits_can_be_cancelled_and_another_waits_in_its_place() -> None:
    async def main() -> None:
        async with _pair() as (polled, client):
            first = asyncio.create_task(polled.receive())
            await asyncio.sleep(0)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            client.send(b"for another")
            assert await _next(polled) == b"for another"

    asyncio.run(main())


def test_what_is_sent_to_nobody_is_an_error_of_the_sender() -> None:
    async def main() -> None:
        async with _pair() as (polled, _):
            with pytest.raises(zmq.ZMQError) as caught:
                polled.send([b"stranger", b"word"])
            assert caught.value.errno == zmq.EHOSTUNREACH

    asyncio.run(main())
