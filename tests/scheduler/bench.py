"""A scheduler under watch: after each event the referee judges, the invariants are checked, the journal grows."""

import msgspec

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, EndLease, Evict, Grant, Reclaim, Refuse
from gpu_worker.scheduler.estimates.explain import WaitExplanation, waiting
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import Preemption, Project, QoS, SchedulerSettings
from tests.scheduler.referee import Referee

MINUTE = 60_000
SETTINGS = SchedulerSettings(
    qos=(
        QoS(name="interactive", priority=2, walltime_ms=30 * MINUTE, queued_per_user=3, grace_ms=20_000),
        QoS(name="batch", priority=1, walltime_ms=120 * MINUTE, queued_per_user=2, preemption=Preemption.PAUSE),
        QoS(
            name="reserved",
            priority=2,
            walltime_ms=120 * MINUTE,
            queued_per_user=1,
            running_per_user=1,
            must_be_in_quota=True,
        ),
    ),
    start_ms=MINUTE,
    ask_again_ms=10_000,
    look_ahead=4,
    back_off_ms=MINUTE,
)


def slots(number: int, kind: str = "gpu") -> tuple[ev.Slot, ...]:
    return tuple(ev.Slot(SlotId(f"{kind}-{i}"), kind, "model", 80 * 10**9) for i in range(number))  # type: ignore[arg-type]


class Bench:
    """Says things to a scheduler in few words. Every method hands back the actions."""

    def __init__(self, settings: SchedulerSettings = SETTINGS) -> None:
        self.settings = settings
        self.scheduler, self.referee = Scheduler(settings), Referee(settings)
        self.journal: list[tuple[ev.Event, int, list[Action]]] = []
        self.now_ms = 0
        self.latest_ms = 0  # a clock that was set back stands still

    def say(self, event: ev.Event) -> list[Action]:
        actions = self.scheduler.step(event, self.now_ms)
        self.journal.append((event, self.now_ms, actions))
        self.latest_ms = max(self.latest_ms, self.now_ms)
        check(self.scheduler.state)
        self.referee.see(event, actions, self.latest_ms)
        if len(self.journal) % 16:  # to replay ahead after each event would take most of the time
            return actions
        state = self.scheduler.state
        told = {request: waiting(state, request, self.latest_ms) for request in state.pending}
        for request, said in told.items():
            state.estimate_cache.standings.clear()
            state.estimate_cache.expecting.clear()
            assert said is not None
            assert said == waiting(state, request, self.latest_ms), "asked alone, it is told something else"
        return actions

    def replay(self) -> None:
        """The journal, written down and read again, gives the same actions."""
        again = Scheduler(self.settings)
        for event, now_ms, actions in self.journal:
            read = msgspec.json.decode(msgspec.json.encode(event), type=ev.Event)
            assert again.step(read, now_ms) == actions

    def later(self, ms: int) -> list[Action]:
        self.now_ms += ms
        return self.say(ev.Tick())

    def join(
        self, agent: str, offered: tuple[ev.Slot, ...], *held: ev.ReportedLease, cpus: int = 0, memory_bytes: int = 0
    ) -> list[Action]:
        return self.say(ev.AgentJoined(AgentId(agent), f"node-{agent}", offered, held, cpus, memory_bytes))

    def lose(self, agent: str) -> list[Action]:
        return self.say(ev.AgentLost(AgentId(agent)))

    def drain(self, agent: str, *, undo: bool = False) -> list[Action]:
        return self.say(ev.NodeDrained(AgentId(agent), is_drained=not undo))

    def ask(
        self,
        session: str,
        *,
        n: int = 1,
        gpus: int = 1,
        qos: str = "interactive",
        walltime_ms: int | None = None,
        user: str = "",
        project: str = "p",
        gpu_type: str = "",
        gpu_memory_bytes: int = 0,
        cpus: int = 0,
        memory_bytes: int = 0,
        is_kept: bool = False,
        is_exclusive: bool = False,
    ) -> list[Action]:
        """The n-th request of a session, "ann/1", for the lease "ann:1"."""
        return self.say(
            ev.RequestSubmitted(
                RequestId(f"{session}/{n}"), LeaseId(f"{session}:{n}"), SessionId(session), UserName(user or session),
                ProjectId(project), qos, gpus, walltime_ms, gpu_type, gpu_memory_bytes, cpus, memory_bytes, is_kept,
                is_exclusive,
            )
        )  # fmt: skip

    def withdraw(self, request: str) -> list[Action]:
        return self.say(ev.RequestWithdrawn(RequestId(request)))

    def start(self, lease: str, cell: str = "c1") -> list[Action]:
        return self.say(ev.CellStarted(LeaseId(lease), CellId(cell)))

    def end(self, lease: str, cell: str = "c1") -> list[Action]:
        return self.say(ev.CellEnded(LeaseId(lease), CellId(cell)))

    def free(self, lease: str) -> list[Action]:
        return self.say(ev.LeaseEnded(LeaseId(lease)))

    def run(self, session: str, *, n: int = 1, **how: object) -> None:
        """The session asks, is granted, runs a cell and is hot."""
        assert granted(self.ask(session, n=n, **how)) == [f"{session}:{n}"]  # type: ignore[arg-type]
        assert self.start(f"{session}:{n}") == []
        self.end(f"{session}:{n}")

    def why(self, request: str) -> WaitExplanation:
        said = waiting(self.scheduler.state, RequestId(request), self.now_ms)
        assert said is not None
        return said


def models(number: int, name: str, gb: int, kind: str = "gpu", milli: int = 1000) -> tuple[ev.Slot, ...]:
    """Slots of a model, each named after it."""
    word = name.rsplit(maxsplit=1)[-1]
    return tuple(ev.Slot(SlotId(f"{word}-{i}"), kind, name, gb * 10**9, milli) for i in range(number))  # type: ignore[arg-type]


def project(name: str, parent: str | None = None, **how: object) -> Project:
    return Project(id=ProjectId(name), parent=ProjectId(parent) if parent else None, **how)  # type: ignore[arg-type]


def held(
    session: str, *, n: int = 1, cell: str | None = None, on: tuple[str, ...] = ("gpu-0",), running_ms: int = 0
) -> ev.ReportedLease:
    return ev.ReportedLease(
        LeaseId(f"{session}:{n}"), SessionId(session), UserName(session), ProjectId("p"), "interactive",
        tuple(SlotId(slot) for slot in on), CellId(cell) if cell else None, 30 * MINUTE, running_ms,
    )  # fmt: skip


def granted(actions: list[Action]) -> list[str]:
    return [action.lease for action in actions if isinstance(action, Grant)]


def evicted(actions: list[Action]) -> list[str]:
    return [action.lease for action in actions if isinstance(action, Evict)]


def reclaimed(actions: list[Action]) -> dict[LeaseId, int]:
    return {action.lease: action.grace_ms for action in actions if isinstance(action, Reclaim)}


def refused(actions: list[Action]) -> dict[str, str]:
    return {action.request: str(action.reason) for action in actions if isinstance(action, Refuse)}


def over(actions: list[Action]) -> dict[str, str]:
    return {action.lease: action.why.value for action in actions if isinstance(action, EndLease)}
