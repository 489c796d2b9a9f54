"""The agent's link to its broker: it introduces the agent, and loses nothing that the broker must hear of."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog
import zmq
import zmq.asyncio
from msgspec import structs

from bulletin.codes import RefusalCode
from bulletin.errors import BadConfig, MalformedMessage, NotDone, VersionMismatch
from bulletin.ids import CellId, LeaseId
from bulletin.wire import channel, frames, messages as wire
from bulletin.wire.polled_socket import PolledSocket
from gpu_worker.agent.clock import now_ms
from gpu_worker.agent.link_watch import LinkWatch
from gpu_worker.agent.membership import Membership, read_membership
from gpu_worker.config import PoolSettings
from gpu_worker.reachability import own_host_towards

#: A broker that is silent for so long may have been started again at another address.
_BROKER_SILENCE_MS = 5_000
#: So often a link that does not stand is tried anew, and said why.
_RETRY_S = 5.0
_SAY_AGAIN_MS = 4_000
#: So long the end of a cell may wait until it is told: on a small host the broker would take the processor from the
#: notebook, which is just being told of it, too.
_REPORT_S = 0.005
_WRONG_PORT = (
    "What answers is the pool's broker, but at its port for notebooks. Agents come to another one (Pool.agent_port)."
)

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
        #: Those that nobody has been told yet, with what tells them.
        self._held_back: list[wire.CellDone] = []
        self._report: asyncio.TimerHandle | None = None
        self._is_known = False
        #: What a broker that does not know this agent yet could not be told, in order.
        self._unsaid: list[wire.Message] = []
        self._heard_ms = self._accepted_ms = now_ms()
        #: Why the broker does not take this agent, in its own words; and whether the log has it that it does.
        self._refusal, self._is_said_accepted = "", False
        self._logged = "", 0
        #: Why the broker will never take this agent, as it is: it speaks another protocol.
        self.end: NotDone | None = None
        self._socket: zmq.asyncio.Socket = context.socket(zmq.DEALER)
        self._polled = PolledSocket(zmq.Socket.shadow(self._socket))
        self._watch = LinkWatch(context, self._socket)
        self._connect()

    def _connect(self) -> None:
        member = self._membership
        self._watch.forget()
        channel.connect(
            self._socket, member.broker_address, member.broker_public_key, channel.CONTROL_LIMIT, member.own
        )

    @property
    def alone_ms(self) -> int:
        """For how long this agent has been none of a pool's: its broker is silent, or refuses it."""
        return now_ms() - self._accepted_ms

    async def run(self, obey: Callable[[wire.ToAgent], Awaitable[None]]) -> None:
        """Register, then pass each command to `obey`, until cancelled. Of a broker of another version `end` is set."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch.run())
            tasks.create_task(self._keep_trying())
            tasks.create_task(self._listen(obey))

    async def _listen(self, obey: Callable[[wire.ToAgent], Awaitable[None]]) -> None:
        unpacker: frames.Unpacker[wire.ToAgent] = frames.Unpacker(wire.ToAgent)
        await self._register()
        while True:
            parts = [frame.bytes for frame in await self._polled.receive()]
            self._heard_ms = now_ms()
            try:
                message, _ = unpacker.unpack(parts)
            except MalformedMessage as error:
                if error.protocol is not None:
                    self._end(str(VersionMismatch(error.protocol, wire.PROTOCOL, "the broker")))
                    continue
                self.malformed += 1
                self._log.warning("the broker sent junk", problem=error.problem)
                continue
            match message:
                case wire.Unknown():
                    if not self._refusal:
                        await self._register()
                case wire.Registered():
                    self._note_accepted()
                    await self._say_unsaid()
                case wire.Recorded():
                    if message.lease is not None:
                        self._unrecorded.pop((message.lease, message.cell), None)
                case wire.Refusal(code=RefusalCode.VERSION_MISMATCH):
                    self._end(message.sentence)
                case wire.Refusal():
                    self._refusal = message.sentence
                    self._log_problem(message.sentence)
                case wire.Malformed() if not self._is_known:
                    self._refusal = _WRONG_PORT
                    self._log_problem(_WRONG_PORT)
                case wire.Pong():
                    self._accepted_ms = self._heard_ms
                case wire.Malformed():
                    pass
                case _:
                    await obey(message)

    def _end(self, sentence: str) -> None:
        """Note that there is no talking with this broker, whatever is tried: who runs the agent lets it leave."""
        if self.end is None:
            self.end = NotDone(f"The broker refused this agent. {sentence}")
            self._log_problem(sentence)

    def _note_accepted(self) -> None:
        self._refusal = ""
        if not self._is_said_accepted:
            self._is_said_accepted = True
            self._log.info("accepted by the broker", broker=self._membership.broker_address)

    def _log_problem(self, problem: str) -> None:
        self._is_said_accepted = False
        if problem == self._logged[0] and now_ms() - self._logged[1] < _SAY_AGAIN_MS:
            return
        self._logged = problem, now_ms()
        self._log.warning("not accepted by the broker", broker=self._membership.broker_address, problem=problem)

    async def tell(self, message: wire.Message) -> None:
        """Tell the broker something that it must hear: soon, or after it has come to know this agent."""
        if isinstance(message, wire.CellDone):
            self._unrecorded[message.lease, message.cell] = (message, now_ms() - message.ended_ago_ms)
        if self._is_known and isinstance(message, wire.CellDone):
            self._hold_back(message)
        elif self._is_known:
            await self.send(message)
        else:
            self._unsaid.append(message)

    async def send(self, message: wire.Message) -> None:
        """Send a message that may be lost: an answer, a sign of life. What happened before it is told first."""
        self._tell_held_back()
        self._send(message)

    def _send(self, message: wire.Message) -> None:
        with contextlib.suppress(zmq.Again):  # there is no link, and it is made anew
            self._polled.send(frames.pack(message))

    def _hold_back(self, done: wire.CellDone) -> None:
        """Tell the end of a cell with what comes next, or in a moment."""
        self._held_back.append(done)
        if self._report is None:
            self._report = asyncio.get_running_loop().call_later(_REPORT_S, self._tell_held_back)

    def _tell_held_back(self) -> None:
        held_back, self._held_back = self._held_back, []
        if self._report is not None:
            self._report.cancel()
            self._report = None
        for done in held_back:
            self._tell_done(done)

    def _tell_done(self, done: wire.CellDone) -> None:
        """Tell the end of a cell, with how long ago that is by now; nothing where the broker has recorded it."""
        _, ended_ms = self._unrecorded.get((done.lease, done.cell), (None, None))
        if ended_ms is not None:
            said_ms = now_ms()
            self._send(structs.replace(done, ended_ago_ms=said_ms - ended_ms, clock_ms=said_ms))

    async def _register(self) -> None:
        """Introduce this agent. What happens from now on the broker hears after it has heard what it has missed."""
        if self._is_known or not self._unsaid:
            self._is_known, self._unsaid = False, [done for done, _ in self._unrecorded.values()]
            self._held_back.clear()
        await self.send(self._introduce(self._membership.secret))

    async def introduce_anew(self) -> None:
        """Tell the broker what this agent is, and where: that has changed."""
        await self._register()

    async def _say_unsaid(self) -> None:
        """Tell a broker that knows this agent all that it could not be told, in order, then what came meanwhile."""
        while self._unsaid:
            message = self._unsaid.pop(0)
            if isinstance(message, wire.CellDone):
                self._tell_done(message)
            else:
                await self.send(message)
        self._is_known = True

    def close(self) -> None:
        """Stop listening; the socket is closed with its context."""
        self._tell_held_back()
        self._polled.close()

    async def find_own_host(self) -> str:
        """Find by which of its addresses this host reaches the broker; wait until it does."""
        while True:
            try:
                return await asyncio.to_thread(own_host_towards, self._membership.broker_address)
            except OSError as error:
                self._log_problem(f"This host has no way there: {error.strerror or error}.")
            await asyncio.sleep(_RETRY_S)

    async def _keep_trying(self) -> None:
        """Take up a new file; where the broker does not take this agent or is silent, say why and try again."""
        while True:
            await asyncio.sleep(_RETRY_S)
            is_silent = now_ms() - self._heard_ms > _BROKER_SILENCE_MS
            is_well = not is_silent and not self._refusal
            connected_to = self._membership.broker_address
            has_changed = self._follow_file(is_well=is_well)
            if is_well and not has_changed:
                continue
            refusal, self._refusal = self._refusal, ""
            if is_silent:
                self._log_problem(refusal or await self._watch.find_problem(self._membership))
            if has_changed or (is_silent and self._watch.last in ("failed", "refused")):
                with contextlib.suppress(zmq.ZMQError):  # ZeroMQ has given up one that was refused
                    self._socket.disconnect(connected_to)
                self._connect()
            await self._register()

    def _follow_file(self, *, is_well: bool) -> bool:
        """Read again where the broker is, and how this agent is known to it; return whether that has changed.

        Where all is well, one that cannot be read is one that is being written, and another node's is not taken up.
        """
        try:
            membership = read_membership(self._settings)
        except (OSError, BadConfig) as error:
            if not is_well:
                self._log.warning("the file of this agent cannot be read", problem=str(error))
            return False
        if membership == self._membership or (is_well and membership.node != self._membership.node):
            return False
        if membership.own != self._membership.own:
            self._log.info("the file of this agent has new keys", file=str(membership.file))
        if membership.broker_address != self._membership.broker_address:
            self._log.info("the broker has moved", address=membership.broker_address)
        self._membership = membership
        return True
