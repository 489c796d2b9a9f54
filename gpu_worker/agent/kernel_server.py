"""Where kernels connect: a socket that lets each in by the ticket of its lease and passes on what both sides say."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from functools import partial

import structlog
import zmq
import zmq.asyncio

from bulletin.codes import RefusalCode
from bulletin.errors import BadConfig, MalformedMessage, VersionMismatch
from bulletin.ids import LeaseId, UserName
from bulletin.rate_limiter import RateLimiter
from bulletin.wire import blobs as bulk, channel, frames, keys, messages as wire
from bulletin.wire.connections import Connections
from bulletin.wire.frames import Blob
from bulletin.wire.polled_socket import PolledSocket
from gpu_worker.agent.session_registry import SessionRegistry
from gpu_worker.agent.unsent import UnsentBytes
from gpu_worker.config import PoolSettings
from gpu_worker.faults import Faults
from gpu_worker.reachability import parse, write_address

#: So many messages wait on one connection, in each direction. One to which no more can be sent is forgotten.
_QUEUE = 4_000
#: After so many messages all else in the agent has its turn: a socket in which messages wait makes no reader wait.
_TURN = 32
#: What a connection may say in a second, and at once, that has shown no ticket; and how often that of a lease may be
#: shown, by whichever: what waits to be sent on each stays for a moment.
_STRANGER_PER_S, _STRANGER_MOST = 50, 200
_ATTACH_PER_S, _ATTACH_MOST = 5, 20
#: So long a connection may be there that shows no ticket.
_PATIENCE_S = 30.0
#: To read a message takes as long as it is, whatever its blobs. Honest ones are longer than this only where a notebook
#: sends thousands of arrays; before each of these all else has its turn. Of all notebooks of a user together so many
#: bytes are read in a second, and at once.
_LONG_BYTES, _SAID_PER_S, _SAID_MOST = 64 * 1024, 4 * 2**20, 16 * 2**20
#: Of who has shown no ticket none is read that is longer than this: who shows one needs a few hundred.
_STRANGER_BYTES = 16 * 1024
#: What may come by a connection before a message of it is whole. A kernel that keeps to its window never sends so much.
_UNHEARD_LIMIT_BYTES = 4 * bulk.RING
_TOO_FAST = (
    "The notebook shows its ticket more often than the node listens to. Wait some seconds, then run the cell again."
)


class KernelServer:
    """The agent's side of every connection with a kernel."""

    def __init__(
        self, context: zmq.asyncio.Context, settings: PoolSettings, sessions: SessionRegistry, faults: Faults
    ) -> None:
        """Read the keys of an earlier life of this agent, or make some."""
        self._settings, self._sessions, self._faults = settings, sessions, faults
        self._log = structlog.get_logger("agent")
        #: Messages of kernels that were none, and that were dropped since they were too many.
        self.malformed = self.dropped = 0
        self._strangers: RateLimiter[bytes] = RateLimiter(_STRANGER_PER_S, _STRANGER_MOST, time.monotonic)
        self._attaches: RateLimiter[LeaseId] = RateLimiter(_ATTACH_PER_S, _ATTACH_MOST, time.monotonic)
        self._said: RateLimiter[UserName] = RateLimiter(_SAID_PER_S, _SAID_MOST, time.monotonic)
        self._unsent = UnsentBytes()
        self._state_file = settings.folder / "agent.json"
        try:
            self._state = keys.read_private(self._state_file, keys.AgentFile)
        except FileNotFoundError:
            self._state = keys.AgentFile(keys=keys.make_keys(), address="")
        #: Where it listens; empty: nowhere yet.
        self._bound = ""
        self._socket = channel.serve(context.socket(zmq.ROUTER), self._state.keys, channel.DATA_LIMIT, _QUEUE)
        self._polled = PolledSocket(zmq.Socket.shadow(self._socket))
        self._connections = Connections(
            context,
            self._socket,
            lambda route: self._sessions.by_route(route) is not None,
            _PATIENCE_S,
            unheard_limit_bytes=_UNHEARD_LIMIT_BYTES,
        )

    @property
    def public_key(self) -> str:
        """The key that proves to kernels that this is the agent."""
        return self._state.keys.public

    @property
    def failed_handshakes(self) -> int:
        """How many connections were none of kernels that know the key."""
        return self._connections.failed

    @property
    def ended_strangers(self) -> int:
        """How many connections were ended here."""
        return self._connections.ended

    def bind(self, host: str) -> str:
        """Bind, and return the address: at the port of last time if it is free, so that waiting kernels find it.

        Instead of where it is bound, if it is: who has come there is cut off. Raises BadConfig if there is none; then
        it is bound nowhere.
        """
        port, kept = self._settings.node_port, parse(self._state.address)
        if self._bound:
            with contextlib.suppress(zmq.ZMQError):
                self._socket.unbind(self._bound)
            self._bound = ""
        try:
            if port or kept is None:
                raise zmq.ZMQError(zmq.EADDRNOTAVAIL)
            address = channel.bind(self._socket, write_address(host, kept[1]))
        except zmq.ZMQError:
            wanted = write_address(host, port)
            try:
                address = channel.bind(self._socket, wanted)
            except zmq.ZMQError as error:
                raise BadConfig(
                    f"The agent cannot listen on {wanted}: {error.strerror}. "
                    "Choose another Pool.host or Pool.node_port."
                ) from None
        self._bound, self._state = address, keys.AgentFile(keys=self._state.keys, address=address)
        keys.write_private(self._state_file, self._state)
        return address

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._receive())
            tasks.create_task(self._connections.run())

    async def _receive(self) -> None:
        unpacker: frames.Unpacker[wire.KernelToAgent] = frames.Unpacker(wire.KernelToAgent)
        heard = 0
        while True:
            received = await self._polled.receive()
            heard += 1
            said_bytes = len(received[2]) if len(received) > 2 else 0
            if heard % _TURN == 0 or said_bytes > _LONG_BYTES:
                await asyncio.sleep(0)
            self._connections.note(received)
            route = received[0].bytes
            if not await self._admits(route, said_bytes):
                self.dropped += 1
                continue
            try:
                message, blobs = unpacker.unpack([frame.buffer for frame in received[1:]])
            except MalformedMessage as error:
                self.malformed += 1
                await self.send(route, wire.Malformed(problem=error.problem))
                continue
            with self._faults.contain(partial(self._end_session, route), said=type(message).__name__):
                await self._pass_on(route, message, blobs)

    async def _admits(self, route: bytes, said_bytes: int) -> bool:
        """Tell whether a message of so many bytes is read. Who says too much has the session and the connection ended.

        Only what is not received costs nothing: a notebook whose link is cut connects anew, and shows its ticket.
        """
        session = self._sessions.by_route(route)
        if session is None:
            if not self._strangers.has_credit(route):
                self._connections.end(route)
                return False
            self._strangers.charge(route, 1)
            if said_bytes > _STRANGER_BYTES:  # a cell, by a connection that broke and came back: it must attach again
                await self.send(route, wire.Unknown())
                return False
            return True
        user = session.prepare.user
        if said_bytes > _LONG_BYTES and not self._said.has_credit(user):
            session.end_flood()
            self._connections.end(route)
            return False
        self._said.charge(user, said_bytes)
        return True

    def _end_session(self, route: bytes) -> None:
        """End the session of a kernel whose words led to a fault: it, and no other."""
        session = self._sessions.by_route(route)
        if session is not None:
            session.fail()

    async def _pass_on(self, route: bytes, message: wire.KernelToAgent, blobs: Sequence[Blob]) -> None:
        if isinstance(message, wire.Attach):
            await self._attach(route, message)
            return
        session = self._sessions.by_route(route)
        if session is not None and isinstance(message, wire.FolderReply):
            session.executor.folder.answer(message, blobs)
        elif session is not None:
            await session.from_kernel(message, blobs)
        elif isinstance(message, wire.Run | wire.Ping):  # a connection that broke and came back: it must attach again
            await self.send(route, wire.Unknown())

    async def _attach(self, route: bytes, message: wire.Attach) -> None:
        if message.protocol != wire.PROTOCOL:
            sentence = str(VersionMismatch(message.protocol, wire.PROTOCOL, "the notebook's side"))
            await self.send(route, wire.Refusal(code=RefusalCode.VERSION_MISMATCH, sentence=sentence))
            return
        session = self._sessions.by_ticket(message.lease, message.ticket)
        if session is None:
            sentence = "The process of your cell is gone: its session was ended, or the node's agent was restarted."
            await self.send(route, wire.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence=sentence))
            return
        if not self._attaches.has_credit(message.lease):
            self.dropped += 1
            if self._attaches.take_telling(message.lease):
                await self.send(route, wire.Refusal(code=RefusalCode.TOO_FAST, sentence=_TOO_FAST))
            return
        self._attaches.charge(message.lease, 1)
        earlier = session.kernel.route
        self._sessions.connect(route, session)
        if earlier is not None and earlier != route:
            self._connections.end(earlier)  # with what still waits to be sent there
        await session.attach(route, message)

    async def send(self, route: bytes, message: wire.Message, blobs: Sequence[Blob] = ()) -> None:
        """Send a message to a connection; forget the connection if it is gone, or does not read."""
        self._unsent.drop_sent(route)
        if self._unsent.is_full(route):
            self._sessions.drop_route(route)
            self._connections.end(route)
            return
        parts = self._unsent.track(route, frames.pack(message, blobs))
        try:
            self._polled.send([route, *parts], copy=False)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            self._sessions.drop_route(route)

    def tidy(self) -> None:
        """Forget the connections that were quiet for a while. To be called now and then."""
        self._strangers.tidy()
        self._attaches.tidy()
        self._said.tidy()
        self._unsent.tidy()
        self._connections.tidy()

    def close(self) -> None:
        """Stop watching connections; the socket is closed with its context."""
        self._polled.close()
        self._connections.close()
