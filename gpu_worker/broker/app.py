"""The broker's process: two sockets, one clock, and the three who share the work. It decides nothing itself.

    kernels ── say hello, ask, wait          agents ── register, report
        └──────────────── leases ───────────────┘      the scheduler's hands

It never looks into a blob: no state, no output and no source of a cell comes here at all, but for first lines of the
cells that their own user asks for by `%gpu attach`.
"""

import asyncio
import os
import time

import msgspec
import structlog
import zmq
import zmq.asyncio

from bulletin.errors import BadConfig
from bulletin.pool_words import slot_word_of
from bulletin.units import DAY_MS
from bulletin.wire import channel, clients, console, frames, keys, messages as wire, page_requests
from bulletin.wire.connections import Connections
from bulletin.wire.messages.engine_broker import Demand
from bulletin.wire.messages.own_cells import OwnReport
from gpu_worker import pool_keys
from gpu_worker.broker import picture, recall
from gpu_worker.broker.access_review import AccessReview
from gpu_worker.broker.agent_admission import AgentAdmission
from gpu_worker.broker.agents import Agents
from gpu_worker.broker.allowance_review import AllowanceReview
from gpu_worker.broker.broker_doors import BrokerDoors
from gpu_worker.broker.console_requests import ConsoleRequests
from gpu_worker.broker.credit_book import CreditBook
from gpu_worker.broker.gates import AgentGate, Gate, KernelGate
from gpu_worker.broker.group_projects import GroupProjects
from gpu_worker.broker.hub_answers import Hub
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.broker.joins import Joins
from gpu_worker.broker.journal_file import JournalFile
from gpu_worker.broker.kernels import Kernels
from gpu_worker.broker.leaving_nodes import LeavingNodes
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.ledger_notes import LedgerNotes
from gpu_worker.broker.left_cells import LeftCells
from gpu_worker.broker.listener import Listener
from gpu_worker.broker.metering import Metering
from gpu_worker.broker.outdated_places import OutdatedPlaces
from gpu_worker.broker.page_answers import PageAnswers
from gpu_worker.broker.policy import Policy, in_force
from gpu_worker.broker.policy_follower import PolicyFollower
from gpu_worker.broker.pool_gauges import PoolGauges
from gpu_worker.broker.pool_metrics import PoolMetrics
from gpu_worker.broker.quota_editing import QuotaEditing
from gpu_worker.broker.quota_previews import QuotaPreviews, environment_of
from gpu_worker.broker.retention import Retention
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.seen_groups import FORGET_MS, SEEN, recalled
from gpu_worker.broker.session_names import SessionNames
from gpu_worker.broker.unreachable_nodes import UnreachableNodes
from gpu_worker.broker.writer import Writer
from gpu_worker.config import PoolSettings
from gpu_worker.faults import Faults
from gpu_worker.node_registry import NodeRegistry
from gpu_worker.reachability import find_obstacle, is_loopback, is_refused, parse
from gpu_worker.scheduler import events
from gpu_worker.scheduler.machine import Scheduler

_TICK_S = 1.0
#: What a kernel says to a broker is short.
_KERNEL_LIMIT = 64 * 1024
#: And this much by a connection of theirs before a message is whole.
_KERNEL_UNHEARD_LIMIT_BYTES = 16 * _KERNEL_LIMIT
#: So many messages wait on one connection, in each direction: beyond, kernels and agents keep what they have to say,
#: and what there is to say to them is dropped.
_KERNEL_QUEUE, _AGENT_QUEUE = 500, 10_000
#: So long a connection may be there that nobody is known by: a notebook's, which says who it is with its next cell, and
#: an agent's, which does so at once.
_KERNEL_PATIENCE_S, _AGENT_PATIENCE_S = 300.0, 30.0
#: So long kernels are kept away from a broker that has no agent yet.
_ALONE_MS = 10_000
#: For how long a session may come back of which the broker has heard nothing: no walltime is longer.
_REMEMBERED_MS = 30 * DAY_MS
#: What the time of day was when the steady clock was 0.
_STARTED_MS = (time.time_ns() - time.monotonic_ns()) // 1_000_000


