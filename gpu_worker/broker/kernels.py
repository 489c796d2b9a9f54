"""The kernels that talk to the broker: who they are, what they ask, where they are reached."""

from collections.abc import Awaitable, Callable, Coroutine

import msgspec
import structlog

from bulletin import __version__
from bulletin.codes import LeaseEnd, RefusalCode
from bulletin.errors import NotAllowed, VersionMismatch
from bulletin.ids import KernelId, RequestId, SessionId, UserName
from bulletin.rate_limiter import RateLimiter
from bulletin.units import HOUR_MS
from bulletin.wire import clients, console, messages as wire, page_requests
from bulletin.wire.messages.engine_broker import Demand, EngineNews
from bulletin.wire.messages.own_cells import AskOwn, OwnReport
from gpu_worker.broker import kernel_sentences
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.broker.aside_work import AsideWork
from gpu_worker.broker.broker_pauses import BrokerPauses
from gpu_worker.broker.decision_news import DecisionNews
from gpu_worker.broker.group_projects import GroupProjects
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.broker.joins import Asker, Joins
from gpu_worker.broker.keep_rules import settle_class
from gpu_worker.broker.known_ids import why_no_payer
from gpu_worker.broker.ledger_notes import printable
from gpu_worker.broker.moved_nodes import tell_where
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.session_names import NotebookSession, SessionNames, drop_unused
from gpu_worker.faults import Faults
from gpu_worker.scheduler.events import RequestMoved

#: A kernel whose request waits says so every second. One that stopped saying so is gone.
_SILENCE_MS = 20_000
#: So many connections of one user are known; of more, those that were silent for longest are forgotten.
_MOST_CONNECTIONS = 256
#: A connection that was silent for so long is forgotten; its kernel says hello again when it has a cell.
_FORGET_MS = HOUR_MS
#: So many leases a user may ask for in a second, and at once: each is some rows of the ledger and lines of the log,
#: whether a cell comes to it or not.
_LEASES_PER_S, _LEASES_MOST = 2.0, 600

Send = Callable[[bytes, wire.Message], Coroutine[None, None, None]]
Draw = Callable[[Person], Awaitable[wire.Picture]]
Asked = console.FromConsole | page_requests.FromPage
Answer = Callable[
    [Person, Asked], Awaitable[console.Report | page_requests.PageReport | Demand | OwnReport | wire.Refusal]
]


class ConnectedKernel(msgspec.Struct):
    """A kernel (or a status client) that said hello: one connection."""

    route: bytes
    token: str
    person: Person
    kernel: KernelId
    session: SessionId
    heard_ms: int
    hears_news: bool = False
    hears_moves: bool = False


