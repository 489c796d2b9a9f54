"""Those who attack a pool, each on one link: they throw so many messages, and read little of what is said to them."""

import random
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zmq

from bulletin import __version__
from bulletin.ids import CellId, KernelId, RequestId
from bulletin.wire import blobs, clients, frames, keys, messages as wire
from bulletin.wire.frames import Unpacker
from tests.fuzz.random_messages import RandomMessages

_PATIENCE_MS = 30_000
#: Of one connection the broker hears so many; then it is another's turn.
_BROKER_MOST = 80
#: A session is thrown so many; then it is given back, if it is still there.
_SESSION_MOST = 3_000
#: So often is a session given back that is not heard.
_LEAVES = 30
#: So many of the messages of an attack on an executor's pipe come out of one cell.
_CELL_MOST = 2_000


class Attack:
    """One attacker, with a seed of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._dice = folder, random.Random(seed)
        self._context = zmq.Context()

    def throw(self, count: int) -> None:
        """Throw so many messages."""
        while count > 0:
            count -= self._throw_some(count)

    def _throw_some(self, most: int) -> int:
        raise NotImplementedError

    def close(self) -> None:
        """End."""
        self._context.destroy(linger=0)

    @property
    def _connection(self) -> keys.Connection:
        return keys.read_private(self._folder / "connection.json", keys.Connection)

    @contextmanager
    def _dealer(self, address: str, key: str, own: keys.Keys | None = None) -> Iterator[zmq.Socket[bytes]]:
        """Connect without heartbeats.

        libzmq 4.3.5 aborts the attacker (`!_io_error`) where one is due on a socket that is closed with what it has not
        sent yet, and whose peer hangs up.
        """
        dealer, own = self._context.socket(zmq.DEALER), own or keys.make_keys()
        dealer.sndhwm = dealer.rcvhwm = 0
        dealer.curve_serverkey = key.encode()
        dealer.curve_publickey, dealer.curve_secretkey = own.public.encode(), own.secret.encode()
        dealer.sndtimeo = _PATIENCE_MS
        dealer.connect(address)
        try:
            yield dealer
        finally:
            dealer.close(2_000 if self._dice.random() < 0.8 else 0)  # some go in the middle of a word

    def _draw(self, union: object, **known: list[Any]) -> RandomMessages:
        return RandomMessages(union, self._dice.randrange(2**32), known)


class BrokerAttack(Attack):
    """Kernels, known and unknown, that say anything to the broker; and strangers at the socket of agents."""

    def _throw_some(self, most: int) -> int:
        connection, count = self._connection, min(most, _BROKER_MOST)
        is_at_agents = self._dice.random() < 0.15
        if is_at_agents:
            files = keys.read_private(self._folder / "pool.json", keys.PoolFile)
            own = keys.agent_keys(files.agent_secret)  # else they are turned away before a word is read
            with self._dealer(files.agent_address, files.keys.public, own) as dealer:
                self._send_all(dealer, self._draw(wire.FromAgent, secret=["guess"]), count)
            return count
        with self._dealer(connection.address, connection.public_key) as dealer:
            if self._dice.random() < 0.8:
                dealer.send_multipart(frames.pack(_hello(connection, f"fuzz-{self._dice.randrange(50)}")))
            tokens = [connection.token, "guess"]
            known = {
                "token": tokens,
                "protocol": [wire.PROTOCOL],
                "request": ["r1", "r2"],
                "kernel": ["fuzz-1", "fuzz-2"],
            }
            messages = self._draw(clients.FromClient, **known)
            self._send_all(dealer, messages, count)
        return count

    @staticmethod
    def _send_all(dealer: zmq.Socket[bytes], messages: RandomMessages, count: int) -> None:
        for _ in range(count):
            dealer.send_multipart(messages.draw())
            while dealer.poll(0):
                dealer.recv_multipart()


class _Leased(Attack):
    """Somebody who has a slot, as a kernel has."""

    _broker_unpacker: Unpacker[wire.ToKernel] = Unpacker(wire.ToKernel)
    _agent_unpacker: Unpacker[wire.AgentToKernel] = Unpacker(wire.AgentToKernel)

    @contextmanager
    def _session(self) -> Iterator[tuple[zmq.Socket[bytes], wire.Granted]]:
        """Ask for a lease, attach to it, and give it back at the end."""
        connection = self._connection
        with self._dealer(connection.address, connection.public_key) as broker:
            granted = self._ask(broker, connection)
            with self._dealer(granted.agent.address, granted.agent.public_key) as agent:
                agent.send_multipart(frames.pack(_attach(granted)))
                yield agent, granted
            with self._dealer(granted.agent.address, granted.agent.public_key) as agent:
                self._leave(agent, granted)

    def _leave(self, agent: zmq.Socket[bytes], granted: wire.Granted) -> None:
        """Give the session back; where its ticket was shown too often, when that is heard again."""
        for _ in range(_LEAVES):
            agent.send_multipart(frames.pack(_attach(granted)))
            agent.send_multipart(frames.pack(wire.Leave()))
            if not agent.poll(1_000):
                continue  # it was dropped, and nobody is told so twice in a second
            answer, _ = self._agent_unpacker.unpack(agent.recv_multipart())
            if isinstance(answer, wire.Attached | wire.Gone):
                return

    def _ask(self, broker: zmq.Socket[bytes], connection: keys.Connection) -> wire.Granted:
        request = RequestId(f"r{self._dice.randrange(2**40)}")
        broker.send_multipart(frames.pack(_hello(connection, f"leased-{self._dice.randrange(2**40)}")))
        broker.send_multipart(frames.pack(wire.Submit(request=request)))
        deadline_s = time.monotonic() + 2 * _PATIENCE_MS / 1000
        while time.monotonic() < deadline_s:
            if not broker.poll(1_000):
                broker.send_multipart(frames.pack(wire.Ping()))
                continue
            answer, _ = self._broker_unpacker.unpack(broker.recv_multipart())
            if isinstance(answer, wire.Unknown):  # the submission came before the broker knew us
                continue
            if isinstance(answer, wire.Welcome):
                broker.send_multipart(frames.pack(wire.Submit(request=request)))
            if isinstance(answer, wire.Granted) and answer.request == request:
                return answer
            assert not isinstance(answer, wire.Refusal), answer.sentence
        raise AssertionError("an attacker was granted no slot")


class AgentAttack(_Leased):
    """A kernel with a ticket, and some without, that say anything to the agent."""

    def _throw_some(self, most: int) -> int:
        count = min(most, _SESSION_MOST)
        with self._session() as (agent, granted):
            cells = [f"cell-{number}" for number in range(3)]
            known: dict[str, list[Any]] = {
                "lease": [granted.lease],
                "ticket": [granted.ticket, "guess"],
                "cell": cells,
                "protocol": [wire.PROTOCOL],
                "source": ["x = 1", "print('x' * 100)", "import time; time.sleep(0.05)", "("],
                "round": [0, 1, 2],
            }
            messages = RandomMessages(
                wire.KernelToAgent, self._dice.randrange(2**32), known, rare=("leave", "stop"), rarely=0.002
            )
            for _ in range(count):
                agent.send_multipart(messages.draw())
                while self._dice.random() < 0.5 and agent.poll(0):
                    agent.recv_multipart()
        return count


class ExecutorAttack(_Leased):
    """A cell that says anything in its executor's name."""

    def _throw_some(self, most: int) -> int:
        count = min(most, _CELL_MOST)
        with self._session() as (agent, _):
            seed = self._dice.randrange(2**32)
            source = f"from tests.fuzz.executor_code import attack\nattack({seed}, {count})\n"
            cell = CellId(f"attack-{seed}")
            run = wire.Run(cell=cell, source=source, number=1, parcel=blobs.describe(()), outlives_kernel=False)
            agent.send_multipart(frames.pack(run))
            deadline_s = time.monotonic() + 20
            while time.monotonic() < deadline_s:
                if not agent.poll(500):
                    agent.send_multipart(frames.pack(wire.Ping()))
                    continue
                answer, _ = self._agent_unpacker.unpack(agent.recv_multipart())
                if isinstance(answer, wire.Output):
                    agent.send_multipart(frames.pack(wire.Seen(cell=answer.cell, seq=answer.seq, late=answer.late)))
                elif isinstance(answer, wire.Ended | wire.Lost | wire.Gone | wire.Unknown):
                    break
        return count


class DoorAttack(Attack):
    """Visitors at the door without a ticket."""

    def _throw_some(self, most: int) -> int:
        count = min(most, 20)
        for _ in range(count):
            with socket.socket(socket.AF_UNIX) as visitor:
                visitor.settimeout(_PATIENCE_MS / 1000)
                try:
                    visitor.connect(str(self._folder / "door"))
                    visitor.sendall(self._dice.randbytes(self._dice.randrange(400)) + self._dice.choice([b"", b"\n"]))
                except (BlockingIOError, BrokenPipeError, ConnectionResetError):  # the line before the door is full
                    continue
        return count


def _hello(connection: keys.Connection, kernel: str) -> wire.Hello:
    return wire.Hello(protocol=wire.PROTOCOL, version=__version__, token=connection.token, kernel=KernelId(kernel))


def _attach(granted: wire.Granted) -> wire.Attach:
    return wire.Attach(protocol=wire.PROTOCOL, lease=granted.lease, ticket=granted.ticket)
