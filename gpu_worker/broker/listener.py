"""One socket of the broker: what is said there is read in turns, admitted by the gate, taken, and answered."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

import zmq
import zmq.asyncio

from bulletin.errors import MalformedMessage
from bulletin.wire import frames, messages as wire
from bulletin.wire.connections import Connections
from bulletin.wire.polled_socket import PolledSocket
from gpu_worker.broker.gates import Gate
from gpu_worker.faults import Faults

Said = TypeVar("Said", bound=wire.Message)

#: After so many messages all else in the broker has its turn: a socket in which messages wait makes no reader wait.
_TURN = 64
#: So long nothing is read after a turn in which most was dropped: who floods waits, and costs no more than that.
_REST_S = 0.002


class Listener(Generic[Said]):
    """Serves a socket, and counts what it turns away."""

    def __init__(
        self,
        socket: zmq.asyncio.Socket,
        unpacker: frames.Unpacker[Said],
        gate: Gate,
        faults: Faults,
        connections: Connections,
    ) -> None:
        self._socket = PolledSocket(zmq.Socket.shadow(socket))
        self._unpacker, self._gate, self._faults = unpacker, gate, faults
        self._connections = connections
        self._note_protocol: Callable[[bytes, int], None] = lambda _route, _protocol: None
        #: Messages that were none, that were dropped as their senders say too much, and that nobody was there to get.
        self.malformed = self.dropped = self.undeliverable = 0

    async def run(
        self,
        take: Callable[[bytes, Said], Awaitable[None]],
        end: Callable[[bytes, Said], object],
        note_protocol: Callable[[bytes, int], None] = lambda _route, _protocol: None,
    ) -> None:
        """Let `take` have each message until cancelled; where one leads to a fault, `end` what it is about.

        `note_protocol` is told of who speaks another protocol.
        """
        self._note_protocol = note_protocol
        while True:
            received: list[zmq.Frame] | None = await self._socket.receive()
            dropped = self.dropped
            for _ in range(_TURN):
                if received is None:
                    break
                await self._hear(received, take, end)
                received = self._socket.take()
            if received is not None:
                await self._hear(received, take, end)
            await asyncio.sleep(_REST_S if self.dropped - dropped > _TURN // 2 else 0)

    def close(self) -> None:
        """Stop listening; the socket is closed with its context."""
        self._socket.close()

    async def _hear(
        self,
        received: list[zmq.Frame],
        take: Callable[[bytes, Said], Awaitable[None]],
        end: Callable[[bytes, Said], object],
    ) -> None:
        self._connections.note(received)
        route, *parts = (frame.bytes for frame in received)
        gate = self._gate
        if not gate.admits(route, parts):
            self.dropped += 1
            refusal = gate.take_refusal(route, parts)
            if refusal is not None:
                await self.send(route, refusal)
            return
        try:
            message, _ = self._unpacker.unpack(parts)
        except MalformedMessage as error:
            gate.charge(route, parts, None)
            self.malformed += 1
            if error.protocol is not None:
                with self._faults.contain(lambda: None, said="another protocol"):
                    self._note_protocol(route, error.protocol)
            await self.send(route, wire.Malformed(problem=error.problem))
            return
        gate.charge(route, parts, message)
        with self._faults.contain(partial(end, route, message), said=type(message).__name__):
            await take(route, message)

    async def send(self, route: bytes, message: wire.Message) -> None:
        """Send a message. It is lost where nobody is there, or does not read: what matters is said again."""
        try:
            self._socket.send([route, *frames.pack(message)])
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            self.undeliverable += 1
