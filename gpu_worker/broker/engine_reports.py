"""What an engine tells of the agents that it runs, and what it is told in turn: who waits for room that nobody has."""

from collections.abc import Callable, Iterator
from itertools import islice

import structlog

from bulletin.ids import AgentId
from bulletin.wire.messages import engine_broker as wire
from gpu_worker.broker import known_ids
from gpu_worker.broker.agents import Agents
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger_notes import printable
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler.leases.life import Phase

#: So much of the line is looked at: an engine starts a few agents at a time.
_MOST_WAITING = 200


class EngineReports:
    """Answers the engine of the pool."""

    def __init__(self, shell: SchedulerShell, agents: Agents, now_ms: Callable[[], int]) -> None:
        self._shell, self._agents, self._now_ms = shell, agents, now_ms
        self._state = shell.scheduler.state
        self._log = structlog.get_logger("broker")

    async def answer(self, person: Person, news: wire.EngineNews) -> wire.Demand:
        """Take in what became of agents; return who waits for room, and what nodes do. Raises CannotTell."""
        known_ids.check_admin(person, "run the pool's agents")
        for one in news.ended:
            agent = self._find(one.node)
            if agent is not None:
                await self._agents.end(agent, printable(one.sentence))
            self._agents.notes.forget(one.node)  # also one that was taken to be lost
        for node in news.leaving:
            agent = self._find(node)
            if agent is not None:
                if agent not in self._state.drained:
                    self._log.info("node drained", node=node, by="the engine")
                await self._agents.leaving.empty(agent)
        agents = {known.message.node: agent for agent, known in self._agents.known.items()}
        for time in news.times:
            if time.node in agents:
                await self._agents.leaving.move(agents[time.node], time.leaves_in_ms)
        words = printable(news.words)
        if words != self._shell.teller.engine_words:
            self._shell.teller.engine_words = words
            self._shell.teller.note_news()
        return wire.Demand(waiting=tuple(islice(self._needs(), _MOST_WAITING)), nodes=tuple(self._loads()))

    def _find(self, node: str) -> AgentId | None:
        return next((agent for agent, known in self._agents.known.items() if known.message.node == node), None)

    def _needs(self) -> Iterator[wire.RoomNeeded]:
        now_ms = self._now_ms()
        for name, pending in list(self._shell.pending_requests.items()):
            standing = self._shell.waiting(name, now_ms)
            request = self._state.pending.get(name)
            if request is not None and standing is not None and standing.waits_for_room and request.lane != "own":
                yield wire.RoomNeeded(
                    slots=request.need,
                    walltime_ms=request.walltime_ms,
                    waited_ms=now_ms - pending.since_ms,
                    is_exclusive=request.entry.shape.wants.is_exclusive,
                )

    def _loads(self) -> Iterator[wire.NodeLoad]:
        now_ms = self._now_ms()
        for agent, known in self._agents.known.items():
            node = self._state.nodes.get(agent)
            if node is None or node.owner:
                continue
            leases = [self._state.leases[lease] for lease in node.leases]
            hot = sum(len(lease.slots) for lease in leases if lease.phase is Phase.HOT)
            ends_ms = self._state.planned_drains.at_ms.get(agent)
            yield wire.NodeLoad(
                node=known.message.node,
                slots=len(known.message.slots),
                used=sum(len(lease.slots) for lease in leases) - hot,
                hot=hot,
                is_drained=agent in self._state.drained,
                leaves_in_ms=None if ends_ms is None else max(0, ends_ms - now_ms),
            )
