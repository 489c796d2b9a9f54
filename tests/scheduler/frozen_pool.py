"""A pool to which people come for a while; then nobody new comes, and every cell uses its whole walltime.

Agents and kernels are played here, apart from the replay that makes the estimates: what was told is held against what
came.
"""

from heapq import heappop, heappush
from random import Random

import msgspec

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import EndLease, Evict, Grant, Pause, Reclaim, Refuse
from gpu_worker.scheduler.estimates.explain import waiting
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import Project, QoS, SchedulerSettings
from tests.scheduler.bench import MINUTE, slots

WALLTIMES = (MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, 60 * MINUTE)
QOS = (
    QoS(name="interactive", priority=200, walltime_ms=60 * MINUTE, queued_per_user=100),
    QoS(name="batch", priority=100, walltime_ms=120 * MINUTE, queued_per_user=100, min_runtime_ms=5 * MINUTE),
)


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """Who comes: how many projects with quotas, users in each, notebooks of a user, and GPUs of a cell."""

    name: str
    projects: int = 1
    has_quotas: bool = True
    is_nested: bool = False
    users: int = 3
    notebooks: int = 1
    gpus: tuple[int, ...] = (1,)


class Told(msgspec.Struct, frozen=True):
    """One request: how long it was to wait at most, and how long it waited."""

    request: RequestId
    told_ms: int | None
    came_ms: int | None


