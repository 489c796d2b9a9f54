"""The broker's parts that talk with people, without its sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bulletin.ids import AgentId, CellId, KernelId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from bulletin.wire import console, keys, messages as wire
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.broker.agent_admission import AgentAdmission
from gpu_worker.broker.agents import Agents
from gpu_worker.broker.console_requests import ConsoleRequests
from gpu_worker.broker.group_projects import GroupProjects
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.broker.kernels import Kernels
from gpu_worker.broker.leaving_nodes import LeavingNodes
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.ledger_notes import LedgerNotes
from gpu_worker.broker.metering import Metering
from gpu_worker.broker.picture import draw
from gpu_worker.broker.policy import Policy, in_force
from gpu_worker.broker.policy_follower import PolicyFollower
from gpu_worker.broker.quota_editing import QuotaEditing
from gpu_worker.broker.quota_previews import QuotaPreviews, environment_of
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.seen_groups import FORGET_MS, SEEN, recalled
from gpu_worker.broker.session_names import SessionNames
from gpu_worker.broker.unreachable_nodes import UnreachableNodes
from gpu_worker.broker.writer import Writer
from gpu_worker.config import Pool
from gpu_worker.faults import Faults
from gpu_worker.node_registry import NodeRegistry
from gpu_worker.scheduler import events
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import Budget, Project, SchedulerSettings

HOUR_MS = 3_600_000
TOKEN = "token"
ADMIN = Person(user=UserName("root"), is_admin=True)
ANN = Person(user=UserName("ann"), groups=("maths",))
EVE = Person(user=UserName("eve"), groups=("guests",))
PROJECTS = (
    Project(id=ProjectId("school"), guaranteed_milli=2000, limit_milli=4000, budget=Budget(10 * HOUR_MS, "week")),
    Project(id=ProjectId("maths"), parent=ProjectId("school"), guaranteed_milli=1000),
    Project(id=ProjectId("physics"), parent=ProjectId("school")),
)


async def _nobody_looks(person: Person) -> wire.Picture:
    raise AssertionError(f"{person.user} looks at a pool that is not there")


async def _is_reached(_: str) -> str:
    return ""


async def is_refused(_: str) -> bool:
    """Say of each node that its host is there, and that nothing listens on it."""
    return True


class BrokerParts:
    """The broker's parts without its sockets: what would be sent is kept."""

    def __init__(
        self, ledger: Ledger, projects: tuple[Project, ...] = PROJECTS, late: Path = Path("/nonexistent/late.jsonl")
    ) -> None:
        """Take where notes wait for a ledger that is away."""
        self.now_ms, self.ledger = 0, ledger
        self.to_sessions: list[tuple[SessionId, wire.Message]] = []
        self.to_agents: list[wire.Message] = []
        self.to_routes: list[tuple[bytes, wire.Message]] = []
        self.heard = asyncio.Event()
        identity = Identity(TOKEN, None, "")
        self.faults = Faults("broker")
        self.kernels = Kernels(
            self.send, identity, self.clock_ms, _nobody_looks, self._answer, "GPU", self.faults, SessionNames("secret")
        )
        own_key, nowhere = keys.agent_keys("secret").public, NodeRegistry(Path("/nonexistent"))
        self._own = AgentAdmission("secret", nowhere, lambda _: own_key, lambda _: None)
        self.agents = self._make_agents(self._own)
        scheduler = Scheduler(SchedulerSettings(projects=projects))
        metering, writer = Metering(scheduler.state, [], [], 0), Writer(ledger, self.clock_ms)
        self.shell = SchedulerShell(
            scheduler,
            metering,
            writer,
            self.clock_ms,
            self.tell,
            self.tell_agent,
            self.faults,
            None,
            lambda: self.now_ms / 1000,
        )
        self.kernels.shell = self.agents.shell = self.shell
        self.identity, self.writer = identity, writer
        self.notes = LedgerNotes(ledger, late)
        self.console = ConsoleRequests(self.shell, self.agents, ledger, self.notes, self.clock_ms)
        policy = Policy(Pool().settings())
        self.follower = PolicyFollower(policy, ledger, writer, 0, self.clock_ms)
        self._make_groups()
        self.database = ""  #: its URL, for a program that reads it
        self._know_leaving()

    def admit(
        self,
        admission: AgentAdmission | None = None,
        find_obstacle: Callable[[str], Awaitable[str]] = _is_reached,
        is_refused: Callable[[str], Awaitable[bool]] = is_refused,
        keep_ms: int = 0,
    ) -> None:
        """Let other agents in, before any has come; without an admission the pool's own."""
        self.agents = self._make_agents(admission or self._own, find_obstacle, is_refused, keep_ms)
        self.agents.shell = self.shell
        self.console = ConsoleRequests(self.shell, self.agents, self.ledger, self.notes, self.clock_ms)
        self._know_leaving()

    def _make_agents(
        self,
        admission: AgentAdmission,
        find_obstacle: Callable[[str], Awaitable[str]] = _is_reached,
        is_refused: Callable[[str], Awaitable[bool]] = is_refused,
        keep_ms: int = 0,
    ) -> Agents:
        return Agents(
            self.send, admission, self.kernels, self.clock_ms, lambda: None, "GPU", find_obstacle, is_refused, keep_ms
        )

    def _know_leaving(self) -> None:
        times = self.console.drains.times
        self.agents.leaving = LeavingNodes(self.shell, self.kernels.tell, self.tell_agent, times, self.clock_ms)
        self.agents.unreachable = UnreachableNodes(times)
        self.kernels.decisions = self.console.allowances.news
        self.kernels.decisions.tell_all = self.kernels.tell_user

    def _make_groups(self) -> None:
        self.groups = self.kernels.groups = GroupProjects(
            self.follower, self.shell, self.identity, self.writer, self.clock_ms
        )

    def use_quota_file(self, file: Path) -> None:
        """Let it have a quota file, as at its start."""
        before, times = in_force(self.ledger)
        groups = recalled(self.ledger.timed_payloads(SEEN), self.ledger.last_use(self.now_ms - FORGET_MS))
        policy = Policy(Pool(quota_file=str(file)).settings(), before, groups)
        writer = self.writer = Writer(self.ledger, self.clock_ms)
        self.follower = PolicyFollower(policy, self.ledger, writer, times, self.clock_ms)
        self._make_groups()
        self.step(events.SettingsChanged(self.follower.settings))
        self.previews = QuotaPreviews(self.database, self.agents, self.clock_ms, lambda: environment_of({}))
        quotas = QuotaEditing(self.shell, self.follower, self.previews, self.clock_ms)
        self.console = ConsoleRequests(
            self.shell,
            self.agents,
            self.ledger,
            self.notes,
            self.clock_ms,
            quotas=quotas.answer,
            learn=self.groups.learn,
        )
        self._know_leaving()

    async def _answer(self, person: Person, question: console.FromConsole) -> console.Report | wire.Refusal:
        return await self.console.answer(person, question)

    def clock_ms(self) -> int:
        return self.now_ms

    async def send(self, route: bytes, message: wire.Message) -> None:
        self.to_routes.append((route, message))

    async def tell(self, session: SessionId, message: wire.Message) -> None:
        self.to_sessions.append((session, message))
        self.heard.set()

    async def tell_agent(self, agent: AgentId, message: wire.Message) -> None:
        self.to_agents.append(message)

    def registration(self, node: str = "n1", slots: int = 1) -> wire.Register:
        offers = tuple(wire.SlotOffer(slot=SlotId(f"gpu-{i}"), kind="gpu", name="A100") for i in range(slots))
        return wire.Register(
            protocol=wire.PROTOCOL,
            version="1",
            secret="secret",
            agent=AgentId(f"agent-{node}"),
            node=node,
            address=wire.AgentAddress(address="", public_key=""),
            slots=offers,
        )

    def join(self, node: str = "n1", slots: int = 1) -> None:
        self.report(node, self.registration(node, slots))

    def report(self, node: str, message: wire.FromAgent) -> None:
        """What the agent of a node says."""
        asyncio.run(self.agents.take(node.encode(), message))

    def submit(self, person: Person, cell: str, project: str | None = None, token: str = "", **asked: Any) -> LeaseId:
        """A kernel's request for its cell; the name under which it is known from then on."""
        message = wire.Submit(request=RequestId(cell), project=ProjectId(project) if project else None, **asked)
        session = SessionId(f"s-{cell}")
        request = RequestId(f"{session}/{cell}")
        pending = PendingRequest(session, KernelId("k"), person, message, self.now_ms, token)
        asyncio.run(self.shell.submit(request, pending))
        state = self.shell.scheduler.state
        waiting = state.pending.get(request)
        return waiting.lease if waiting is not None else state.granted[request]

    def run(self, person: Person, cell: str, project: str | None = None) -> LeaseId:
        """The cell waits for nobody, and runs."""
        lease = self.submit(person, cell, project)
        self.step(events.CellStarted(lease, CellId(cell)))
        return lease

    def queued(self) -> list[tuple[SessionId, int]]:
        """Who was told which place, since one last looked."""
        said, self.to_sessions = self.to_sessions, []
        return [(session, message.position) for session, message in said if isinstance(message, wire.Queued)]

    def learn(self, person: Person, project: str = "") -> str:
        """Have a person ask for something, as a cell does; why not, where not."""
        said = asyncio.run(self.groups.learn(person, ProjectId(project) or person.project))
        return "" if said is None else said.problem

    def project(self, name: str) -> Project | None:
        account = self.shell.scheduler.state.accounts.by_id.get(ProjectId(name))
        return None if account is None else account.project

    def picture(self, viewer: Person) -> wire.Picture:
        """What the broker's picture shows to somebody."""
        no_words = {"counters": {}, "ledger_problem": "", "started_ms": 0, "serves_hub": True}
        parts = (self.shell, self.agents, self.ledger, self.clock_ms, self.console.drains.why)
        return asyncio.run(draw(viewer, *parts, **no_words))  # type: ignore[arg-type]

    def step(self, event: events.Event) -> None:
        asyncio.run(self.shell.step(event))

    def ask(self, person: Person, question: console.FromConsole):  # type: ignore[no-untyped-def]
        return asyncio.run(self.console.answer(person, question))

    def refusal(self, person: Person, question: console.FromConsole) -> str:
        answer = self.ask(person, question)
        assert isinstance(answer, wire.Refusal), answer
        return answer.sentence
