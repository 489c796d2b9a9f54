"""Junk on every socket: counted, answered or dropped, and the service is unharmed."""

import os
import random
import socket

import msgspec
import zmq

from bulletin.codes import RefusalCode
from bulletin.wire import channel, frames, keys, messages as wire
from tests.integration.conftest import PATIENCE_S, Client, Notebook, PoolProcess, until

FRAMES = 4_000
ANSWERS: frames.Unpacker[wire.Unknown | wire.Malformed | wire.Pong | wire.Refusal | wire.Gone] = frames.Unpacker(
    wire.Unknown | wire.Malformed | wire.Pong | wire.Refusal | wire.Gone
)


def junk(dice: random.Random, samples: list[wire.Message]) -> list[bytes]:
    """One piece of junk: random bytes, broken or absurd messages, the wrong version, the wrong link."""
    kind = dice.randrange(7)
    body = bytearray(msgspec.msgpack.encode(dice.choice(samples)))
    if kind == 0:
        return [dice.randbytes(dice.randrange(200)) for _ in range(dice.randrange(6))]
    if kind == 1:
        return [frames.MARK, dice.randbytes(dice.randrange(300))]
    if kind == 2:  # one byte of a message changed
        body[dice.randrange(len(body))] ^= 1 << dice.randrange(8)
        return [frames.MARK, bytes(body)]
    if kind == 3:
        return [b"BLTN" + bytes([dice.randrange(256)]), bytes(body)]
    if kind == 4:  # absurd sizes in a valid struct
        size = dice.choice([2**62, -1, 2**40])
        run = {"kind": "run", "cell": "c", "source": "", "number": 1, "parcel": {"sizes": [size], "inline": False}}
        return [frames.MARK, msgspec.msgpack.encode(run)]
    if kind == 5:
        return [frames.MARK, bytes(body), *([b"blob"] * dice.randrange(50))]
    return [frames.MARK, bytes(body[: dice.randrange(len(body))])]


SAMPLES: list[wire.Message] = [
    wire.Submit(request="r", gpus=2**40),  # type: ignore[arg-type]
    wire.Withdraw(request="r"),  # type: ignore[arg-type]
    wire.Look(),
    wire.Ping(),
    wire.Hello(protocol=99, version="9", token="x" * 1000, kernel="k"),  # type: ignore[arg-type]
    wire.Register(
        protocol=1,
        version="0",
        secret="guess",
        agent="a",  # type: ignore[arg-type]
        node="n",
        address=wire.AgentAddress(address="tcp://127.0.0.1:1", public_key="k"),
        slots=(),
    ),
    wire.Attach(protocol=1, lease="l", ticket="guess"),  # type: ignore[arg-type]
    wire.Chunk(cell="c", size=2**50, at=2**60),  # type: ignore[arg-type]
    wire.Stop(cell="c", hard=True),  # type: ignore[arg-type]
    wire.Leave(),
]


def test_ten_thousand_frames_of_junk_harm_nobody(pool: PoolProcess, notebook: Notebook) -> None:
    seed = int.from_bytes(os.urandom(4))
    dice = random.Random(seed)
    print("seed", seed)
    files = keys.read_private(pool.folder / "pool.json", keys.PoolFile)
    agent = keys.read_private(pool.folder / "agent.json", keys.AgentFile)
    notebook.run("%%gpu\nx = 1")
    pids = [pool.part(part).pid for part in ("broker", "agent", "executor")]
    before = sum(pool.picture().counters.values())
    context = zmq.Context()
    thrown = 0
    targets = [
        (files.kernel_address, files.keys.public, channel.CONTROL_LIMIT, None),
        (files.agent_address, files.keys.public, channel.CONTROL_LIMIT, keys.agent_keys(files.agent_secret)),
        (agent.address, agent.keys.public, channel.DATA_LIMIT, None),
    ]
    for address, key, limit, own in targets:
        dealer = channel.connect(context.socket(zmq.DEALER), address, key, limit, own)
        for _ in range(FRAMES):
            parts = junk(dice, SAMPLES)
            dealer.send_multipart(parts or [b""])
            thrown += 1
        said: set[str] = set()

        def say_ping(dealer: zmq.Socket[bytes] = dealer, said: set[str] = said) -> bool:
            """Say one thing more, which is dropped as long as too much was said; whether all was answered by now."""
            dealer.send_multipart(frames.pack(wire.Ping()))
            while dealer.poll(50):
                said.add(type(ANSWERS.unpack(dealer.recv_multipart())[0]).__name__)
            return {"Malformed", "Unknown"} <= said

        until(say_ping, "what is malformed, and whom nobody knows, to be told so")
        dealer.close()
    context.destroy(linger=0)
    assert thrown >= 10_000
    assert [pool.part(part).pid for part in ("broker", "agent", "executor")] == pids
    assert pool.picture().counters["malformed"] > 0
    node = pool.picture().slots[0].node
    until(lambda: pool.picture().counters.get(f"malformed at {node}"), "the agent's count")
    assert sum(pool.picture().counters.values()) > before
    assert notebook.run("%%gpu\nx += 1\nprint('unharmed')").stream() == "unharmed\n"


