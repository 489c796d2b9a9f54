"""Where kernels connect: a socket that lets each in by the ticket of its lease and passes on what both sides say."""

import asyncio
from collections.abc import Sequence

import structlog
import zmq
import zmq.asyncio

from bulletin.codes import RefusalCode
from bulletin.errors import MalformedMessage, VersionMismatch
from bulletin.wire import channel, frames, keys, messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.agent.session_registry import SessionRegistry
from gpu_worker.config import PoolSettings


class KernelServer:
    """The agent's side of every connection with a kernel."""

    def __init__(self, context: zmq.asyncio.Context, settings: PoolSettings, sessions: SessionRegistry) -> None:
        """Read the keys of an earlier life of this agent, or make some."""
        self._settings, self._sessions = settings, sessions
        self._log = structlog.get_logger("agent")
        #: Messages of kernels that were none.
        self.malformed = 0
        self._state_file = settings.folder / "agent.json"
        try:
            self._state = keys.read_private(self._state_file, keys.AgentFile)
        except FileNotFoundError:
            self._state = keys.AgentFile(keys=keys.make_keys(), address="")
        self._socket = channel.serve(context.socket(zmq.ROUTER), self._state.keys, channel.DATA_LIMIT)
        self._handshakes = channel.HandshakeCounter(context, self._socket)

    @property
    def public_key(self) -> str:
        """The key that proves to kernels that this is the agent."""
        return self._state.keys.public

    @property
    def failed_handshakes(self) -> int:
        """How many connections were none of kernels that know the key."""
        return self._handshakes.failed

    def bind(self) -> str:
        """Bind, and return the address: that of last time if it is free, so that waiting kernels find it."""
        try:
            if not self._state.address.startswith(f"tcp://{self._settings.host}:"):
                raise zmq.ZMQError(zmq.EADDRNOTAVAIL)
            address = channel.bind(self._socket, self._state.address)
        except zmq.ZMQError:
            address = channel.bind(self._socket, f"tcp://{self._settings.host}:0")
        keys.write_private(self._state_file, keys.AgentFile(keys=self._state.keys, address=address))
        return address

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._receive())
            tasks.create_task(self._handshakes.run())

    async def _receive(self) -> None:
        unpacker: frames.Unpacker[wire.KernelToAgent] = frames.Unpacker(wire.KernelToAgent)
        while True:
            received = await self._socket.recv_multipart(copy=False)
            route = received[0].bytes
            try:
                message, blobs = unpacker.unpack([frame.buffer for frame in received[1:]])
            except MalformedMessage as error:
                self.malformed += 1
                await self.send(route, wire.Malformed(problem=error.problem))
                continue
            await self._pass_on(route, message, blobs)

    async def _pass_on(self, route: bytes, message: wire.KernelToAgent, blobs: Sequence[Blob]) -> None:
        if isinstance(message, wire.Attach):
            await self._attach(route, message)
            return
        session = self._sessions.by_route(route)
        if session is not None:
            try:
                await session.from_kernel(message, blobs)
            except Exception as error:  # noqa: BLE001  what one kernel says must not end the sessions of others
                session.fail(error)
        elif isinstance(message, wire.Run | wire.Ping):  # a connection that broke and came back: it must attach again
            await self.send(route, wire.Unknown())

    async def _attach(self, route: bytes, message: wire.Attach) -> None:
        if message.protocol != wire.PROTOCOL:
            sentence = str(VersionMismatch(message.protocol, wire.PROTOCOL, "the notebook's side"))
            await self.send(route, wire.Refusal(code=RefusalCode.VERSION_MISMATCH, sentence=sentence))
            return
        session = self._sessions.by_ticket(message.lease, message.ticket)
        if session is None:
            sentence = "The session is not on this node any more: it was ended, or the node's agent was restarted."
            await self.send(route, wire.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence=sentence))
            return
        self._sessions.connect(route, session)
        try:
            await session.attach(route, message)
        except Exception as error:  # noqa: BLE001  as above
            session.fail(error)

    async def send(self, route: bytes, message: wire.Message, blobs: Sequence[Blob] = ()) -> None:
        """Send a message to a connection; forget the connection if it is gone."""
        try:
            await self._socket.send_multipart([route, *frames.pack(message, blobs)], copy=False)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            self._sessions.drop_route(route)

    def close(self) -> None:
        """Stop counting handshakes; the socket is closed with its context."""
        self._handshakes.close()
