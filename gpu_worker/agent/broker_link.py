"""The agent's link to its broker: it introduces the agent, and loses nothing that the broker must hear of."""

from collections.abc import Awaitable, Callable

import structlog
import zmq
import zmq.asyncio
from msgspec import structs

from bulletin.errors import BadConfig, MalformedMessage
from bulletin.ids import CellId, LeaseId
from bulletin.wire import channel, frames, messages as wire
from gpu_worker.agent.clock import now_ms
from gpu_worker.agent.membership import Membership, read_membership
from gpu_worker.config import PoolSettings

#: A broker that is silent for so long may have been started again at another address.
_BROKER_SILENCE_MS = 5_000

#: What the agent says of itself, given the secret that proves it is one of the pool's.
Introduce = Callable[[str], wire.Register]


class BrokerLink:
    """Tells the broker what happens, in order, across restarts of the broker, and takes in what it says."""

    def __init__(
        self, context: zmq.asyncio.Context, settings: PoolSettings, membership: Membership, introduce: Introduce
    ) -> None:
        self._settings, self._membership, self._introduce = settings, membership, introduce
        self._log = structlog.get_logger("agent")
        #: Messages of the broker that were none.
        self.malformed = 0
        #: Reports of cells that are over, and when they ended; said again until the broker has recorded them.
        self._unrecorded: dict[tuple[LeaseId, CellId], tuple[wire.CellDone, int]] = {}
        self._is_known = False
        #: What a broker that does not know this agent yet could not be told, in order.
        self._unsaid: list[wire.Message] = []
        self._heard_ms = now_ms()
        self._socket: zmq.asyncio.Socket = channel.connect(
            context.socket(zmq.DEALER),
            membership.broker_address,
            membership.broker_public_key,
            channel.CONTROL_LIMIT,
            membership.own,
        )

    async def run(self, obey: Callable[[wire.ToAgent], Awaitable[None]]) -> None:
        """Register, then pass each command to `obey`, until cancelled.

        Raises
        ------
        SystemExit
            If the broker refuses this agent.
        """
        unpacker: frames.Unpacker[wire.ToAgent] = frames.Unpacker(wire.ToAgent)
        await self._register()
        while True:
            parts = await self._socket.recv_multipart()
            self._heard_ms = now_ms()
            try:
                message, _ = unpacker.unpack(parts)
            except MalformedMessage as error:
                self.malformed += 1
                self._log.warning("the broker sent junk", problem=error.problem)
                continue
            match message:
                case wire.Unknown():
                    await self._register()
                case wire.Registered():
                    await self._say_unsaid()
                case wire.Recorded():
                    if message.lease is not None:
                        self._unrecorded.pop((message.lease, message.cell), None)
                case wire.Refusal():
                    raise SystemExit(f"bulletin agent: the broker refused this agent. {message.sentence}")
                case wire.Pong() | wire.Malformed():
                    pass
                case _:
                    await obey(message)

    async def tell(self, message: wire.Message) -> None:
        """Tell the broker something that it must hear: at once, or after it has come to know this agent."""
        if isinstance(message, wire.CellDone):
            self._unrecorded[message.lease, message.cell] = (message, now_ms() - message.ended_ago_ms)
        if self._is_known:
            await self.send(message)
        else:
            self._unsaid.append(message)

    async def send(self, message: wire.Message) -> None:
        """Send a message that may be lost: an answer, a sign of life."""
        await self._socket.send_multipart(frames.pack(message))

    async def _register(self) -> None:
        """Introduce this agent. What happens from now on the broker hears after it has heard what it has missed."""
        if self._is_known or not self._unsaid:
            self._is_known, self._unsaid = False, [done for done, _ in self._unrecorded.values()]
        await self.send(self._introduce(self._membership.secret))

    async def _say_unsaid(self) -> None:
        """Tell a broker that knows this agent all that it could not be told, in order, then what came meanwhile."""
        while self._unsaid:
            message = self._unsaid.pop(0)
            if isinstance(message, wire.CellDone):
                done, ended_ms = self._unrecorded.get((message.lease, message.cell), (None, 0))
                if done is not None:
                    said_ms = now_ms()
                    await self.send(structs.replace(done, ended_ago_ms=said_ms - ended_ms, clock_ms=said_ms))
            else:
                await self.send(message)
        self._is_known = True

    def follow_broker(self) -> None:
        """Connect to another address if the broker has been silent and its file has one."""
        if now_ms() - self._heard_ms <= _BROKER_SILENCE_MS:
            return
        self._heard_ms = now_ms()
        try:
            membership = read_membership(self._settings)
        except (OSError, BadConfig) as error:
            self._log.warning("the broker is silent, and its file cannot be read", problem=str(error))
            return
        if membership.broker_address != self._membership.broker_address:
            self._socket.disconnect(self._membership.broker_address)
            self._socket.connect(membership.broker_address)
            self._log.info("the broker has moved", address=membership.broker_address)
        self._membership = membership
