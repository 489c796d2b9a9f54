"""Connections of strangers are so many at most, and there for so long; whoever is known keeps theirs."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio

from bulletin.wire import channel
from bulletin.wire.connections import Connections
from bulletin.wire.keys import make_keys

_PATIENCE_S = 30


class Server:
    """A socket whose peers are known by a word."""

    def __init__(self, patience_s: float, most: int, unheard_limit_bytes: int | None = None) -> None:
        self.context, self.keys = zmq.asyncio.Context(), make_keys()
        self.known: set[bytes] = set()
        self.socket = channel.serve(self.context.socket(zmq.ROUTER), self.keys, 100_000, 0)
        self.connections = Connections(
            self.context, self.socket, self.known.__contains__, patience_s, most, unheard_limit_bytes
        )
        self.address = channel.bind(self.socket, "tcp://127.0.0.1:0")
        self.strangers: list[socket.socket] = []
        self.peers: list[zmq.asyncio.Socket] = []

    def connect(self) -> zmq.asyncio.Socket:
        """A peer that knows the key."""
        self.peers.append(self.context.socket(zmq.DEALER))
        return channel.connect(self.peers[-1], self.address, self.keys.public, 100_000)

    def connect_stranger(self) -> socket.socket:
        """One that connects and says nothing."""
        host, _, port = self.address.removeprefix("tcp://").rpartition(":")
        self.strangers.append(socket.create_connection((host, int(port))))
        self.strangers[-1].setblocking(False)
        return self.strangers[-1]

    async def hear(self) -> bytes:
        """Hear one message, and know who says "friend"; the route."""
        received = await self.socket.recv_multipart(copy=False)
        self.connections.note(received)
        route = received[0].bytes
        if received[1].bytes == b"friend":
            self.known.add(route)
        return bytes(route)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(_PATIENCE_S):
            while not condition():
                self.connections.tidy()
                self.socket.getsockopt(zmq.EVENTS)  # ZeroMQ lets go of things when it is asked something
                await asyncio.sleep(0.01)


def open_descriptors() -> dict[int, str]:
    """The descriptors of this process, and what each one is."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one by which they are listed
            found[int(path.name)] = str(path.readlink())
    return found


def open_files() -> dict[int, str]:
    """Leave out what has no file or peer: ZeroMQ's threads close theirs when they come to it."""
    return {number: what for number, what in open_descriptors().items() if not what.startswith("anon_inode:")}


async def is_ended(stranger: socket.socket) -> bool:
    """Wait until nothing more comes: whether the other side has ended it."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while await asyncio.get_running_loop().sock_recv(stranger, 4096):
                pass
    except ConnectionResetError:
        pass
    return True


def play(
    story: Callable[[Server], Coroutine[Any, Any, None]],
    patience_s: float = 1000.0,
    most: int = 1000,
    unheard_limit_bytes: int | None = None,
) -> None:
    async def main() -> None:
        server = Server(patience_s, most, unheard_limit_bytes)
        following = asyncio.create_task(server.connections.run())
        try:
            await story(server)
        finally:
            following.cancel()
            for stranger in server.strangers:
                stranger.close()
            for peer in server.peers:
                peer.close()
            server.connections.close()
            server.context.destroy(linger=0)

    asyncio.run(main())


def test_of_too_many_strangers_the_oldest_go_and_who_shows_who_they_are_gets_through() -> None:
    async def story(server: Server) -> None:
        crowd = [server.connect_stranger() for _ in range(30)]
        await server.until(lambda: server.connections.ended == 20)
        assert await is_ended(crowd[0])
        for _ in range(3):
            friend = server.connect()
            await friend.send(b"friend")
            route = await server.hear()
            for _ in range(30):
                server.connect_stranger()
            await server.socket.send_multipart([route, b"known"])
            assert await friend.recv() == b"known"

    play(story, most=10)


def test_a_stranger_who_says_nothing_is_left_there_for_so_long_and_a_friend_stays() -> None:
    async def story(server: Server) -> None:
        friend, stranger = server.connect(), server.connect_stranger()
        await friend.send(b"friend")
        route = await server.hear()
        await server.until(lambda: server.connections.ended >= 1)
        assert await is_ended(stranger)
        server.connections.tidy()
        await friend.send(b"again")
        assert await server.hear() == route, "by the same connection"

    play(story, patience_s=0.5)


def test_who_is_known_no_longer_is_a_stranger_again() -> None:
    async def story(server: Server) -> None:
        friend = server.connect()
        await friend.send(b"friend")
        route = await server.hear()
        server.connections.tidy()
        server.known.discard(route)
        await server.until(lambda: server.connections.ended == 1)
        await friend.send(b"back")
        assert await server.hear() != route, "it has connected anew"

    play(story, patience_s=0.5)


def test_what_waits_for_a_connection_goes_with_it() -> None:
    async def story(server: Server) -> None:
        friend = server.connect()
        await friend.send(b"friend")
        route = await server.hear()
        trackers = []
        for _ in range(3_000):  # more than the network's own buffers hold
            frame = zmq.Frame(bytes(10_000), track=True, copy=False)
            trackers.append(frame.tracker)
            await server.socket.send_multipart([route, frame], copy=False)
            del frame
        server.connections.end(route)
        await server.until(lambda: all(tracker.done for tracker in trackers))

    play(story)


def test_a_number_that_is_a_files_by_now_is_left_alone(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        friend = server.connect()
        await friend.send(b"friend")
        received = await server.socket.recv_multipart(copy=False)
        descriptor = int(received[-1].get(zmq.SRCFD))
        friend.close()
        await server.until(lambda: descriptor not in open_descriptors())
        with (tmp_path / "file").open("wb") as file:
            os.dup2(file.fileno(), descriptor)
        before = open_files()
        for _ in range(10):
            server.connections.note(received)
            server.connections.end(received[0].bytes)
        assert before[descriptor] == str(tmp_path / "file")
        assert open_files() == before
        os.close(descriptor)

    play(story)


async def carry(source: socket.socket, target: socket.socket, most: int) -> None:
    """Pass so many bytes on."""
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(source, min(most, 65_536)):  # where nothing is left, nothing is read
        await loop.sock_sendall(target, data)
        most -= len(data)


@contextlib.asynccontextmanager
async def relay(address: str, most: int) -> AsyncIterator[str]:
    """Listen before a server for one connection, and pass so many bytes on to it and all that it says; the address."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")

    async def join() -> None:
        client, _ = await asyncio.get_running_loop().sock_accept(listening)
        with client, socket.create_connection((host, int(port))) as server:
            server.setblocking(False)
            client.setblocking(False)
            await asyncio.gather(carry(client, server, most), carry(server, client, 10**9))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        joining = asyncio.create_task(join())
        try:
            yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            joining.cancel()
            await asyncio.gather(joining, return_exceptions=True)


def test_of_a_message_that_does_not_end_so_much_is_taken_and_of_whole_ones_any_number() -> None:
    limit_bytes, frame = 1_000_000, bytes(50_000)

    async def story(server: Server) -> None:
        friend = server.connect()
        await friend.send(b"friend")
        route = await server.hear()
        for _ in range(3 * limit_bytes // len(frame)):
            await friend.send(frame)
            await server.hear()
        server.connections.tidy()
        assert server.connections.ended == 0
        async with relay(server.address, 2 * limit_bytes) as server.address:
            flooder = server.connect()
            await flooder.send_multipart([frame] * (3 * limit_bytes // len(frame)))
            await server.until(lambda: server.connections.ended == 1)
        await friend.send(b"still there")
        assert await server.hear() == route

    play(story, unheard_limit_bytes=limit_bytes)
