"""Who says more than the broker listens to is told so, and holds up nobody else."""

import resource
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import zmq

from bulletin.codes import RefusalCode
from bulletin.wire import channel, frames, messages as wire
from tests.integration.conftest import Client, Notebook, PoolProcess, until


def flood(client: Client, message: wire.Message, count: int) -> None:
    for _ in range(count):
        client.send(message)


def test_who_asks_too_much_is_told_so_while_a_notebook_goes_on(pool: PoolProcess, notebook: Notebook) -> None:
    eve = Client(pool.connection)
    assert isinstance(eve.hello(pool.connection.token, kernel="eve"), wire.Welcome)
    flood(eve, wire.Find(), 5_000)
    heard: list[wire.ToKernel] = []
    while not any(isinstance(message, wire.Refusal) for message in heard):
        heard.append(eve.receive())
    (refused,) = (message for message in heard if isinstance(message, wire.Refusal))
    assert refused.code is RefusalCode.TOO_FAST
    assert refused.sentence.startswith("This notebook asks more at once than the pool listens to")
    assert notebook.run("%%gpu\nprint('goes on')").stream() == "goes on\n"
    until(lambda: pool.picture().counters["too fast"] > 4_000, "the broker to have dropped the rest")
    eve.close()


def test_outsiders_who_flood_and_go_in_the_middle_of_it_do_not_end_the_broker(
    pool: PoolProcess, notebook: Notebook
) -> None:
    broker = pool.part("broker").pid
    message = frames.pack(wire.Hello(protocol=wire.PROTOCOL, version="1", token="guess" * 500, kernel="k"))  # type: ignore[arg-type]
    for _ in range(6):
        context = zmq.Context()
        crowd = []
        for _ in range(5):
            peer = channel.connect(
                context.socket(zmq.DEALER), pool.connection.address, pool.connection.public_key, channel.CONTROL_LIMIT
            )
            crowd.append(peer)
        for peer in crowd:
            for _ in range(3_000):
                peer.send_multipart(message)
        assert notebook.run("%%gpu\nprint('goes on')").stream() == "goes on\n"
        context.destroy(linger=0)
    assert pool.part("broker").pid == broker


def test_connections_that_say_nothing_keep_nobody_out(tmp_path: Path) -> None:
    few = (
        f"import os, resource, sys; resource.setrlimit({resource.RLIMIT_NOFILE}, (400, 400)); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    pool = PoolProcess(tmp_path / "few", "--slots", "1", under=[sys.executable, "-c", few])
    crowd: list[socket.socket] = []
    try:
        broker, agent = pool.part("broker"), pool.part("agent")
        for part in (broker, agent):
            ports = [one.laddr.port for one in part.net_connections("tcp") if one.status == "LISTEN"]
            for port in ports:
                crowd += [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
        client = Client(pool.connection)
        assert isinstance(client.hello(pool.connection.token), wire.Welcome)
        client.send(wire.Submit(request="r"))  # type: ignore[arg-type]
        while not isinstance(client.receive(), wire.Granted):
            pass
        client.close()
        assert max(part.num_fds() for part in (broker, agent)) < 350
        assert [pool.part(name).pid for name in ("broker", "agent")] == [broker.pid, agent.pid]
    finally:
        for one in crowd:
            one.close()
        pool.stop()


def test_pings_that_waited_for_the_broker_cost_a_notebook_nothing(start_pool: Callable[..., PoolProcess]) -> None:
    pool = start_pool("--slots", "1")
    client = Client(pool.connection)
    assert isinstance(client.hello(pool.connection.token), wire.Welcome)
    flood(client, wire.Ping(), 5_000)
    client.send(wire.Submit(request="r"))  # type: ignore[arg-type]
    deadline = time.monotonic() + 60
    while not isinstance(answer := client.receive(), wire.Granted):
        assert not isinstance(answer, wire.Refusal)
        assert time.monotonic() < deadline
    client.close()