def test_a_wrong_key_and_bytes_that_are_not_zeromq_are_counted_by_the_monitor(pool: PoolProcess) -> None:
    connection = pool.connection
    before = pool.picture().counters.get("failed handshakes", 0)
    context = zmq.Context()
    stranger = channel.connect(
        context.socket(zmq.DEALER), connection.address, keys.make_keys().public, channel.CONTROL_LIMIT
    )
    stranger.send_multipart(frames.pack(wire.Ping()))
    plain = context.socket(zmq.DEALER)
    plain.linger = 0
    plain.connect(connection.address)
    plain.send_multipart(frames.pack(wire.Ping()))
    host, port = connection.address.removeprefix("tcp://").rsplit(":", 1)
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
    until(lambda: pool.picture().counters.get("failed handshakes", 0) >= before + 2, "the monitor to count")
    assert not stranger.poll(0)
    assert not plain.poll(0)
    context.destroy(linger=0)


def test_another_version_is_refused_with_a_sentence(pool: PoolProcess) -> None:
    client = Client(pool.connection)
    client.send(wire.Hello(protocol=99, version="9", token=pool.connection.token, kernel="k"))  # type: ignore[arg-type]
    answer = client.receive()
    assert isinstance(answer, wire.Refusal)
    assert answer.code is RefusalCode.VERSION_MISMATCH
    assert "upgraded" in answer.sentence
    client.close()


def test_a_wrong_token_is_refused_with_a_sentence(pool: PoolProcess) -> None:
    client = Client(pool.connection)
    answer = client.hello("guess")
    assert isinstance(answer, wire.Refusal)
    assert answer.code is RefusalCode.NOT_ALLOWED
    client.close()


def test_the_door_gives_nothing_without_a_ticket(pool: PoolProcess) -> None:
    for words in (b"guess\n", b"\xff" * 5000 + b"\n", b"\n"):
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(30)
            door.connect(str(pool.folder / "door"))
            door.sendall(words)
            try:
                data, descriptors, *_ = socket.recv_fds(door, 1, 2)
            except ConnectionResetError:  # it hung up with words unread
                continue
            assert (data, descriptors) == (b"", [])


def test_where_agents_come_nobody_is_heard_who_does_not_know_the_pools_secret(pool: PoolProcess) -> None:
    files = keys.read_private(pool.folder / "pool.json", keys.PoolFile)
    context = zmq.Context()
    before = pool.picture().counters["failed handshakes"]
    stranger, agent = (
        channel.connect(context.socket(zmq.DEALER), files.agent_address, files.keys.public, channel.CONTROL_LIMIT, own)
        for own in (None, keys.agent_keys(files.agent_secret))
    )
    for dealer in (stranger, agent):
        dealer.send_multipart(frames.pack(wire.Ping()))
    assert agent.poll(PATIENCE_S * 1000)
    assert isinstance(ANSWERS.unpack(agent.recv_multipart())[0], wire.Unknown)
    until(lambda: pool.picture().counters["failed handshakes"] > before, "the stranger to be turned away")
    assert not stranger.poll(0)
    context.destroy(linger=0)
