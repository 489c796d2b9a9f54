"""The agents that talk to the broker: their nodes, their reports, and the ledger that keeps what cells cost."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable

import msgspec
import structlog
from sqlalchemy.exc import DataError

from bulletin.errors import LedgerAway, VersionMismatch
from bulletin.ids import AgentId
from bulletin.wire import messages as wire
from gpu_worker.broker import translate
from gpu_worker.broker.kernels import Kernels
from gpu_worker.broker.leases import Leases
from gpu_worker.broker.ledger import CellRecord, Ledger
from gpu_worker.scheduler import events

#: An agent that was not heard of for so long is lost; its cells are too, as far as their users are concerned.
_SILENCE_MS = 10_000
#: Cells that end within this time are written together. Their agents keep them until they are written.
_GATHER_S = 0.1
_BATCH = 500
#: How long to wait before a ledger that did not answer is asked again.
_LEDGER_AWAY_S = 1.0

Send = Callable[[bytes, wire.Message], Awaitable[None]]


class Agent(msgspec.Struct):
    """A node that registered: one connection."""

    route: bytes
    message: wire.Register
    heard_ms: int
    counters: dict[str, int] = {}


class Agents:
    """All connections of agents."""

    def __init__(
        self,
        send: Send,
        secret: str,
        ledger: Ledger,
        kernels: Kernels,
        now_ms: Callable[[], int],
        registered: Callable[[], None],
    ) -> None:
        self._send, self._secret, self._ledger, self._kernels, self._now_ms = send, secret, ledger, kernels, now_ms
        self._registered = registered
        self.known: dict[AgentId, Agent] = {}
        self._by_route: dict[bytes, AgentId] = {}
        self._unwritten: asyncio.Queue[tuple[bytes, CellRecord]] = asyncio.Queue()
        self.refused = 0
        self.leases: Leases  #: set by the broker: agents and leases know each other
        self._log = structlog.get_logger("broker")

    @property
    def slot_word(self) -> str:
        """What a slot of this pool is for people."""
        kinds = {slot.kind for agent in self.known.values() for slot in agent.message.slots}
        return "CPU slot" if kinds == {"cpu"} else "GPU"

    async def take(self, route: bytes, message: wire.FromAgent) -> None:
        """One message of an agent."""
        if isinstance(message, wire.Register):
            await self._register(route, message)
            return
        agent_id = self._by_route.get(route)
        if agent_id is None:
            await self._send(route, wire.Unknown())
            return
        agent = self.known[agent_id]
        agent.heard_ms = self._now_ms()
        match message:
            case wire.Ping():
                agent.counters = message.counters
                await self._send(route, wire.Pong())
            case wire.Prepared():
                await self.leases.prepared(message.lease)
            case wire.CellBegan():
                await self.leases.step(events.CellStarted(message.lease, message.cell))
            case wire.CellDone():
                row = translate.record(message, agent.message, time.time_ns() // 1_000_000)
                self._unwritten.put_nowait((route, row))
                await self.leases.step(events.CellEnded(message.lease, message.cell))
            case wire.LeaseOver():
                await self.leases.over(message)

    async def tell(self, agent: AgentId, message: wire.Message) -> None:
        """Say something to an agent, if it is there."""
        if agent in self.known:
            await self._send(self.known[agent].route, message)

    async def tidy(self) -> None:
        """Give up the agents that are silent."""
        for agent_id, agent in list(self.known.items()):
            if self._now_ms() - agent.heard_ms > _SILENCE_MS:
                self._log.warning("agent lost", agent=agent_id, node=agent.message.node)
                self._forget(agent_id)
                await self.leases.lost(agent_id)

    async def write(self) -> None:
        """Write finished cells to the ledger, all that have come meanwhile at once; their agents then hear of it."""
        while True:
            batch = [await self._unwritten.get()]
            await asyncio.sleep(_GATHER_S)
            while not self._unwritten.empty() and len(batch) < _BATCH:
                batch.append(self._unwritten.get_nowait())
            rows = [row for _, row in batch]
            for row in await self._record_in_time(rows):
                self._log.info("cell", cell=row.cell, lease=row.lease, user=row.user, outcome=row.outcome)
            for route, row in batch:
                await self._send(route, wire.Recorded(cell=row.cell))

    async def _record_in_time(self, rows: list[CellRecord]) -> list[CellRecord]:
        """Write rows, as soon as the ledger answers. Should this broker end before, the agents still have them."""
        while True:
            try:
                return await asyncio.to_thread(self._record, rows)
            except LedgerAway as error:
                self._log.warning("cells wait for the ledger", cells=len(rows), problem=str(error))
                await asyncio.sleep(_LEDGER_AWAY_S)

    def _record(self, rows: list[CellRecord]) -> list[CellRecord]:
        """Write rows; one that the database will not have is logged in full, and harms no other."""
        now_ms = time.time_ns() // 1_000_000
        try:
            return self._ledger.record_cells(rows, now_ms)
        except (DataError, OverflowError, ValueError) as error:
            if len(rows) > 1:
                return [row for one in rows for row in self._record([one])]
            self._log.error("the ledger refuses a cell", row=msgspec.to_builtins(rows[0]), problem=str(error))
            return []

    async def _register(self, route: bytes, message: wire.Register) -> None:
        problem = ""
        if message.protocol != wire.PROTOCOL:
            problem = str(VersionMismatch(message.protocol, wire.PROTOCOL, "the agent"))
        elif not secrets.compare_digest(message.secret.encode(), self._secret.encode()):
            problem = "The agent does not know this pool's secret."
        if problem:
            self.refused += 1
            self._log.warning("agent refused", node=message.node[:100], problem=problem)
            await self._send(route, wire.Refused(code="agent-refused", sentence=problem))
            return
        self._forget(message.agent)
        self.known[message.agent] = Agent(route, message, self._now_ms())
        self._by_route[route] = message.agent
        for held in message.held:
            self._kernels.learn(held)
        self._log.info("agent registered", agent=message.agent, node=message.node, slots=len(message.slots))
        await self._send(route, wire.Registered())
        await self._kernels.name_slots(self.slot_word)
        await self.leases.joined(message)
        self._registered()

    def _forget(self, agent_id: AgentId) -> None:
        agent = self.known.pop(agent_id, None)
        if agent is not None:
            self._by_route.pop(agent.route, None)
