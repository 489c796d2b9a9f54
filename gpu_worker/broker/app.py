"""The broker's process: sockets, one clock, `step`, and what the actions ask for. It decides nothing itself.

It never looks into a blob: no state, no output and no source of a cell comes here at all.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import assert_never

import msgspec
import structlog
import zmq
import zmq.asyncio

from bulletin import __version__
from bulletin.errors import BadConfig, MalformedMessage, NotAllowed, VersionMismatch
from bulletin.ids import AgentId, CellId, KernelId, LeaseId, ProjectId, RequestId, SessionId
from bulletin.wire import channel, frames, keys
from bulletin.wire import messages as wire
from gpu_worker.broker import picture, translate
from gpu_worker.broker.identity import Hub, Identity, Person
from gpu_worker.broker.ledger import CellRecord, Ledger
from gpu_worker.config import Settings
from gpu_worker.scheduler import actions, events, explain, projects
from gpu_worker.scheduler.machine import Scheduler

#: An agent that was not heard of for so long is lost; its cells are too, as far as their users are concerned.
AGENT_SILENCE_MS = 10_000
#: A kernel whose request waits says so every second. One that stopped saying so is gone.
KERNEL_SILENCE_MS = 20_000
#: A connection that was silent for so long is forgotten; its kernel says hello again when it has a cell.
_FORGET_MS = 3_600_000
_TICK_S = 1.0


class Kernel(msgspec.Struct):
    """A kernel (or a status client) that said hello: one connection."""

    route: bytes
    token: str
    person: Person
    kernel: KernelId
    session: SessionId
    heard_ms: int


class Wish(msgspec.Struct):
    """A request in the queue, and whose it is."""

    session: SessionId
    name: RequestId  #: the kernel's own name for it
    message: wire.Submit
    person: Person
    kernel: KernelId
    since_ms: int
    told: wire.Queued | None = None


class Deal(msgspec.Struct):
    """A lease that was granted, and what its kernel must hear when its executor is up."""

    session: SessionId
    agent: AgentId
    granted: wire.Granted | None
    prepare: wire.Prepare | None


class Agent(msgspec.Struct):
    """A node that registered: one connection."""

    route: bytes
    message: wire.Register
    heard_ms: int


class Broker:
    """One pool's broker. `run()` serves until cancelled, or until the pool has been idle for `idle_exit_ms`."""

    def __init__(self, settings: Settings, ledger: Ledger, files: keys.PoolFile, hub: Hub | None) -> None:
        self.settings, self.files, self.ledger = settings, files, ledger
        self.identity = Identity(files.token, hub, settings.hub_scope)
        self.scheduler = Scheduler(_scheduler_settings(settings))
        self.started_ms = self.now_ms()
        self.counters: Counter[str] = Counter()
        self.kernels: dict[bytes, Kernel] = {}
        self.routes: dict[SessionId, bytes] = {}  #: the connection on which a session's kernel was heard last
        self.sessions: dict[tuple[str, KernelId], SessionId] = {}
        self.wishes: dict[RequestId, Wish] = {}
        self.deals: dict[LeaseId, Deal] = {}
        self.agents: dict[AgentId, Agent] = {}
        self.agent_routes: dict[bytes, AgentId] = {}
        self.active_ms = self.started_ms
        self.log = structlog.get_logger("broker")
        self._context = zmq.asyncio.Context()
        self._kernel_socket = channel.serve(self._context.socket(zmq.ROUTER), files.keys, channel.CONTROL_LIMIT)
        self._agent_socket = channel.serve(self._context.socket(zmq.ROUTER), files.keys, channel.CONTROL_LIMIT)
        self.handshake_monitors = [
            channel.HandshakeCounter(self._context, s) for s in (self._kernel_socket, self._agent_socket)
        ]
        self._hellos: set[asyncio.Task[None]] = set()
        self._stepping = asyncio.Lock()
        self._unwritten: asyncio.Queue[tuple[bytes, CellRecord]] = asyncio.Queue()

    @staticmethod
    def now_ms() -> int:
        """The scheduler's time: a clock that never runs backwards."""
        return time.monotonic_ns() // 1_000_000

    # --- the process

    async def run(self) -> None:
        """Bind, write the connection file, serve."""
        self._bind()
        keys.write_private(
            self.settings.connection_file,
            keys.Connection(
                address=self.files.kernel_address, public_key=self.files.keys.public, token=self.files.token
            ),
        )
        self.log.info("broker ready", kernels=self.files.kernel_address, agents=self.files.agent_address)
        serving = [
            asyncio.create_task(self._serve(self._kernel_socket, frames.Unpacker(wire.FromKernel), self._from_kernel)),
            asyncio.create_task(self._serve(self._agent_socket, frames.Unpacker(wire.FromAgent), self._from_agent)),
            asyncio.create_task(self._write()),
            *(asyncio.create_task(monitor.run()) for monitor in self.handshake_monitors),
        ]
        try:
            ticking = asyncio.create_task(self._tick())
            done, _ = await asyncio.wait([ticking, *serving], return_when=asyncio.FIRST_COMPLETED)
            serving.append(ticking)
            for task in done:
                task.result()  # a task that ended by an exception ends the broker; it is started again
        finally:
            for task in [*serving, *self._hellos]:
                task.cancel()
            await asyncio.gather(*serving, *self._hellos, return_exceptions=True)
            for monitor in self.handshake_monitors:
                monitor.close()
            self._context.destroy(linger=200)
            self.ledger.close()

    def _bind(self) -> None:
        """The addresses of last time, so that kernels and agents find the way back; else free ones, then kept."""
        kept = self.files
        kernel = self._bind_one(self._kernel_socket, kept.kernel_address, self.settings.kernel_port)
        agent = self._bind_one(self._agent_socket, kept.agent_address, self.settings.agent_port)
        if (kernel, agent) != (kept.kernel_address, kept.agent_address):
            self.files = msgspec.structs.replace(kept, kernel_address=kernel, agent_address=agent)
            keys.write_private(self.settings.pool_file, self.files)

    def _bind_one(self, socket: zmq.asyncio.Socket, kept: str, port: int) -> str:
        wanted = f"tcp://{self.settings.host}:{port}"
        if kept.startswith(f"tcp://{self.settings.host}:") and port in (0, int(kept.rpartition(":")[2])):
            try:
                return channel.bind(socket, kept)
            except zmq.ZMQError:
                self.log.warning("the port of last time is taken, another is used", address=kept)
        try:
            return channel.bind(socket, wanted)
        except zmq.ZMQError as error:
            raise BadConfig(
                f"The pool cannot listen on {wanted}: {error.strerror}. Choose another Pool.host or port."
            ) from None

    async def _serve(
        self,
        socket: zmq.asyncio.Socket,
        unpacker: frames.Unpacker[wire.Message],
        take: Callable[[bytes, wire.Message], Awaitable[None]],
    ) -> None:
        while True:
            route, *parts = await socket.recv_multipart()
            try:
                message, _ = unpacker.unpack(parts)
            except MalformedMessage as error:
                self.counters["malformed"] += 1
                await self._send(socket, route, wire.Malformed(problem=error.problem))
                continue
            await take(route, message)

    async def _send(self, socket: zmq.asyncio.Socket, route: bytes, message: wire.Message) -> None:
        try:
            await socket.send_multipart([route, *frames.pack(message)])
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            self.counters["undeliverable"] += 1  # who left; what mattered is said again when it comes back

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s())
            now_ms = self.now_ms()
            await self._step(events.Tick())
            for agent_id, agent in list(self.agents.items()):
                if now_ms - agent.heard_ms > AGENT_SILENCE_MS:
                    self.log.warning("agent lost", agent=agent_id, node=agent.message.node)
                    self._forget_agent(agent_id)
                    await self._step(events.AgentLost(agent_id))
            for request, wish in list(self.wishes.items()):
                kernel = self.kernels.get(self.routes.get(wish.session, b""))
                if kernel is None or now_ms - kernel.heard_ms > KERNEL_SILENCE_MS:
                    await self._withdraw(request)
            for route in [r for r, kernel in self.kernels.items() if now_ms - kernel.heard_ms > _FORGET_MS]:
                kernel = self.kernels.pop(route)
                if self.routes.get(kernel.session) == route:
                    del self.routes[kernel.session]
                    if all(deal.session != kernel.session for deal in self.deals.values()):
                        self.sessions.pop((kernel.person.user, kernel.kernel), None)
            await self._tell_queue(everybody=True)
            if self._is_idle(now_ms):
                self.log.info("nobody has used the pool for a while; it ends")
                return

    def _pause_s(self) -> float:
        deadline_ms = self.scheduler.deadline()
        return _TICK_S if deadline_ms is None else min(_TICK_S, max(0.01, (deadline_ms - self.now_ms()) / 1000))

    def _is_idle(self, now_ms: int) -> bool:
        if self.deals or self.wishes:
            self.active_ms = now_ms
        return 0 < self.settings.idle_exit_ms < now_ms - self.active_ms

    # --- kernels

    async def _from_kernel(self, route: bytes, message: wire.Message) -> None:
        kernel = self.kernels.get(route)
        if isinstance(message, wire.Hello):
            self._aside(self._hello(route, message))  # the hub may take its time; others go on
            return
        if kernel is None:
            await self._send(self._kernel_socket, route, wire.Unknown())
            return
        self.active_ms = kernel.heard_ms = self.now_ms()
        self.routes[kernel.session] = route
        match message:
            case wire.Ping():
                await self._send(self._kernel_socket, route, wire.Pong())
            case wire.Submit() if self.identity.believed(kernel.token, self.now_ms()) is None:
                self._aside(self._identify(kernel, message))
            case wire.Submit():
                await self._submit(kernel, message)
            case wire.Withdraw():
                await self._withdraw(RequestId(f"{kernel.session}/{message.request}"))
            case wire.Look():
                await self._send(self._kernel_socket, route, picture.draw(self, kernel.person))

    def _aside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._hellos.add(task)
        task.add_done_callback(self._hellos.discard)

    async def _identify(self, kernel: Kernel, message: wire.Submit) -> None:
        """Ask the hub again who this is, then take the request."""
        try:
            kernel.person = await self.identity.who(kernel.token, self.now_ms())
        except NotAllowed as error:
            refused = wire.Refused(code=error.code, sentence=error.problem, request=message.request)
            await self._send(self._kernel_socket, kernel.route, refused)
            return
        await self._submit(kernel, message)

    async def _hello(self, route: bytes, message: wire.Hello) -> None:
        try:
            if message.protocol != wire.PROTOCOL:
                raise VersionMismatch(message.protocol, wire.PROTOCOL, "the notebook's side")
            person = await self.identity.who(message.token, self.now_ms())
        except (VersionMismatch, NotAllowed) as error:
            self.counters["refused hellos"] += 1
            self.log.info("hello refused", code=error.code)
            await self._send(self._kernel_socket, route, wire.Refused(code=error.code, sentence=_bare(error)))
            return
        session = self.sessions.setdefault((person.user, message.kernel), SessionId(f"s-{secrets.token_hex(8)}"))
        earlier = self.routes.get(session)
        if earlier is not None and earlier != route:  # its kernel has connected anew
            self.kernels.pop(earlier, None)
        self.kernels[route] = Kernel(route, message.token, person, message.kernel, session, self.now_ms())
        self.routes[session] = route
        self.active_ms = self.now_ms()
        await self._welcome(self.kernels[route])

    async def _welcome(self, kernel: Kernel) -> None:
        welcome = wire.Welcome(user=kernel.person.user, version=__version__, slot_word=self.slot_word)
        await self._send(self._kernel_socket, kernel.route, welcome)

    @property
    def slot_word(self) -> str:
        """What a slot of this pool is for people."""
        kinds = {slot.kind for agent in self.agents.values() for slot in agent.message.slots}
        return "CPU slot" if kinds == {"cpu"} else "GPU"

    async def _submit(self, kernel: Kernel, message: wire.Submit) -> None:
        project = message.project or kernel.person.project
        if message.project and message.project not in kernel.person.groups and project != kernel.person.project:
            mine = ", ".join(kernel.person.groups) or kernel.person.project
            sentence = f"you are not in the project {message.project!r}. Your projects: {mine}."
            refused = wire.Refused(code="not-your-project", sentence=sentence, request=message.request)
            await self._send(self._kernel_socket, kernel.route, refused)
            return
        request = RequestId(f"{kernel.session}/{message.request}")
        lease = LeaseId(f"l-{secrets.token_hex(8)}")
        if request not in self.wishes:
            self.wishes[request] = Wish(
                kernel.session, message.request, message, kernel.person, kernel.kernel, self.now_ms()
            )
        event = translate.submitted(message, request, lease, kernel.session, kernel.person.user, ProjectId(project))
        await self._step(event)
        await self._tell_queue(everybody=False)

    async def _withdraw(self, request: RequestId) -> None:
        self.wishes.pop(request, None)
        await self._step(events.RequestWithdrawn(request))

    async def _tell_session(self, session: SessionId, message: wire.Message) -> None:
        route = self.routes.get(session)
        if route is not None:
            await self._send(self._kernel_socket, route, message)

    async def _tell_queue(self, *, everybody: bool) -> None:
        """Say where requests stand: all of them each second, and at once what has changed."""
        for request, wish in list(self.wishes.items()):
            waiting = self.waiting(request)
            if waiting is None:
                continue
            news = translate.queued(wish.name, waiting)
            if everybody or news != wish.told:
                wish.told = news
                await self._tell_session(wish.session, news)

    def waiting(self, request: RequestId) -> explain.Waiting | None:
        """Where a request stands; None if it does not wait."""
        if request not in self.scheduler.state.pending:
            return None
        return explain.waiting(self.scheduler.state, request, self.now_ms())

    # --- agents

    async def _from_agent(self, route: bytes, message: wire.Message) -> None:
        if isinstance(message, wire.Register):
            await self._register(route, message)
            return
        agent_id = self.agent_routes.get(route)
        if agent_id is None:
            await self._send(self._agent_socket, route, wire.Unknown())
            return
        agent = self.agents[agent_id]
        agent.heard_ms = self.now_ms()
        match message:
            case wire.Ping():
                await self._send(self._agent_socket, route, wire.Pong())
            case wire.Prepared():
                deal = self.deals.get(message.lease)
                if deal is not None and deal.granted is not None:
                    await self._tell_session(deal.session, deal.granted)
            case wire.CellBegan():
                await self._step(events.CellStarted(message.lease, message.cell))
            case wire.CellDone():
                await self._cell_done(agent, message)
            case wire.LeaseOver():
                await self._lease_over(message)

    async def _register(self, route: bytes, message: wire.Register) -> None:
        problem = ""
        if message.protocol != wire.PROTOCOL:
            problem = str(VersionMismatch(message.protocol, wire.PROTOCOL, "the agent"))
        elif not secrets.compare_digest(message.secret.encode(), self.files.agent_secret.encode()):
            problem = "The agent does not know this pool's secret."
        if problem:
            self.counters["refused agents"] += 1
            self.log.warning("agent refused", node=message.node[:100], problem=problem)
            await self._send(self._agent_socket, route, wire.Refused(code="agent-refused", sentence=problem))
            return
        word = self.slot_word
        self._forget_agent(message.agent)
        self.agents[message.agent] = Agent(route, message, self.now_ms())
        self.agent_routes[route] = message.agent
        for held in message.held:  # learned again after a restart of this broker
            self.sessions[held.user, held.kernel] = held.session
            if held.lease not in self.deals:
                self.deals[held.lease] = Deal(held.session, message.agent, None, None)
        self.log.info("agent registered", agent=message.agent, node=message.node, slots=len(message.slots))
        await self._send(self._agent_socket, route, wire.Registered())
        if self.slot_word != word:
            for kernel in list(self.kernels.values()):
                await self._welcome(kernel)
        await self._step(translate.joined(message))

    def _forget_agent(self, agent_id: AgentId) -> None:
        agent = self.agents.pop(agent_id, None)
        if agent is not None:
            self.agent_routes.pop(agent.route, None)

    async def _cell_done(self, agent: Agent, message: wire.CellDone) -> None:
        kinds = {slot.slot: slot.kind for slot in agent.message.slots}
        kind = kinds.get(message.slots[0], "cpu") if message.slots else "cpu"
        now_ms = time.time_ns() // 1_000_000
        self._unwritten.put_nowait((agent.route, translate.record(message, agent.message.node, kind, now_ms)))
        await self._step(events.CellEnded(message.lease, CellId(message.cell)))

    async def _write(self) -> None:
        """Write finished cells to the ledger, all that have come meanwhile at once; agents then hear of it."""
        while True:
            batch = [await self._unwritten.get()]
            while not self._unwritten.empty():
                batch.append(self._unwritten.get_nowait())
            rows = [row for _, row in batch]
            for row in await asyncio.to_thread(self.ledger.record_cells, rows, time.time_ns() // 1_000_000):
                self.log.info("cell", cell=row.cell, lease=row.lease, user=row.user, outcome=row.outcome)
            for route, row in batch:
                await self._send(self._agent_socket, route, wire.Recorded(cell=row.cell))

    async def _lease_over(self, message: wire.LeaseOver) -> None:
        deal = self.deals.pop(message.lease, None)
        if deal is not None and message.code == "cannot-start":
            await self._tell_session(
                deal.session, wire.Revoked(lease=message.lease, code=message.code, sentence=message.sentence)
            )
        await self._step(events.LeaseEnded(message.lease))
        await self._tell_queue(everybody=False)

    # --- the scheduler

    async def _step(self, event: events.Event) -> None:
        async with self._stepping:  # actions are performed in their order, before the next event is noted
            for action in self.scheduler.step(event, self.now_ms()):
                await self._perform(action)

    async def _perform(self, action: actions.Action) -> None:
        match action:
            case actions.Grant():
                await self._grant(action)
            case actions.Refuse():
                wish = self.wishes.pop(action.request, None)
                if wish is not None:
                    code = type(action.reason).__name__
                    refused = wire.Refused(code=code, sentence=str(action.reason), request=wish.name)
                    await self._tell_session(wish.session, refused)
            case actions.Evict():
                await self._tell_holder(action.lease, wire.Evict(lease=action.lease))
            case actions.EndLease():
                deal = self.deals.get(action.lease)
                if deal is not None:
                    await self._tell_session(deal.session, translate.revoked(action))
                    await self._tell_holder(action.lease, wire.Evict(lease=action.lease, force=True))
                    if deal.agent not in self.agents or action.why is actions.Why.NOT_HELD:
                        del self.deals[action.lease]
            case _:
                assert_never(action)

    async def _tell_holder(self, lease: LeaseId, message: wire.Message) -> None:
        deal = self.deals.get(lease)
        agent = self.agents.get(deal.agent) if deal is not None else None
        if agent is not None:
            await self._send(self._agent_socket, agent.route, message)

    async def _grant(self, action: actions.Grant) -> None:
        wish = self.wishes.pop(action.request, None)
        deal = self.deals.get(action.lease)
        agent = self.agents.get(action.agent)
        if agent is None:
            return  # it was lost in this instant; the scheduler hears of it next
        if deal is None and wish is not None:
            deal = self._deal(action, wish, agent)
            self.deals[action.lease] = deal
        if deal is not None and deal.prepare is not None:  # said again if granted again: the agent answers once more
            await self._send(self._agent_socket, agent.route, deal.prepare)

    def _deal(self, action: actions.Grant, wish: Wish, agent: Agent) -> Deal:
        ticket = keys.make_secret()
        names = {slot.slot: slot.name for slot in agent.message.slots}
        prepare = wire.Prepare(
            lease=action.lease,
            session=action.session,
            kernel=wish.kernel,
            user=wish.person.user,
            project=ProjectId(wish.message.project or wish.person.project),
            qos=wish.message.qos,
            slots=action.slots,
            walltime_ms=action.walltime_ms,
            ticket=ticket,
            environment=wish.message.environment,
            label=wish.message.label,
        )
        granted = wire.Granted(
            request=wish.name,
            lease=action.lease,
            session=action.session,
            agent=agent.message.address,
            ticket=ticket,
            node=agent.message.node,
            slots=tuple(names.get(slot, slot) for slot in action.slots),
            walltime_ms=action.walltime_ms,
        )
        return Deal(action.session, action.agent, granted, prepare)


def _bare(error: VersionMismatch | NotAllowed) -> str:
    return error.problem if isinstance(error, NotAllowed) else str(error)


def _scheduler_settings(settings: Settings) -> projects.Settings:
    limits = settings.max_walltime_ms
    unknown = [name for name in limits if name not in {qos.name for qos in projects.DEFAULT_QOS}]
    if unknown:
        known = ", ".join(qos.name for qos in projects.DEFAULT_QOS)
        raise BadConfig(f"Pool.max_walltime names the QoS {unknown[0]!r}, which there is not. There are: {known}.")
    return projects.Settings(
        qos=tuple(
            msgspec.structs.replace(qos, walltime_ms=limits.get(qos.name, qos.walltime_ms))
            for qos in projects.DEFAULT_QOS
        )
    )


def open_files(settings: Settings) -> keys.PoolFile:
    """The pool's keys and secrets: those of last time, or new ones."""
    settings.folder.mkdir(
        mode=0o711, parents=True, exist_ok=True
    )  # files are 0600; kernels of other users reach the door
    try:
        return keys.read_private(settings.pool_file, keys.PoolFile)
    except FileNotFoundError:
        files = keys.PoolFile(
            keys=keys.make_keys(),
            agent_secret=keys.make_secret(),
            token=keys.make_secret(),
            kernel_address="",
            agent_address="",
        )
        keys.write_private(settings.pool_file, files)
        return files
