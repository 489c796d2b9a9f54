"""Plays days that people have with each other, from a quota file, and tells what each of them saw."""

import dataclasses
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from bulletin.ids import AgentId, LeaseId, ProjectId, RequestId, SessionId, UserName
from gpu_worker.quotas import parse_quotas
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.estimates.explain import WaitExplanation, waiting
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.driver import Driver
from tests.scheduler.promises.judge import Judge

Do = tuple[float, Callable[["Day"], None]]
#: What processes take, and the half second in which a busy pool decides.
SOON_S = 1.0
#: What a running cell takes: its grace, after its minimum runtime.
GRACE_S, YOUNG_S = 30, 60


class Onlooker(Judge):
    """Writes down what happened, and what people were told meanwhile."""

    def __init__(self, history: hi.History, ask_s: Callable[[float], bool] | None) -> None:
        super().__init__(history)
        self.keeps_log = True
        self.told: dict[str, list[tuple[float, WaitExplanation]]] = {}
        self.covered: dict[str, list[tuple[float, bool]]] = {}  #: by session, as its receipt says
        self._asks = ask_s
        self._at: dict[LeaseId, AgentId] = {}

    def agent_of(self, lease: LeaseId) -> AgentId | None:
        return self._at.get(lease)

    def see(self, event: ev.Event, actions: Iterable[act.Action], now_ms: int, scheduler: Scheduler) -> None:
        actions = list(actions)
        self.log.append((now_ms, event, actions))
        for action in actions:
            if isinstance(action, act.Grant):
                self._at[action.lease] = action.agent
        second, state = (now_ms - self.history.begin_ms) / 1000, scheduler.state
        for lease in state.leases.values():
            said = self.covered.setdefault(lease.session, [])
            is_in_quota = state.coverage.is_in_quota(state.accounts, lease)
            if not said or said[-1][1] != is_in_quota:
                said.append((second, is_in_quota))
        if self._asks is not None and self._asks(second):
            for request in list(state.pending):
                answer = waiting(state, request, now_ms)
                if answer is not None:
                    self.told.setdefault(request.split("/")[0], []).append((second, answer))


class Day:
    """A day that was played. Times are in seconds since it began."""

    def __init__(self, history: hi.History, does: Iterable[Do], asks: Callable[[float], bool] | None) -> None:
        self.history, self.onlooker = history, Onlooker(history, asks)
        self.driver = Driver(history, self.onlooker)
        for second, do in does:
            self.driver.later(round(second * 1000), lambda do=do: do(self))  # type: ignore[misc]
        self.driver.play()
        self.told, self.covered = self.onlooker.told, self.onlooker.covered
        self.log = [((now_ms - history.begin_ms) / 1000, event, acts) for now_ms, event, acts in self.onlooker.log]
        self.session_of: dict[str, str] = {}
        self.spans: dict[str, list[Span]] = {}
        self._asked: dict[str, list[float]] = {}
        self._granted: dict[str, list[float]] = {}
        self._follow()

    @property
    def now_ms(self) -> int:
        """The time, while it is played, as the scheduler knows it."""
        return self.driver.now_ms + self.driver.ahead_ms

    def tell(self, event: ev.Event) -> None:
        """Tell the scheduler something, while it is played."""
        self.driver.tell(event)

    def request_of(self, session: str) -> RequestId:
        """Find the request that a notebook has now, while it is played."""
        request = self.driver.kernels[SessionId(session)].request
        assert request is not None, f"{session} does not wait"
        return request.request

    def lease_of(self, session: str) -> LeaseId:
        """Find the lease that a notebook has now, while it is played."""
        lease = self.driver.kernels[SessionId(session)].lease
        assert lease is not None, f"{session} has no lease"
        return lease[1]

    def opened(self, session: str) -> hi.Opens:
        """Find what was opened as this notebook."""
        return self.driver.kernels[SessionId(session)].opened

    def _follow(self) -> None:
        gpus: dict[str, act.Grant] = {}
        open_spans: dict[str, Span] = {}
        for second, event, actions in self.log:
            if isinstance(event, ev.RequestSubmitted):
                self._asked.setdefault(event.session, []).append(second)
            if isinstance(event, ev.CellStarted) and event.lease in gpus and event.lease not in open_spans:
                grant = gpus[event.lease]
                span = open_spans[event.lease] = Span(second, None, grant.agent, grant.slots)
                self.spans.setdefault(grant.session, []).append(span)
            elif isinstance(event, ev.CellEnded | ev.LeaseEnded) and event.lease in open_spans:
                open_spans.pop(event.lease).end = second
            for action in actions:
                if isinstance(action, act.Grant):
                    gpus[action.lease] = action
                    self.session_of[action.lease] = action.session
                    self._granted.setdefault(action.session, []).append(second)
                elif isinstance(action, act.EndLease) and action.lease in open_spans:
                    open_spans.pop(action.lease).end = second

    def asked(self, session: str) -> list[float]:
        """List when a notebook asked."""
        return self._asked.get(session, [])

    def grants(self, session: str) -> list[float]:
        """List when a notebook was granted GPUs."""
        return self._granted.get(session, [])

    def wait(self, session: str) -> float:
        """Compute how long its first request waited; infinity is never."""
        return next(iter(self.grants(session)), float("inf")) - self.asked(session)[0]

    def waits(self, *sessions: str) -> float:
        """Compute the longest first wait of several."""
        return max(map(self.wait, sessions))

    def taken(self, session: str) -> list[tuple[float, act.Action]]:
        """List when a running cell of a notebook was taken back, each once."""
        found: dict[LeaseId, tuple[float, act.Action]] = {}
        for second, _, actions in self.log:
            for action in actions:
                if isinstance(action, act.Reclaim | act.Pause) and self.session_of.get(action.lease) == session:
                    found.setdefault(action.lease, (second, action))
        return list(found.values())

    def evicted(self, session: str) -> list[float]:
        """List when a hot notebook was asked to leave."""
        return [
            t
            for t, _, acts in self.log
            for one in acts
            if isinstance(one, act.Evict) and self.session_of.get(one.lease) == session
        ]

    def refused(self, session: str) -> list[str]:
        """List the sentences of refusals."""
        return [
            str(one.reason)
            for _, _, acts in self.log
            for one in acts
            if isinstance(one, act.Refuse) and one.request.split("/")[0] == session
        ]

    def losers(self) -> set[str]:
        """Name whose cells were taken back."""
        return {session for session in set(self.session_of.values()) if self.taken(session)}

    def running(self, second: float, prefix: str = "") -> int:
        """Count the GPUs on which cells of such notebooks run at a time."""
        return sum(
            len(span.slots)
            for session, spans in self.spans.items()
            if session.startswith(prefix)
            for span in spans
            if span.begin <= second and (span.end is None or second < span.end)
        )

    def most(self, prefix: str = "") -> int:
        """Find the most GPUs on which cells of such notebooks ever ran at once."""
        edges = [span.begin for session, spans in self.spans.items() if session.startswith(prefix) for span in spans]
        return max((self.running(edge, prefix) for edge in edges), default=0)

    def gpu_s(self, prefix: str = "", first: float = 0, last: float = float("inf")) -> float:
        """Compute the GPU time of such notebooks' cells."""
        last = min(last, self.history.until_ms / 1000)
        return sum(
            len(span.slots) * max(0.0, min(last, last if span.end is None else span.end) - max(first, span.begin))
            for session, spans in self.spans.items()
            if session.startswith(prefix)
            for span in spans
        )

    def nodes(self, prefix: str) -> set[str]:
        """Name the nodes on which such notebooks' cells ran."""
        return {span.node for session, spans in self.spans.items() if session.startswith(prefix) for span in spans}

    def words(self) -> str:
        """Show what was told and decided, to find out why."""
        return "\n".join(
            f"{t:9.1f} {event}" + "".join(f"\n             -> {a}" for a in acts) for t, event, acts in self.log
        )