class Broker:
    """One pool's broker. `run()` serves until cancelled, or until the pool has been idle for `idle_exit_ms`."""

    def __init__(self, settings: PoolSettings, ledger: Ledger, files: keys.PoolFile, hub: Hub | None) -> None:
        self.settings, self.files, self.ledger = settings, files, ledger
        self.started_ms = self.now_ms()
        self.faults = Faults("broker")
        self._is_announced = False
        self._log = structlog.get_logger("broker")
        self._context, self._agent_context = zmq.asyncio.Context(), zmq.asyncio.Context()
        registry = NodeRegistry(settings.folder)
        registry.read()  # one that cannot be used is said before anything is served
        admission = AgentAdmission(
            files.agent_secret,
            registry,
            lambda route: self._connections[1].key_of(route),  # noqa: PLW0108  connections are made later
            lambda route: self._connections[1].end(route),  # noqa: PLW0108
        )
        self._admitted = channel.AdmittedKeys(self._agent_context, admission.is_admitted)
        self._kernel_socket = channel.serve(self._context.socket(zmq.ROUTER), files.keys, _KERNEL_LIMIT, _KERNEL_QUEUE)
        self._agent_socket = channel.serve(
            self._agent_context.socket(zmq.ROUTER), files.keys, channel.CONTROL_LIMIT, _AGENT_QUEUE
        )
        self._connections = (
            Connections(
                self._context,
                self._kernel_socket,
                lambda route: self.kernels.person_of(route) is not None,
                _KERNEL_PATIENCE_S,
                unheard_limit_bytes=_KERNEL_UNHEARD_LIMIT_BYTES,
            ),
            Connections(
                self._agent_context,
                self._agent_socket,
                lambda route: self.agents.is_known(route),  # noqa: PLW0108  agents are made later
                _AGENT_PATIENCE_S,
            ),
        )
        self._doors = BrokerDoors(settings, (self._kernel_socket, self._agent_socket), self._connections)
        self._gates: tuple[Gate, Gate] = (
            KernelGate(lambda route: self.kernels.person_of(route)),  # noqa: PLW0108  kernels are made later
            AgentGate(lambda route: self.agents.is_known(route)),  # noqa: PLW0108  so are agents
        )
        self._to_kernels: Listener[clients.FromClient] = Listener(
            self._kernel_socket, frames.Unpacker(clients.FromClient), self._gates[0], self.faults, self._connections[0]
        )
        self._to_agents: Listener[wire.FromAgent] = Listener(
            self._agent_socket, frames.Unpacker(wire.FromAgent), self._gates[1], self.faults, self._connections[1]
        )
        self.metrics = PoolMetrics()
        self.writer = Writer(ledger, self.now_ms, self.metrics.note_records)
        self._identity, self._serves_hub = Identity(files.token, hub, settings.hub_scope), hub is not None
        slot_word, open_leases = slot_word_of(ledger.slot_kinds()), ledger.open_leases()
        self.kernels = Kernels(
            self._send_kernel,
            self._identity,
            self.now_ms,
            self._draw,
            self._answer,
            slot_word,
            self.faults,
            SessionNames(files.agent_secret, {one.lease.session: one.lease.user for one in open_leases}),
        )
        self.agents = Agents(
            self._to_agents.send,
            admission,
            self.kernels,
            self.now_ms,
            self._announce,
            slot_word,
            self._find_obstacle,
            is_refused,
            settings.keep_ms,
        )
        before, times = in_force(ledger)
        groups = recalled(ledger.timed_payloads(SEEN), ledger.last_use(self.started_ms - FORGET_MS))
        policy = Policy(settings, before, groups)
        self._follower = PolicyFollower(policy, ledger, self.writer, times, self.now_ms)
        in_force_now, balances = self._follower.settings, ledger.past_credits()
        scheduler = Scheduler(in_force_now)
        self._journal = JournalFile(settings.journal_file, scheduler.settings) if settings.journal_file else None
        for event, at_ms in recall.past(ledger, in_force_now, balances, self.started_ms, policy.outer, registry.owners):
            if self._journal is not None:
                self._journal.note(event, at_ms)
            scheduler.step(event, at_ms)
        self._credit_book = CreditBook(scheduler.state, keys.make_id(), balances, self.started_ms)
        given_up = ledger.given_up(since_ms=self.started_ms - _REMEMBERED_MS)
        metering = Metering(scheduler.state, open_leases, given_up, self.started_ms)
        self.shell = SchedulerShell(
            scheduler,
            metering,
            self.writer,
            self.now_ms,
            self.kernels.tell,
            self.agents.tell,
            self.faults,
            self._journal,
            note_wait=lambda pending: self.metrics.note_wait(
                pending.project, pending.message.qos, self.now_ms() - pending.since_ms
            ),
        )
        self.kernels.shell = self.agents.shell = self.shell
        self.shell.teller.left_cells = LeftCells(self.shell.active_leases, self.kernels.is_gone)
        self._groups = self.kernels.groups = GroupProjects(
            self._follower, self.shell, self._identity, self.writer, self.now_ms
        )
        self._access_review = AccessReview(self._identity, self.shell, self.kernels, self.now_ms)
        self._previews = QuotaPreviews(
            settings.database, self.agents, self.now_ms, lambda: environment_of(dict(os.environ))
        )
        quotas = QuotaEditing(self.shell, self._follower, self._previews, self.now_ms)
        self._notes = LedgerNotes(ledger, settings.folder / "late_notes.jsonl")
        self._console = ConsoleRequests(
            self.shell,
            self.agents,
            ledger,
            self._notes,
            self.now_ms,
            self.metrics.text,
            quotas.answer,
            self._groups.learn,
        )
        asking = self.shell, self.agents, ledger, self.now_ms, self._console.answer
        self._pages = PageAnswers(*asking, self._console.drains.why, self.started_ms, serves_hub=self._serves_hub)
        self.kernels.decisions = self._console.allowances.news
        self.kernels.decisions.tell_all = self.kernels.tell_user
        drain_times = self._console.drains.times
        self.agents.leaving = LeavingNodes(self.shell, self.kernels.tell, self.agents.tell, drain_times, self.now_ms)
        self.agents.unreachable = UnreachableNodes(drain_times)
        self.joins = self.kernels.joins = self.agents.joins = Joins(
            self._send_kernel, self.agents.tell, self.shell, self.now_ms
        )
        self.metrics.show(
            PoolGauges(
                self.shell,
                self.agents,
                self.now_ms,
                self.started_ms,
                lambda: self.counters,
                lambda: self.writer.unwritten,
            )
        )

    @staticmethod
    def now_ms() -> int:
        """Return the scheduler's time: milliseconds since 1970 by a clock that never runs backwards."""
        return _STARTED_MS + time.monotonic_ns() // 1_000_000

    @property
    def counters(self) -> dict[str, int]:
        """Count what was turned away, by kind."""
        listeners = (self._to_kernels, self._to_agents)
        return {
            "malformed": sum(listener.malformed for listener in listeners),
            "undeliverable": sum(listener.undeliverable for listener in listeners),
            "faults": self.faults.count,
            "too fast": sum(listener.dropped for listener in listeners),
            "refused hellos": self.kernels.refused_hellos,
            "refused agents": self.agents.refused,
            "failed handshakes": sum(one.failed for one in self._connections),
            "ended strangers": sum(one.ended for one in self._connections),
            **{
                f"{name} at {agent.message.node}": count
                for agent in self.agents.known.values()
                for name, count in agent.counters.items()
            },
        }

    async def run(self) -> None:
        """Bind and serve; the connection file follows when the first agent has come."""
        self.faults.watch(asyncio.get_running_loop())
        await self._console.recall()
        self._admitted.start()
        self._bind()
        if self.settings.engine.is_scaled:  # an agent comes when somebody waits
            self._announce()
        self._log.info("broker ready", kernels=self.files.kernel_address, agents=self.files.agent_address)
        tasks = [
            asyncio.create_task(
                self._to_kernels.run(self.kernels.take, lambda route, _: self.kernels.end_connection(route))
            ),
            asyncio.create_task(
                self._to_agents.run(self.agents.take, self.agents.end_session, self.agents.note_protocol)
            ),
            asyncio.create_task(self.kernels.aside.run()),
            asyncio.create_task(self.writer.run()),
            asyncio.create_task(Retention(self.ledger.database, self.settings.keep_cells_ms, self.now_ms).run()),
            asyncio.create_task(self.shell.teller.run()),
            asyncio.create_task(self.shell.estimates.run()),
            asyncio.create_task(self._access_review.run()),
            asyncio.create_task(AllowanceReview(self._identity, self._console.allowances, self.now_ms).run()),
            asyncio.create_task(OutdatedPlaces(self.shell, self.now_ms).run()),
            asyncio.create_task(self._tick()),
            asyncio.create_task(self._follower.run(self.shell)),
            asyncio.create_task(self._groups.run()),
            asyncio.create_task(self._notes.run()),
            asyncio.create_task(self._doors.follow_name()),
            *(asyncio.create_task(one.run()) for one in self._connections),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a task that ended by an exception ends the broker; it is started again
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, self.kernels.aside.close(), self._previews.close(), return_exceptions=True)
            for listener in (self._to_kernels, self._to_agents):
                listener.close()
            for one in self._connections:
                one.close()
            self._admitted.stop()
            for context in (self._context, self._agent_context):
                context.destroy(linger=200)
            self.writer.keep(self._credit_book.take_entries())
            self.shell.note_running(is_last=True)
            self.writer.close()
            self._identity.close()
            self.ledger.close()
            if self._journal is not None:
                self._journal.close()

    async def _send_kernel(self, route: bytes, message: wire.Message) -> None:
        """Send a kernel, or a command, what it is to hear; refusals are counted."""
        if isinstance(message, wire.Refusal):
            self.metrics.note_refusal(message.code)
        await self._to_kernels.send(route, message)

    async def _draw(self, viewer: Person) -> wire.Picture:
        return await picture.draw(
            viewer,
            self.shell,
            self.agents,
            self.ledger,
            self.now_ms,
            self._console.drains.why,
            started_ms=self.started_ms,
            counters=self.counters,
            ledger_problem=self.writer.problem,
            serves_hub=self._serves_hub,
        )

    async def _answer(
        self, person: Person, question: console.FromConsole | page_requests.FromPage
    ) -> console.Report | page_requests.PageReport | Demand | OwnReport | wire.Refusal:
        if isinstance(question, page_requests.FromPage):
            return await self._pages.answer(person, question)
        return await self._console.answer(person, question)

    async def _find_obstacle(self, told: str) -> str:
        """Say why notebooks would not reach a node at the address that it tells them; empty if they would."""
        host, own = parse(told), parse(self.files.agent_address)
        if host is not None and own is not None and is_loopback(host[0]) and not is_loopback(own[0]):
            return (
                f"It tells them {told}, where each host finds itself. Leave Pool.host and Pool.advertise of the node "
                "empty, or set them to an address of its host."
            )
        return await find_obstacle(told)

    def _announce(self) -> None:
        """Let kernels come: there is a slot for them, or there may be none for long."""
        if self._is_announced:
            return
        self._is_announced = True
        connection = keys.Connection(
            address=self.files.kernel_address, public_key=self.files.keys.public, token=self.files.token
        )
        keys.write_private(self.settings.connection_file, connection)

    def _bind(self) -> None:
        """Listen where it did last time, and keep where that is."""
        self.files = msgspec.structs.replace(self._doors.open(self.files), serves_hub=self._serves_hub)
        pool_keys.keep(self.settings.pool_file, self.files)
        public = keys.PublicFile(address=self.files.kernel_address, public_key=self.files.keys.public)
        keys.write_public(self.settings.public_file, public)

    def _end_earlier(self) -> None:
        """Be known by its present keys alone, once the time of those before is over."""
        files = self._doors.close_earlier(self.files)
        if files != self.files:
            self.files = files
            try:
                pool_keys.keep(self.settings.pool_file, files)
            except BadConfig as error:  # a broker that is started again closes them again
                self._log.error("that the broker's old keys are over is not kept", problem=str(error))

    async def _tick(self) -> None:
        """Tick once a second, or when the scheduler wants it; return when the pool has been idle for long enough."""
        while True:
            deadline_ms = self.shell.scheduler.deadline()
            pause_s = _TICK_S if deadline_ms is None else (deadline_ms - self.now_ms()) / 1000
            await self.shell.pace.sleep(min(_TICK_S, max(0.01, pause_s)))
            await self.shell.step(events.Tick())
            self.writer.keep(self._credit_book.take_period(self.now_ms()))
            self.shell.note_running()
            self.writer.keep(self.agents.notes.take(self.shell.scheduler.state, self.now_ms()))
            self.writer.tidy()
            if self.agents.known or self.now_ms() - self.started_ms > _ALONE_MS:
                self._announce()
            self._end_earlier()
            await self.agents.tidy()
            await self.kernels.tidy()
            for each in (*self._gates, *self._connections):
                each.tidy()
            with self.faults.contain(lambda: None, during="answering who looks for cells"):
                await self.joins.tidy()
            with self.faults.contain(lambda: None, during="telling who waits"):
                await self.shell.tell_queue()
            if self.shell.active_leases or self.shell.pending_requests:
                self.kernels.active_ms = self.now_ms()
            if 0 < self.settings.idle_exit_ms < self.now_ms() - self.kernels.active_ms:
                self._log.info("nobody has used the pool for a while; it ends")
                return
