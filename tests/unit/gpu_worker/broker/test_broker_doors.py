"""Where a broker listens: wherever the name leads to that its admin has given it, also while it runs."""

import asyncio
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from bulletin.wire import channel
from bulletin.wire.connections import Connections
from bulletin.wire.keys import make_keys
from gpu_worker.broker import broker_doors
from gpu_worker.broker.broker_doors import BrokerDoors, open_files, port_of
from gpu_worker.config import Pool


def test_a_broker_listens_where_its_name_leads_to_once_its_host_has_another_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_doors, "_LOOK_S", 0.01)
    leads_to = iter(("127.0.0.1", "192.0.2.1", "127.0.0.2"))  # not known yet; another host's; known
    monkeypatch.setattr(broker_doors, "resolve", lambda name: next(leads_to))
    monkeypatch.setattr(broker_doors, "is_of_this_host", lambda host: host == "127.0.0.2")

    async def main() -> None:
        context, keys = zmq.asyncio.Context(), make_keys()
        sockets = [channel.serve(context.socket(zmq.ROUTER), keys, channel.CONTROL_LIMIT, 100) for _ in range(2)]
        watched = [Connections(context, one, lambda _: True, 30.0) for one in sockets]
        settings = Pool(folder=str(tmp_path), host="localhost").settings()
        doors = BrokerDoors(settings, (sockets[0], sockets[1]), (watched[0], watched[1]))
        files = doors.open(open_files(settings))
        following = asyncio.create_task(doors.follow_name())
        try:
            for server, told in zip(sockets, (files.kernel_address, files.agent_address), strict=True):
                client = context.socket(zmq.DEALER)
                address = f"tcp://127.0.0.2:{port_of(told)}"
                channel.connect(client, address, keys.public, channel.CONTROL_LIMIT)
                await client.send(b"here")
                assert await server.poll(30_000), "nobody comes at the other address, at the same port"
                client.close(0)
        finally:
            following.cancel()
            for one in watched:
                one.close()
            context.destroy(linger=0)

    asyncio.run(main())
