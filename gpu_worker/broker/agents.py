"""The agents that talk to the broker: who they are, what they report, where they are reached."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import assert_never

import structlog
from msgspec import structs

from bulletin.codes import RefusalCode
from bulletin.errors import VersionMismatch
from bulletin.ids import AgentId
from bulletin.pool_words import slot_word_of
from bulletin.wire import messages as wire
from gpu_worker.broker import node_sentences
from gpu_worker.broker.absent_nodes import AbsentNodes
from gpu_worker.broker.agent_admission import AgentAdmission
from gpu_worker.broker.broker_pauses import BrokerPauses
from gpu_worker.broker.claimed_times import limit_claims, longest_ms
from gpu_worker.broker.connected_agent import ConnectedAgent
from gpu_worker.broker.joins import Joins
from gpu_worker.broker.kernels import Kernels
from gpu_worker.broker.lease_claims import LeaseClaims
from gpu_worker.broker.leaving_nodes import LeavingNodes
from gpu_worker.broker.ledger_notes import printable
from gpu_worker.broker.moved_nodes import tell_moved
from gpu_worker.broker.node_claims import limit_measures
from gpu_worker.broker.node_notes import NodeNotes
from gpu_worker.broker.own_node_claims import believe, correct, known_in
from gpu_worker.broker.registration_pace import RegistrationPace
from gpu_worker.broker.registration_rules import find_refusal, is_older
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.silent_leases import SilentLeases
from gpu_worker.broker.unreachable_nodes import UnreachableNodes
from gpu_worker.scheduler import events

#: An agent that was not heard of for so long is lost; its cells are too, as far as their users are concerned.
_SILENCE_MS = 10_000
#: So often is asked whether a node that is not heard has lost its agent by now.
_AGAIN_MS = 30_000
#: So often the door of a node is tried that a notebook did not reach.
_DOOR_S = 5.0
_TOLD_TO_ADMINS = (RefusalCode.UNREACHABLE, RefusalCode.VERSION_MISMATCH, RefusalCode.OVER_LIMIT, RefusalCode.TOO_FAST)
Send = Callable[[bytes, wire.Message], Awaitable[None]]


class Agents:
    """All connections of agents."""

    def __init__(
        self,
        send: Send,
        admission: AgentAdmission,
        kernels: Kernels,
        now_ms: Callable[[], int],
        registered: Callable[[], None],
        slot_word: str,
        find_obstacle: Callable[[str], Awaitable[str]],
        is_refused: Callable[[str], Awaitable[bool]],
        keep_ms: int,
    ) -> None:
        """Take what a slot of this pool was called last, for as long as no agent is there.

        `find_obstacle` says why nothing answers at the address that a node tells notebooks; empty if something does.
        `is_refused` tells whether its host says that nothing listens there. A node that is not heard may come back for
        `keep_ms`.
        """
        self._is_refused, self._keep_ms = is_refused, keep_ms
        self._send, self._admission, self._kernels, self._now_ms = send, admission, kernels, now_ms
        self._registered, self._slot_word = registered, slot_word
        self._pauses, self._silent = BrokerPauses(now_ms()), SilentLeases(now_ms())
        self.known: dict[AgentId, ConnectedAgent] = {}
        self._by_route: dict[bytes, AgentId] = {}
        self._absent, self._find_obstacle = AbsentNodes(now_ms), find_obstacle
        self.notes = NodeNotes()
        #: Nodes whose doors are being tried.
        self._trying: set[AgentId] = set()
        self.refused = 0
        self._claims, self._pace = LeaseClaims(kernels.names, lambda: self.shell, now_ms), RegistrationPace(now_ms)
        self.shell: SchedulerShell  #: set by the broker: agents and leases know each other
        self.joins: Joins
        self.unreachable: UnreachableNodes
        self.leaving: LeavingNodes
        self._log = structlog.get_logger("broker")

    @property
    def slot_word(self) -> str:
        """Return what people call a slot of this pool."""
        kinds = {slot.kind for agent in self.known.values() if not agent.owner for slot in agent.message.slots}
        return slot_word_of(kinds) if kinds else self._slot_word

    async def take(self, route: bytes, message: wire.FromAgent) -> None:
        """Take in one message of an agent, and answer where one is due."""
        agent_id = self._by_route.get(route)
        agent = None if agent_id is None else self.known[agent_id]
        # Of a connection that has ended since nobody knows the key but who kept it: what it said comes all the same.
        key = self._admission.key_of(route) if isinstance(message, wire.Register) or agent is None else agent.key
        now_ms = self._now_ms()
        most_ms = longest_ms(now_ms, self._admission.since_ms(key, now_ms))
        message = limit_measures(limit_claims(message, most_ms))
        if isinstance(message, wire.Register):
            await self._register(route, message)
            return
        if agent_id is None or agent is None or self._admission.name_of(agent.key) is None:
            await self._send(route, wire.Unknown())
            return
        if self._claims.is_of_another(agent_id, agent.owner, message):
            self.refused += 1
            self._log.warning("an agent spoke of another's lease", agent=agent_id, said=type(message).__name__)
            return
        agent.heard_ms = self._now_ms()
        if agent.is_away:
            agent.is_away = False
            await self.unreachable.remove(agent_id, agent.message.node)
        match message:
            case wire.Ping():
                agent.note_ping(message)
                if message.leaves_in_ms is not None and not agent.is_leaving:
                    await self.leaving.follow(agent_id, message.leaves_in_ms)
                await self._send(route, wire.Pong())
            case wire.Prepared():
                await self.shell.tell_granted(message.lease)
            case wire.CellBegan():
                active = self.shell.active_leases.get(message.lease)
                if active is not None and message.label is not None:
                    active.label = printable(message.label)
                running_ms = message.running_ms + agent.clock.ago_ms(message.clock_ms, agent.heard_ms)
                await self.shell.step(events.CellStarted(message.lease, message.cell, min(running_ms, most_ms)))
            case wire.CellDone() if not self._claims.admits_cell(agent_id, message.lease):
                pass  # its agent says it again
            case wire.CellDone():
                recorded = partial(self._send, route, wire.Recorded(cell=message.cell, lease=message.lease))
                known = correct(message, agent.message, agent.owner, known_in(self.shell))
                if known is None:  # of its node nobody had a cell by that lease: it need not be said again
                    await recorded()
                    return
                ago_ms = max(0, message.ended_ago_ms) + agent.clock.ago_ms(message.clock_ms, agent.heard_ms)
                await self.shell.record_cell(known, agent.message, min(ago_ms, most_ms), recorded)
            case wire.PauseDeclined():
                await self.shell.step(events.PauseDeclined(message.lease))
            case wire.LeaseOver():
                if agent.is_leaving:
                    await self.leaving.tell_reclaimed(message)
                if self._admission.name_of(agent.key) and self.shell.is_unused(message):
                    self._kernels.aside.start_last(route, self._end_unused(agent_id, agent, message))
                else:
                    await self.shell.end_lease(message)
            case wire.Leaving():
                agent.is_leaving = True
                await self.unreachable.add(agent_id, agent.message.node, node_sentences.LEAVES)
                await self.leaving.requeue_cells(agent_id)  # its agent gives them their grace
            case wire.Left():
                await self.end(agent_id, node_sentences.LEFT)
            case wire.Listed():
                await self.joins.take_listed(agent_id, message)
            case wire.HandedOver():
                await self.joins.take_handed_over(agent_id, message)
            case _:
                assert_never(message)

    def is_known(self, route: bytes) -> bool:
        """Tell whether an agent has registered by this connection."""
        return route in self._by_route

    def end_session(self, route: bytes, message: wire.FromAgent) -> None:
        """Give up the session that a message was about which led to a fault: that one, and nothing else of its node."""
        match message:
            case wire.Prepared() | wire.CellBegan() | wire.CellDone() | wire.PauseDeclined():
                self._kernels.aside.start_last(route, self.shell.give_up_lease(message.lease, node_sentences.FAULT))
            case (
                wire.Register()
                | wire.Ping()
                | wire.LeaseOver()
                | wire.Listed()
                | wire.HandedOver()
                | wire.Leaving()
                | wire.Left()
            ):
                pass  # the agent says it again, or who waits for it is told that it did not come
            case _:
                assert_never(message)

    async def tell(self, agent: AgentId, message: wire.Message) -> None:
        """Say something to an agent, if it is there."""
        if agent in self.known:
            await self._send(self.known[agent].route, message)

    async def tidy(self) -> None:
        """Give up the agents that have been silent for too long while this broker listened, or are revoked."""
        self._claims.tidy()
        self._pace.tidy()
        now_ms = self._now_ms()
        unheard_ms = self._pauses.take(now_ms)
        for agent_id, agent in list(self.known.items()):
            has_expired = self._admission.has_expired(agent.key)
            if has_expired and not agent.is_away:
                self._log.warning("an agent has only its old keys", agent=agent_id, node=agent.message.node)
                self._admission.end(agent.route)
                agent.is_away = True
                await self.unreachable.add(agent_id, agent.message.node, node_sentences.OLD_KEYS)
            elif not has_expired and self._admission.name_of(agent.key) is None:
                self._log.warning("agent revoked", agent=agent_id, node=agent.message.node)
                for lease, active in list(self.shell.active_leases.items()):
                    if active.agent == agent_id:  # nobody is to speak with it any more
                        await self.shell.give_up_lease(lease, node_sentences.REVOKED)
                self._admission.end(agent.route)
                self._forget(agent_id)
                self._absent.forget(agent.message.node)
                await self.shell.drop_node(agent_id, agent.heard_ms)
                await self.unreachable.forget(agent_id)
                self.notes.forget(agent.message.node)
                continue
            agent.heard_ms = min(agent.heard_ms + unheard_ms, now_ms)
            silent_ms = now_ms - agent.heard_ms
            if silent_ms <= _SILENCE_MS:
                continue
            if silent_ms > self._keep_ms:
                await self._lose(agent_id, agent)
            elif agent_id not in self._trying and not has_expired and agent.is_to_be_looked_after(now_ms):
                self._trying.add(agent_id)
                agent.look_again_ms = now_ms + _AGAIN_MS
                self._kernels.aside.start_last(agent.route, self._look_after(agent_id, agent))

        for session in self._silent.take_blocked(self.shell.scheduler.state, self._is_heard, now_ms):
            await self._kernels.renew_session(session)

    def _is_heard(self, agent_id: AgentId) -> bool:
        agent = self.known.get(agent_id)
        return agent is not None and not agent.is_away and self._now_ms() - agent.heard_ms <= _SILENCE_MS

    async def _look_after(self, agent_id: AgentId, agent: ConnectedAgent) -> None:
        """Find out whether a silent node has lost its agent, which is lost then, or only the link to it is cut."""
        try:
            is_gone = await self._is_refused(agent.message.address.address)
        finally:
            self._trying.discard(agent_id)
        if self.known.get(agent_id) is not agent or self._now_ms() - agent.heard_ms <= _SILENCE_MS:
            return
        if is_gone:
            await self._lose(agent_id, agent)
        else:
            agent.is_away = True
            await self.unreachable.add(agent_id, agent.message.node, node_sentences.AWAY)

    async def end(self, agent_id: AgentId, sentence: str) -> None:
        """Part with an agent that is gone for certain; what ran there is run again, and its users are told why."""
        agent = self.known[agent_id]
        self._log.info("agent left", agent=agent_id, node=agent.message.node, why=sentence)
        await self.leaving.end_leases(agent_id, sentence)
        self._forget(agent_id)
        if agent.message.node in self._admission.expected_nodes:
            self._absent.note_lost(agent.message.node, agent.heard_ms, is_registered=True)
        await self.shell.drop_node(agent_id, agent.heard_ms)
        await self.unreachable.forget(agent_id)
        if self._admission.is_unmissed(agent.key):  # else it comes back, as when hosts are started again
            self.notes.forget(agent.message.node)

    async def _lose(self, agent_id: AgentId, agent: ConnectedAgent) -> None:
        self._log.warning("agent lost", agent=agent_id, node=agent.message.node)
        if agent.is_leaving:  # killed within its cells' grace: they were told that they run again
            await self.end(agent_id, node_sentences.LEFT)
            return
        self._forget(agent_id)
        if not self._admission.is_unmissed(agent.key):
            self._absent.note_lost(
                agent.message.node, agent.heard_ms, is_registered=bool(self._admission.name_of(agent.key))
            )
        await self.shell.drop_node(agent_id, agent.heard_ms)
        await self.unreachable.forget(agent_id)

    async def _end_unused(self, agent_id: AgentId, agent: ConnectedAgent, message: wire.LeaseOver) -> None:
        """End a lease whose notebook did not come; first see whether others would, so that it is not sent here again.

        A node whose door answers is not left out for it: notebooks end before they come, too.
        """
        obstacle = await self._find_obstacle(agent.message.address.address)
        if obstacle and self.known.get(agent_id) is agent:
            await self.unreachable.add(agent_id, agent.message.node, obstacle)
            self._kernels.aside.start_last(agent.route, self._try_until_reached(agent_id, agent))
        await self.shell.end_lease(message)

    async def _try_until_reached(self, agent_id: AgentId, agent: ConnectedAgent) -> None:
        """Take a node in again as soon as its door answers."""
        while self.known.get(agent_id) is agent and agent_id in self.unreachable.reasons:
            await asyncio.sleep(_DOOR_S)
            if not await self._find_obstacle(agent.message.address.address):
                await self.unreachable.remove(agent_id, agent.message.node)

    async def _register(self, route: bytes, message: wire.Register) -> None:
        code, problem = find_refusal(route, message, self._admission, self.known.get(message.agent), self._now_ms())
        if problem:
            await self._refuse(route, message, code, problem)
            return
        earlier = self.known.get(message.agent)
        is_said_again = earlier is not None and earlier.route == route and earlier.message.address == message.address
        if earlier is not None and is_said_again and not earlier.has_moved:
            # Each of its pings that waited for this broker was answered with Unknown, and each Unknown with such a
            # message. This one was written before it heard of what is granted since; what is new, it says next.
            earlier.heard_ms = self._now_ms()
            await self._send(route, wire.Registered())
        elif earlier is not None and is_older(message, earlier.message):
            # The system still sends what was on its way when a link was cut, long after the agent came by another
            # connection: what has begun there since is not in it, and must not be taken for lost.
            self._log.info("agent said earlier what it is", agent=message.agent, node=message.node)
        elif problem := self._pace.find_problem(message):
            if self._pace.take_telling(message):
                await self._refuse(route, message, RefusalCode.TOO_FAST, problem)
        elif message.held or not self._admission.is_node(route):  # cells that run there are not lost for a door
            await self._accept(route, message)
        elif message.agent not in self._trying:
            self._trying.add(message.agent)
            self._kernels.aside.start_last(route, self._try_door(route, message))

    async def _try_door(self, route: bytes, message: wire.Register) -> None:
        """Let a node in if it can be reached where notebooks would."""
        try:
            obstacle = await self._find_obstacle(message.address.address)
        finally:
            self._trying.discard(message.agent)
        if obstacle and self._admission.owner_of(self._admission.key_of(route)):
            obstacle = node_sentences.NO_WAY  # what else the broker has seen there is nothing for users
        code, problem = find_refusal(
            route, message, self._admission, self.known.get(message.agent), self._now_ms()
        )  # some time has gone by
        if not problem and obstacle:
            code, earlier = RefusalCode.UNREACHABLE, self.known.get(message.agent)
            if earlier is not None:  # it is given nothing more where it is no longer
                earlier.has_moved, earlier.is_away = True, False
                await self.unreachable.add(message.agent, message.node, obstacle)
            problem = f"The broker cannot reach this node where notebooks would. {obstacle}"
        if problem:
            await self._refuse(route, message, code, problem)
        else:
            await self._accept(route, message)

    async def _refuse(self, route: bytes, message: wire.Register, code: RefusalCode, problem: str) -> None:
        self.refused += 1
        self._log.warning("agent refused", node=message.node[:100], problem=problem)
        if code in _TOLD_TO_ADMINS and self._admission.is_node(route):
            self._absent.note_problem(message.node, problem)
        await self._send(route, wire.Refusal(code=code, sentence=problem))

    def note_protocol(self, route: bytes, protocol: int) -> None:
        """Note that who speaks by this connection speaks another protocol, of which nothing can be read."""
        name = self._admission.name_of(self._admission.key_of(route) or "")
        problem = str(VersionMismatch(protocol, wire.PROTOCOL, "the agent"))
        if name and self._absent.note_problem(name, problem):
            self.refused += 1
            self._log.warning("agent refused", node=name, problem=problem)

    @property
    def absent_nodes(self) -> tuple[wire.AbsentNode, ...]:
        """The nodes that should be there and are not."""
        present = {agent.message.node for agent in self.known.values()}
        unreachable = self.unreachable.listed(self.known, self._now_ms())
        return (*unreachable, *self._absent.listed(self._admission.expected_nodes, present))

    async def _accept(self, route: bytes, message: wire.Register) -> None:
        self._pace.charge(message)
        key = self._admission.key_of(route) or ""
        owner = self._admission.owner_of(key)
        if owner is None:
            return  # its node was removed in this moment; `tidy` parts with what is known of it
        earlier = self.known.get(message.agent)
        is_other = earlier is not None and earlier.message.process not in ("", message.process)
        if is_other and self._admission.is_unmissed(key):  # its job was put back into the queue, and has begun anew
            await self.leaving.end_leases(message.agent, node_sentences.ANEW)
        self._forget(message.agent)
        self._absent.forget(message.node)
        message, unknown = believe(message, owner, known_in(self.shell))
        message = structs.replace(message, held=tuple(self._claims.find_believed(message)))
        agent = ConnectedAgent(route, key, message, self._now_ms(), owner)
        agent.clock.compare(message.clock_ms, agent.heard_ms)  # a cell may begin before its first ping
        self.known[message.agent], self._by_route[route] = agent, message.agent
        for one in message.held:
            self._kernels.learn(one)
        self._log.info("agent registered", agent=message.agent, node=message.node, slots=len(message.slots))
        await self._send(route, wire.Registered())
        self._slot_word = self.slot_word
        await self._kernels.name_slots(self.slot_word)
        await self.leaving.plan(message)  # before it is given anything
        await self.shell.add_node(message, owner, earlier.heard_ms if earlier is not None and is_other else None)
        for one in message.held:
            self._kernels.note_token(one.session)
        if earlier is None or earlier.message.address != message.address:  # it may have moved meanwhile
            await tell_moved(message, self.shell.active_leases, self._kernels.tell)
        for lease in unknown:
            await self._send(route, wire.Evict(lease=lease, force=True))
        await self.unreachable.remove(message.agent, message.node)
        self._registered()

    def _forget(self, agent_id: AgentId) -> None:
        agent = self.known.pop(agent_id, None)
        if agent is not None:
            self._by_route.pop(agent.route, None)