class Kernels:
    """All connections of kernels, by route; and the sessions they stand for."""

    def __init__(
        self,
        send: Send,
        identity: Identity,
        now_ms: Callable[[], int],
        draw: Draw,
        answer: Answer,
        slot_word: str,
        faults: Faults,
        names: SessionNames,
    ) -> None:
        """Take `draw`, which serves those who only look, and `answer`, which serves people at a command line.

        `slot_word` is what a slot of this pool is called, until an agent says otherwise.
        """
        self._send, self._identity, self._now_ms = send, identity, now_ms
        self._draw_picture, self._answer_console = draw, answer
        self._known: dict[bytes, ConnectedKernel] = {}
        self._routes: dict[SessionId, bytes] = {}  #: the connection on which a session's kernel was heard last
        self._sessions: dict[tuple[UserName, KernelId], NotebookSession] = {}
        self.names = names
        self.aside = AsideWork(faults, self.end_connection)
        self._settling: set[RequestId] = set()  #: those that are taken in aside, and were not withdrawn meanwhile
        self._pauses, self._began_ms = BrokerPauses(now_ms()), now_ms()
        self.refused_hellos = 0
        self.active_ms = now_ms()  #: when any kernel was heard last
        self.slot_word = slot_word
        self.shell: SchedulerShell  #: set by the broker: kernels and leases know each other
        self.joins: Joins
        self.groups: GroupProjects
        self.decisions: DecisionNews
        self._leases: RateLimiter[UserName] = RateLimiter(_LEASES_PER_S, _LEASES_MOST, lambda: now_ms() / 1000)
        self._log = structlog.get_logger("broker")

    async def take(self, route: bytes, message: clients.FromClient) -> None:
        """Take in one message of a kernel, and answer where one is due."""
        if isinstance(message, wire.Hello):
            self._run_aside(route, self._hello(route, message))  # the hub may take its time; others go on
            return
        kernel = self._known.get(route)
        if kernel is None:
            await self._send(route, wire.Unknown())
            return
        kernel.heard_ms = self._now_ms()
        if not isinstance(message, EngineNews | AskOwn):  # they ask all the time, and use nothing
            self.active_ms = kernel.heard_ms
        self._routes[kernel.session] = route
        if kernel.hears_news and isinstance(message, wire.Ping | wire.Submit | wire.Look):
            news = self.decisions.take(kernel.person.user)
            if news:
                await self._send(route, wire.Pong(news=news))
                self.aside.start(route, self.decisions.keep_told())
        match message:
            case wire.Ping():
                await self._send(route, wire.Pong())
            case wire.Submit() if self._takes_time(kernel, message):
                self._submit_aside(kernel, message)
            case wire.Join() | wire.Find() | wire.Look() if not self._is_believed(kernel):
                self._run_aside(route, self._identify(kernel, message))
            case wire.Find():
                await self.joins.start_search(_asker(kernel))
            case wire.Join():
                await self.joins.join(_asker(kernel), message)
            case wire.Submit():
                await self._submit(kernel, message)
            case wire.Withdraw():
                self._settling.discard(_name(kernel, message.request))
                await self.shell.withdraw(_name(kernel, message.request))
                await self.shell.end_kept(kernel.session, _name(kernel, message.request))
            case wire.Look():
                self._run_aside(route, self._show(kernel))  # the ledger may take its time, too
            case page_requests.FindFor() if kernel.person.is_page:
                await self.joins.start_search(msgspec.structs.replace(_asker(kernel), user=message.user))
            case _:
                self._run_aside(route, self._answer(kernel, message))

    def person_of(self, route: bytes) -> Person | None:
        """Return whose connection it is, where it has said so and is known."""
        kernel = self._known.get(route)
        return kernel.person if kernel is not None else None

    def is_gone(self, session: SessionId) -> bool:
        """Tell whether nothing is heard of a notebook that would say each second that it is there: its cell runs."""
        kernel = self._known.get(self._routes.get(session, b""))
        return self._now_ms() - (self._began_ms if kernel is None else kernel.heard_ms) > _SILENCE_MS

    async def tell(self, session: SessionId, message: wire.Message) -> None:
        """Say something to a session's kernel, if it is there."""
        route = self._routes.get(session)
        if route is not None and (self._known[route].hears_moves or not isinstance(message, wire.NodeMoved)):
            await self._send(route, message)

    async def tell_user(self, user: UserName, news: tuple[wire.News, ...]) -> None:
        """Say something in all notebooks of a user that are connected, with their next cells."""
        for kernel in [one for one in self._known.values() if one.hears_news and one.person.user == user]:
            await self._send(kernel.route, wire.Pong(news=news))

    def learn(self, held: wire.HeldLease) -> None:
        """Learn of a session that an agent has kept through a restart of this broker, unless another is used since."""
        if not self.names.is_of(held.session, held.user, held.kernel):
            return
        lease = self.shell.metering.find_unended(held.lease)
        learned = NotebookSession(held.session, lease.granted_at_ms if lease is not None else 0)
        known = self._sessions.setdefault((held.user, held.kernel), learned)
        if known.used_ms < learned.used_ms:  # when is not the agent's word
            self._sessions[held.user, held.kernel] = learned
            if (route := self._routes.pop(known.name, None)) is not None:  # its kernel came before this agent did
                self._known[route].session, self._routes[held.session] = held.session, route

    def note_token(self, session: SessionId) -> None:
        """Let the leases of a session be its kernel's, which came before the agent that has them did."""
        if (kernel := self._known.get(self._routes.get(session, b""))) is not None:
            self.shell.note_token(session, kernel.token)

    async def renew_session(self, session: SessionId) -> None:
        """Let a notebook go on by another session, whose request waits for what its node does not say to be over.

        The request is as old as it was, and stands where it stood. That node is told to end the lease; its slots are
        taken for as long as it does not say that it did.
        """
        state = self.shell.scheduler.state
        kernel, request = self._known.get(self._routes.get(session, b"")), state.asking.get(session)
        if kernel is None or request is None:
            return
        for lease in list(state.leases_of.get(session, ())):
            self._log.warning("a node does not say that a lease is over", lease=lease, session=session)
            await self.shell.give_up_lease(lease, kernel_sentences.NOT_SAID, LeaseEnd.NOT_RELEASED)
        pending = self.shell.pending_requests.pop(request, None)
        if pending is None:  # it was withdrawn meanwhile
            return
        kernel.session = self.names.draw(kernel.person.user, kernel.kernel)
        self._sessions[kernel.person.user, kernel.kernel] = NotebookSession(kernel.session, self._now_ms())
        self._routes[kernel.session] = self._routes.pop(session)
        self._settling.discard(request)
        name = _name(kernel, pending.message.request)
        self.shell.pending_requests[name] = msgspec.structs.replace(pending, session=kernel.session)
        await self.shell.step(RequestMoved(request, name, kernel.session))
        self.shell.teller.note_news()

    async def name_slots(self, word: str) -> None:
        """Tell everybody what a slot of this pool is called, when that has changed."""
        if word == self.slot_word:
            return
        self.slot_word = word
        for kernel in list(self._known.values()):
            await self._welcome(kernel)

    async def tidy(self) -> None:
        """Withdraw the requests of kernels that are gone; forget connections that were silent for long, and sessions.

        Silence counts only while this broker listened.
        """
        self._leases.tidy()
        now_ms = self._now_ms()
        unheard_ms = self._pauses.take(now_ms)
        for known in self._known.values():
            known.heard_ms = min(known.heard_ms + unheard_ms, now_ms)
        for request, pending in list(self.shell.pending_requests.items()):
            kernel = self._known.get(self._routes.get(pending.session, b""))
            if kernel is None or now_ms - kernel.heard_ms > _SILENCE_MS:
                await self.shell.withdraw(request)
        for route in [route for route, kernel in self._known.items() if now_ms - kernel.heard_ms > _FORGET_MS]:
            self._forget(self._known[route])
        in_use = self._routes.keys() | {active.session for active in self.shell.active_leases.values()}
        drop_unused(self._sessions, in_use, now_ms)

    async def forget_token(self, token: str) -> None:
        """Forget the connections of a token that may not use the pool any more, and what they wait for."""
        for kernel in [kernel for kernel in self._known.values() if kernel.token == token]:
            for request, pending in list(self.shell.pending_requests.items()):
                if pending.session == kernel.session:
                    await self.shell.withdraw(request)
            self._forget(kernel)

    def _forget(self, kernel: ConnectedKernel) -> None:
        self._known.pop(kernel.route, None)
        if self._routes.get(kernel.session) == kernel.route:
            del self._routes[kernel.session]

    def _run_aside(self, route: bytes, work: Coroutine[None, None, None]) -> bool:
        is_begun = self.aside.start(route, work)
        if not is_begun:
            refused = wire.Refusal(code=RefusalCode.TOO_FAST, sentence=kernel_sentences.TOO_MANY)
            self.aside.start_last(route, self._send(route, refused))
        return is_begun

    def _is_believed(self, kernel: ConnectedKernel) -> bool:
        return self._identity.believed(kernel.token, self._now_ms()) is not None

    def _takes_time(self, kernel: ConnectedKernel, message: wire.Submit) -> bool:
        project = message.project or kernel.person.project
        return not self._is_believed(kernel) or self.groups.takes_time(kernel.person, project)

    def _submit_aside(self, kernel: ConnectedKernel, message: wire.Submit) -> None:
        """Take a request that waits for the hub, the quota file or the ledger first; said again, it is the same one."""
        name = _name(kernel, message.request)
        if name not in self._settling:
            self._settling.add(name)
            if not self._run_aside(kernel.route, self._settle(kernel, message)):
                self._settling.discard(name)

    async def _settle(self, kernel: ConnectedKernel, message: wire.Submit) -> None:
        try:
            await self._identify(kernel, message)
        finally:
            self._settling.discard(_name(kernel, message.request))

    def end_connection(self, route: bytes) -> None:
        """Forget a connection whose words led to a fault, and tell its kernel; what it waits for is withdrawn."""
        kernel = self._known.get(route)
        if kernel is not None:
            self._forget(kernel)
        refused = wire.Refusal(code=RefusalCode.FAULT, sentence=kernel_sentences.FAULT)
        self.aside.start_last(route, self._send(route, refused))

    async def _show(self, kernel: ConnectedKernel) -> None:
        await self._send(kernel.route, await self._draw_picture(kernel.person))

    async def _hello(self, route: bytes, message: wire.Hello) -> None:
        try:
            if message.protocol != wire.PROTOCOL:
                raise VersionMismatch(message.protocol, wire.PROTOCOL, "the notebook's side")
            person = await self._identity.identify(message.token, self._now_ms())
        except (VersionMismatch, NotAllowed) as error:
            self.refused_hellos += 1
            self._log.info("hello refused", code=error.code)
            sentence = error.problem if isinstance(error, NotAllowed) else str(error)
            await self._send(route, wire.Refusal(code=RefusalCode(error.code), sentence=sentence))
            return
        drawn = self.names.draw(person.user, message.kernel)
        session = self._sessions.setdefault((person.user, message.kernel), NotebookSession(drawn)).name
        other = self._known.get(route)
        if other is not None and other.session != session:  # one connection is one kernel
            self._forget(other)
        earlier = self._routes.get(session)
        if earlier is not None and earlier != route:  # its kernel has connected anew
            self._known.pop(earlier, None)
        self.active_ms = self._now_ms()
        hears = message.hears_news, message.hears_moves
        kernel = ConnectedKernel(route, message.token, person, message.kernel, session, self.active_ms, *hears)
        self._known[route] = kernel
        self._routes[session] = route
        self.shell.note_token(session, message.token)
        its = [one for one in self._known.values() if one.person.user == person.user]
        if len(its) > _MOST_CONNECTIONS:
            self._forget(min(its, key=lambda one: one.heard_ms))
        await self._welcome(kernel, is_known=earlier is not None)
        await tell_where(session, self.shell.active_leases, self.shell.nodes, self.tell)

    async def _welcome(self, kernel: ConnectedKernel, *, is_known: bool = True) -> None:
        user, word = kernel.person.user, self.slot_word
        welcome = wire.Welcome(user=user, version=__version__, slot_word=word, is_known=is_known)
        await self._send(kernel.route, welcome)

    async def _identify(
        self, kernel: ConnectedKernel, message: wire.Submit | wire.Join | wire.Find | wire.Look
    ) -> None:
        """Ask the hub again who this is, then take the request."""
        request = message.request if isinstance(message, wire.Submit | wire.Join) else None
        try:
            kernel.person = await self._identity.identify(kernel.token, self._now_ms())
        except NotAllowed as error:
            refused = wire.Refusal(code=RefusalCode(error.code), sentence=error.problem, request=request)
            await self._send(kernel.route, refused)
            return
        match message:
            case wire.Join():
                await self.joins.join(_asker(kernel), message)
            case wire.Find():
                await self.joins.start_search(_asker(kernel))
            case wire.Look():
                await self._show(kernel)
            case wire.Submit():
                await self._submit(kernel, message, is_aside=True)

    async def _answer(self, kernel: ConnectedKernel, question: Asked) -> None:
        """Answer a person at a command line, whom the hub still knows."""
        try:
            kernel.person = await self._identity.identify(kernel.token, self._now_ms())
        except NotAllowed as error:
            await self._send(kernel.route, wire.Refusal(code=RefusalCode(error.code), sentence=error.problem))
            return
        await self._send(kernel.route, await self._answer_console(kernel.person, question))

    async def _submit(self, kernel: ConnectedKernel, message: wire.Submit, *, is_aside: bool = False) -> None:
        person = kernel.person
        state, project = self.shell.scheduler.state, message.project or person.project
        sentence = why_no_payer(state, person, project)
        if sentence:
            refused = wire.Refusal(code=RefusalCode.NOT_YOUR_PROJECT, sentence=sentence, request=message.request)
            await self._send(kernel.route, refused)
            return
        obstacle = await self.groups.learn(person, project)
        if obstacle is not None:
            code, sentence = RefusalCode(obstacle.code), obstacle.problem
            await self._send(kernel.route, wire.Refusal(code=code, sentence=sentence, request=message.request))
            return
        if is_aside:
            await self.groups.wait_until_written(project)
        if is_aside and _name(kernel, message.request) not in self._settling:
            return  # it was withdrawn meanwhile
        state = self.shell.scheduler.state
        has_gpus = state.slot_catalog.has_gpus
        settled = settle_class(state.accounts, project, message, has_gpus=has_gpus)
        if isinstance(settled, wire.Refusal):
            await self._send(kernel.route, settled)
            return
        message = msgspec.structs.replace(settled, label=printable(settled.label))
        name = _name(kernel, message.request)
        if not person.is_owner and name not in self.shell.pending_requests:  # else it is said again
            if not self._leases.has_credit(person.user):
                sentence = kernel_sentences.TOO_MANY_LEASES
                refused = wire.Refusal(code=RefusalCode.TOO_FAST, sentence=sentence, request=message.request)
                await self._send(kernel.route, refused)
                return
            self._leases.charge(person.user, 1)
        if await self.shell.find_kept(kernel.session, name, message):
            return
        asks_by = self._sessions.get((person.user, kernel.kernel))
        if asks_by is not None and asks_by.name == kernel.session:
            asks_by.used_ms = self._now_ms()
        pending = PendingRequest(kernel.session, kernel.kernel, person, message, self._now_ms(), kernel.token)
        await self.shell.submit(name, pending)


def _asker(kernel: ConnectedKernel) -> Asker:
    return Asker(kernel.route, kernel.person.user, kernel.session, kernel.kernel)


def _name(kernel: ConnectedKernel, request: RequestId) -> RequestId:
    """Return the broker's name of a request: kernels name theirs as they like."""
    return RequestId(f"{kernel.session}/{request}")