@dataclasses.dataclass
class Span:
    """A cell that ran."""

    begin: float
    end: float | None
    node: str
    slots: tuple[str, ...]


def play(
    quota_file: str | SchedulerSettings,
    *happenings: Iterable[hi.At] | hi.At,
    last: float,
    does: Iterable[Do] = (),
    asks: Callable[[float], bool] | None = None,
    begin: str = "2026-11-30T08:00",
    delays: hi.Delays | None = None,
    seed: int = 0,
) -> Day:
    """Play a day until its last second. `asks` says in which seconds all who wait are asked what they are told."""
    every: list[hi.At] = []
    for one in happenings:
        every += [one] if isinstance(one, hi.At) else one
    every.sort(key=lambda happening: happening.ms)
    settings = quota_file if isinstance(quota_file, SchedulerSettings) else quotas(quota_file)
    begin_ms = round(datetime.fromisoformat(begin).replace(tzinfo=UTC).timestamp() * 1000)
    history = hi.History(
        seed=seed, begin_ms=begin_ms, settings=settings, happenings=tuple(every), until_ms=round(last * 1000),
        delays=delays or hi.Delays(),
    )  # fmt: skip
    return Day(history, does, asks)


def quotas(text: str) -> SchedulerSettings:
    """Read a quota file as a pool does."""
    return parse_quotas(text.encode(), "quotas.toml")[0].settings


def at(second: float, what: hi.Happening) -> hi.At:
    """Say when something happens."""
    return hi.At(round(second * 1000), what)


def node(name: str, gpus: int, gpu: str = "NVIDIA A100", second: float = 0) -> hi.At:
    """Make a node."""
    return at(second, hi.Joins(AgentId(name), hi.gpus(gpus, gpu)))


def opens(second: float, session: str, project: str, *runs: float, think: float = 0, **more: object) -> hi.At:
    """Make a notebook whose cells run so long, each so long after the one before."""
    qos, user = str(more.pop("qos", "interactive")), UserName(str(more.pop("user", session)))
    plans = tuple(hi.CellPlan(round(think * 1000) if n else 0, round(run * 1000)) for n, run in enumerate(runs))
    time = more.pop("time", None)
    if isinstance(time, int | float):
        more["walltime_ms"] = round(time * 1000)
    one = hi.Opens(session=SessionId(session), user=user, project=ProjectId(project), qos=qos, cells=plans, **more)  # type: ignore[arg-type]
    return at(second, one)


def many(
    number: int, second: float, name: str, project: str, *runs: float, apart: float = 0, **more: object
) -> list[hi.At]:
    """Make several notebooks, `name0` on."""
    return [opens(second + n * apart, f"{name}{n}", project, *runs, **more) for n in range(number)]


def names(prefix: str, number: int) -> list[str]:
    """Name those that `many` makes."""
    return [f"{prefix}{index}" for index in range(number)]


def changes(second: float, text: str) -> hi.At:
    """Edit the quota file."""
    return at(second, hi.Changes(quotas(text)))