def projects_of(mix: Mix, total: int, random: Random) -> tuple[Project, ...]:
    if not mix.has_quotas:
        return ()
    projects: list[Project] = []
    for number in range(mix.projects):
        parent = projects[random.randrange(number)].id if mix.is_nested and number and random.random() < 0.6 else None
        projects.append(
            Project(
                id=ProjectId(f"p{number}"),
                parent=parent,
                guaranteed_milli=1000 * random.randint(0, max(1, 2 * total // mix.projects)),
                weight=random.choice((1, 1, 2, 3)),
                priority=random.choice((0, 0, 0, 1)),
                user_limit_milli=random.choice((None, None, None, 1000 * max((2, *mix.gpus)))),
            )
        )
    return tuple(projects)


class FrozenPool:
    """One random history of a mix. Delays are nothing; what coincides comes as planned, or shuffled."""

    def __init__(self, mix: Mix, seed: int, *, is_shuffled: bool = False) -> None:
        self.mix, self.random = mix, Random(f"{mix.name} {seed}")
        sizes = [self.random.randint(1, 4) for _ in range(self.random.randint(1, 3))]
        sizes[0] = max(sizes[0], *mix.gpus)
        projects = projects_of(mix, sum(sizes), self.random)
        self.scheduler = Scheduler(SchedulerSettings(projects=projects, qos=QOS))
        self.now_ms = 0
        self.is_frozen, self.is_shuffled = False, is_shuffled
        self._planned = 0
        self._heap: list[tuple[int, float, str, tuple[str, ...]]] = []
        self._asks: dict[str, ev.RequestSubmitted] = {}  #: of a session, the last one
        self._runs_ms: dict[str, int] = {}  #: leases with a running cell, and when its walltime is over
        self._number = 0
        self.granted_ms: dict[RequestId, int] = {}
        for number, size in enumerate(sizes):
            self.say(ev.AgentJoined(AgentId(f"a{number}"), f"n{number}", slots(size)))

    def play(self) -> list[Told]:
        """Let people come for two hours, then nobody; what those who waited then were told, and what came."""
        for number in range(self.mix.projects * self.mix.users * self.mix.notebooks):
            self._plan(self.random.randrange(60 * MINUTE), "ask", f"s{number}")
        self._run(self.random.randrange(60, 120) * MINUTE)
        self.say(ev.Tick())  # as a broker does each second
        self.is_frozen = True
        for lease, until_ms in self._runs_ms.items():
            self._plan(until_ms, "end", lease)
        began_ms, state = self.now_ms, self.scheduler.state
        told = {}
        for request in list(state.pending):
            said = waiting(state, request, began_ms)
            assert said is not None
            told[request] = said.wait_ms
        self._run(began_ms + 20 * 24 * 60 * MINUTE, told)
        return [
            Told(name, told_ms, self.granted_ms[name] - began_ms if name in self.granted_ms else None)
            for name, told_ms in told.items()
        ]

    def _plan(self, at_ms: int, what: str, *names: str) -> None:
        self._planned += 1
        order = self.random.random() if self.is_shuffled else self._planned
        heappush(self._heap, (at_ms, order, what, names))

    def _run(self, until_ms: int, wanted: dict[RequestId, int | None] | None = None) -> None:
        while wanted is None or not self.granted_ms.keys() >= wanted.keys():
            tick_ms = self.scheduler.deadline()
            at_ms = min(self._heap[0][0] if self._heap else until_ms, until_ms if tick_ms is None else tick_ms)
            if at_ms >= until_ms:
                break
            self.now_ms = at_ms
            if self._heap and self._heap[0][0] <= at_ms:
                _, _, what, names = heappop(self._heap)
                getattr(self, f"_{what}")(*names)
            else:
                self.say(ev.Tick())
        self.now_ms = max(self.now_ms, until_ms) if wanted is None else self.now_ms

    def _ask(self, session: str) -> None:
        """A notebook's next cell, on the GPUs that it has or on others."""
        if self.is_frozen:
            return
        held = [self.scheduler.state.leases[one] for one in self.scheduler.state.leases_of.get(SessionId(session), ())]
        hot = [lease.id for lease in held if lease.phase.value == "hot"]
        if hot:
            self._begin(hot[0])
            return
        number = int(session[1:])
        user = number // self.mix.notebooks
        self._submit(
            session, f"u{user}", f"p{user % self.mix.projects}", self.random.choice(("interactive",) * 3 + ("batch",)),
            self.random.choice(self.mix.gpus), self.random.choice(WALLTIMES),
        )  # fmt: skip

    def _submit(self, session: str, user: str, project: str, qos: str, gpus: int, walltime_ms: int) -> None:
        self._number += 1
        name = f"{session}/{self._number}"
        self._asks[session] = ev.RequestSubmitted(
            RequestId(name), LeaseId(name), SessionId(session), UserName(user), ProjectId(project), qos, gpus,
            walltime_ms,
        )  # fmt: skip
        self.say(self._asks[session])

    def _begin(self, lease: str) -> None:
        self._number += 1
        held = self.scheduler.state.leases.get(LeaseId(lease))
        if held is None:
            return
        until_ms = self.now_ms + held.walltime_ms
        self._runs_ms[lease] = until_ms
        early_ms = self.now_ms + self.random.randrange(held.walltime_ms)
        self._plan(until_ms if self.is_frozen else early_ms, "end", lease)
        self.say(ev.CellStarted(LeaseId(lease), CellId(f"c{self._number}")))

    def _end(self, lease: str) -> None:
        held = self.scheduler.state.leases.get(LeaseId(lease))
        if held is None or held.cell is None or (self.is_frozen and self.now_ms < self._runs_ms[lease]):
            return
        del self._runs_ms[lease]
        if not self.is_frozen:
            self._plan(self.now_ms + self.random.randrange(5 * MINUTE), "ask", held.session)
        phase, cell = held.phase.value, held.cell
        self.say(ev.CellEnded(held.id, cell))
        if phase == "reclaiming":
            self.say(ev.LeaseEnded(held.id))

    def _free(self, lease: str) -> None:
        self.say(ev.LeaseEnded(LeaseId(lease)))

    def _take(self, lease: str) -> None:
        """The grace is over: the cell is ended, and its notebook asks again."""
        held = self.scheduler.state.leases.get(LeaseId(lease))
        if held is None or held.phase.value != "reclaiming":
            return
        self._runs_ms.pop(lease, None)
        self.say(ev.LeaseEnded(held.id))
        asked = self._asks[held.session]
        self._submit(asked.session, asked.user, asked.project, asked.qos, asked.gpus, asked.walltime_ms or 0)

    def say(self, event: ev.Event) -> None:
        for action in self.scheduler.step(event, self.now_ms):
            match action:
                case Grant():
                    self.granted_ms[action.request] = self.now_ms
                    self._plan(self.now_ms, "begin", action.lease)
                case Reclaim():
                    self._plan(self.now_ms + action.grace_ms, "take", action.lease)
                case Evict() | EndLease():
                    self._plan(self.now_ms, "free", action.lease)
                case Refuse() | Pause():
                    raise AssertionError(action)
