"""Broker and agents as processes of their own, as on several hosts."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import zmq

from bulletin import __version__
from bulletin.wire import channel, frames, keys, messages as wire
from bulletin.wire.keys import Keys
from tests.clean_environ import clean_environ
from tests.integration.conftest import PATIENCE_S, Client, in_tests, until

#: What the log of an agent says that may give its slots.
ACCEPTED = 'event="accepted by the broker"'
AGENT = ("--device", "cpu", "--slots", "1", "--isolation", "shared", "--Pool.preload=[]")
COMMAND = (sys.executable, "-m", "gpu_worker.cli")


def run(*words: str, under: Sequence[str] = (), status: int | None = 0) -> str:
    """What a command of ours prints, on both ways, when it ends with this status; None is any."""
    done = subprocess.run(
        [*under, *COMMAND, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=clean_environ()
    )
    assert status in (None, done.returncode), done.stdout + done.stderr
    return done.stdout + done.stderr


class Part:
    """A broker or an agent, with its log."""

    def __init__(
        self, part: str, folder: Path, *options: str, under: Sequence[str] = (), hub: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self.log = folder, folder.with_name(f"{folder.name}.{part}.log")
        words = in_tests(options) if part == "agent" else options
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*under, *COMMAND, part, "--folder", str(folder), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_environ() | dict(hub or {}),
            )

    def until_said(self, words: str, times: int = 1) -> str:
        """Wait until its log has the words so often; all that it said."""
        until(lambda: self.log.read_text().count(words) >= times, f"{words!r} in {self.log}")
        return self.log.read_text()

    def stop(self) -> None:
        """The end, unless it has come."""
        self.process.terminate()
        self.process.wait(PATIENCE_S)


def picture(folder: Path) -> wire.Picture | None:
    """The pool as its owner sees it; None before anybody may come."""
    try:
        connection = keys.read_private(folder / "connection.json", keys.Connection)
    except FileNotFoundError:
        return None
    client = Client(connection)
    try:
        client.hello(connection.token)
        client.send(wire.Look())
        while not isinstance(seen := client.receive(), wire.Picture):
            pass
        return seen
    finally:
        client.close()


def nodes(folder: Path) -> set[str]:
    """The nodes that have slots in the pool."""
    seen = picture(folder)
    return set() if seen is None else {slot.node for slot in seen.slots}


def pool_file(broker: Part) -> keys.PoolFile:
    return keys.read_private(broker.folder / "pool.json", keys.PoolFile)


def add(broker: Part, name: str, folder: str, *options: str) -> Path:
    """Register a node of this host, which reaches the broker at 127.0.0.1; the folder for its agent, with its file."""
    into = broker.folder.parent / folder
    into.mkdir(mode=0o711, exist_ok=True)
    address = f"--address={pool_file(broker).agent_address}"
    out = f"--out={into / 'node.json'}"
    assert name in run("node", "add", name, "--folder", str(broker.folder), address, out, *options)
    return into


class Peer:
    """Whoever has the keys, as an agent's link has them."""

    def __init__(self, broker: Part, own: Keys) -> None:
        files = pool_file(broker)
        self.context = zmq.Context()
        self.socket = channel.connect(
            self.context.socket(zmq.DEALER), files.agent_address, files.keys.public, channel.CONTROL_LIMIT, own
        )
        self.unpacker: frames.Unpacker[wire.ToAgent] = frames.Unpacker(wire.ToAgent)

    def says(self, message: wire.Message) -> wire.ToAgent:
        self.socket.send_multipart(frames.pack(message))
        assert self.socket.poll(PATIENCE_S * 1000), "the broker does not answer"
        return self.unpacker.unpack(self.socket.recv_multipart())[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.destroy(linger=0)

    def close(self) -> None:
        """End the connection."""
        self.socket.close()


def register(broker: Part, name: str, secret: str = "", process: str = "p", node: str = "") -> wire.Register:
    """What an agent says of itself, whose door answers."""
    return wire.Register(
        protocol=wire.PROTOCOL,
        version=__version__,
        secret=secret,
        agent=name,  # type: ignore[arg-type]
        node=node or name,
        address=wire.AgentAddress(address=pool_file(broker).kernel_address, public_key="k"),
        slots=(wire.SlotOffer(slot="cpu-0", kind="cpu", name="CPU"),),  # type: ignore[arg-type]
        process=process,
    )
