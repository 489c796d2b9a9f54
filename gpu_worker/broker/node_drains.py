"""Nodes that admins want empty, now or from a time on: who wants it, and why. Kept in the ledger."""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from bulletin.codes import RefusalCode
from bulletin.ids import AgentId, UserName
from bulletin.wire import console
from gpu_worker.broker import known_ids
from gpu_worker.broker.agents import Agents
from gpu_worker.broker.drain_times import AT_ONCE_MS, DrainTimes, DrainWord
from gpu_worker.broker.identity import Person
from gpu_worker.broker.known_ids import CannotTell
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.ledger_notes import LedgerNotes, printable
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler.leases.leases import Lease

DRAINED = "node-drained"  # as the ledger calls it


class NodeNote(msgspec.Struct, frozen=True):
    """What the ledger keeps of a drained node."""

    agent: AgentId
    node: str
    is_drained: bool
    by: UserName
    at_ms: int | None = None  #: from when on, in milliseconds since 1970, UTC; None is from when it was said
    why: str = ""
    is_for_all: bool = False  #: who wrote the reason knew that everybody reads it


class NodeDrains:
    """The nodes that are drained, or are to be, and the last word about each."""

    def __init__(
        self, shell: SchedulerShell, agents: Agents, ledger: Ledger, kept: LedgerNotes, now_ms: Callable[[], int]
    ) -> None:
        self._shell, self._agents, self._ledger, self._kept, self._now_ms = shell, agents, ledger, kept, now_ms
        self._state = shell.scheduler.state
        self.times = DrainTimes(shell, now_ms)
        self._notes: dict[AgentId, NodeNote] = {}
        self._log = structlog.get_logger("broker")

    async def recall(self) -> None:
        """Drain what was drained before this broker was started."""
        for payload in await asyncio.to_thread(self._ledger.event_payloads, DRAINED):
            await self._note(msgspec.convert(payload, NodeNote))

    def is_drained(self, agent: AgentId) -> bool:
        """Tell whether an admin wants a node empty by now."""
        note = self._notes.get(agent)
        return note is not None and (note.at_ms is None or note.at_ms <= self._now_ms())

    def why(self, agent: AgentId) -> str:
        """Tell everybody why a node is drained, or is to be; empty where nobody said so for all to read.

        Where it is drained sooner for another reason than an admin's, the admin's is none for that.
        """
        note = self._notes.get(agent)
        is_told = note is not None and note.is_for_all and self.times.is_in_force(agent, DrainWord.ADMIN)
        return note.why if note is not None and is_told else ""

    async def change(
        self, person: Person, asked: console.Drain, show: Callable[[list[Lease]], tuple[console.RunningRow, ...]]
    ) -> console.Drained:
        """Drain a node, plan that, or give it back; tell what it had then, as `show` has it. Raises CannotTell."""
        known_ids.check_admin(person, "drain nodes")
        names = {agent: note.node for agent, note in self._notes.items()}
        names |= {agent: known.message.node for agent, known in self._agents.known.items()}
        agents = tuple(agent for agent, node in names.items() if asked.node in (agent, node))
        if not agents:
            nodes = ", ".join(sorted(set(names.values()))) or "none"
            raise CannotTell(
                RefusalCode.NO_NODE, f"There is no node {asked.node!r} in this pool. Connected nodes: {nodes}."
            )
        is_planned = asked.in_ms is not None and not asked.is_undone
        if is_planned and any(self.is_drained(agent) for agent in agents):
            raise CannotTell(
                RefusalCode.NO_NODE,
                f"{names[agents[0]]} is drained already. First undo that: bulletin drain {asked.node} --undo",
            )
        at_ms = self._now_ms() + asked.in_ms if is_planned and asked.in_ms is not None else None
        why = printable(asked.why)
        notes = [
            NodeNote(
                agent,
                names[agent],
                is_drained=not asked.is_undone,
                by=person.user,
                at_ms=at_ms,
                why=why,
                is_for_all=True,
            )
            for agent in agents
            if is_planned or (agent in self._notes if asked.is_undone else not self.is_drained(agent))
        ]
        for note in notes:
            what = "node given back" if not note.is_drained else "node drained" if at_ms is None else "drain planned"
            self._log.info(what, node=note.node, by=note.by, at_ms=at_ms, why=why)
            await self._note(note)
        # Before the ledger is waited for: sessions that leave now may be gone by then, and are to be told of.
        running = show([lease for lease in self._state.leases.values() if lease.agent in agents])
        for note in notes:
            await self._kept.keep(DRAINED, note)
        await self._shell.tell_queue()
        return console.Drained(
            node=names[agents[0]],
            agents=agents,
            is_drained=not asked.is_undone,
            running=running,
            slot_word=self._agents.slot_word,
            in_ms=asked.in_ms if is_planned else None,
        )

    async def _note(self, note: NodeNote) -> None:
        if note.is_drained:
            self._notes[note.agent] = note
            at_ms = AT_ONCE_MS if note.at_ms is None else note.at_ms
        else:
            self._notes.pop(note.agent, None)
            at_ms = None
        await self.times.note(note.agent, DrainWord.ADMIN, at_ms)
