"""Where a broker listens: wherever the name leads to that its admin has given it, also while it runs."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import zmq
import zmq.asyncio

from bulletin.wire import channel
from bulletin.wire.connections import Connections
from bulletin.wire.keys import make_keys
from gpu_worker.broker import broker_doors
from gpu_worker.broker.broker_doors import BrokerDoors, open_files, port_of
from gpu_worker.config import Pool


class OpenDoors(msgspec.Struct):
    """A broker's doors, which follow the name that it was given: 127.0.0.1 at first."""

    context: zmq.asyncio.Context
    servers: list[zmq.asyncio.Socket]
    ports: list[int]
    public_key: str

    async def find_missing(self, *hosts: str) -> list[str]:
        """Come to each door at the address of its host; return those at which nobody hears it."""
        missing = list[str]()
        for host, server, port in zip(hosts, self.servers, self.ports, strict=True):
            client = self.context.socket(zmq.DEALER)
            channel.connect(client, f"tcp://{host}:{port}", self.public_key, channel.CONTROL_LIMIT)
            await client.send(b"here")
            if await server.poll(30_000):
                await server.recv_multipart()
            else:
                missing.append(f"{host}:{port}")
            client.close(0)
        return missing


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[OpenDoors]:
    context, keys = zmq.asyncio.Context(), make_keys()
    servers = [channel.serve(context.socket(zmq.ROUTER), keys, channel.CONTROL_LIMIT, 100) for _ in range(2)]
    watched = [Connections(context, one, lambda _: True, 30.0) for one in servers]
    settings = Pool(folder=str(folder), host="localhost").settings()
    doors = BrokerDoors(settings, (servers[0], servers[1]), (watched[0], watched[1]))
    files = doors.open(open_files(settings))
    ports = [port_of(files.kernel_address), port_of(files.agent_address)]
    following = asyncio.create_task(doors.follow_name())
    try:
        yield OpenDoors(context, servers, ports, keys.public)
    finally:
        following.cancel()
        for one in watched:
            one.close()
        context.destroy(linger=0)


def test_a_broker_listens_where_its_name_leads_to_once_its_host_has_another_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_doors, "_LOOK_S", 0.01)
    leads_to = iter(("127.0.0.1", "192.0.2.1", "127.0.0.2"))  # not known yet; another host's; known
    monkeypatch.setattr(broker_doors, "resolve", lambda name: next(leads_to))
    monkeypatch.setattr(broker_doors, "is_of_this_host", lambda host: host == "127.0.0.2")

    async def main() -> None:
        async with opened(tmp_path) as doors:
            assert await doors.find_missing("127.0.0.2", "127.0.0.2") == [], "at the other address, the same ports"

    asyncio.run(main())


def test_a_door_whose_port_is_taken_at_the_other_address_keeps_neither_the_other_one_nor_the_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_doors, "_LOOK_S", 0.01)
    where = "127.0.0.1"
    monkeypatch.setattr(broker_doors, "resolve", lambda name: where)
    monkeypatch.setattr(broker_doors, "is_of_this_host", lambda host: host == where)

    async def main() -> None:
        nonlocal where
        async with opened(tmp_path) as doors:
            with socket.create_server(("127.0.0.2", doors.ports[0])):
                where = "127.0.0.2"
                # The first door fails before the second one moves.
                assert await doors.find_missing("127.0.0.1", "127.0.0.2") == []
            assert await doors.find_missing("127.0.0.2", "127.0.0.2") == [], "when the port is free"
            with socket.create_server(("127.0.0.3", doors.ports[0])):
                where = "127.0.0.3"
                assert await doors.find_missing("127.0.0.2", "127.0.0.3") == []
                where = "127.0.0.2"
                assert await doors.find_missing("127.0.0.2", "127.0.0.2") == [], "as before"

    asyncio.run(main())
