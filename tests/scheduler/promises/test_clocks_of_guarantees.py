"""What the referee allows whoever waits for what is guaranteed: time for what is freed for them, and no more.

What was decided is told here, by hand: it is as a scheduler would have done it that forgot the lab.
"""

import pytest

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.machine import Scheduler
from tests.scheduler.promises.history import GB, History
from tests.scheduler.promises.judge import Judge
from tests.scheduler.promises.stories import H100, L4, quotas

SETTINGS = quotas(
    "[projects.lab]\nguaranteed = 1\n[projects.course]\nguaranteed = 2\n"
    '[qos.interactive]\ngrace = "10 s"\n[qos.batch]\ngrace = "10 min"\n'
)
GRACE_S, WALLTIME_MS = 600, 1_800_000


class Told:
    """A pool that is told of, second by second, and whoever judges it."""

    def __init__(self) -> None:
        self.judge = Judge(History(settings=SETTINGS, happenings=(), until_ms=0))
        self._scheduler = Scheduler(SETTINGS)
        for agent, *names in (("a", H100, L4, L4), ("b", "Tesla T4", "Tesla T4")):
            slots = tuple(ev.Slot(SlotId(f"g{n}"), "gpu", name, 80 * GB) for n, name in enumerate(names))
            self.say(0, ev.AgentJoined(AgentId(agent), agent, slots))

    def say(self, second: float, event: ev.Event, *actions: act.Action) -> None:
        """Tell what happened, and what was decided."""
        self.judge.see(event, actions, self.judge.history.begin_ms + round(second * 1000), self._scheduler)

    def drain(self, agent: str) -> None:
        """Drain a node, at the beginning."""
        self.say(3, ev.NodeDrained(AgentId(agent)))

    def ask(self, second: float, project: str, kind: str, gpus: int = 1, qos: str = "interactive", **told: str) -> None:
        """Ask, and have these slots of an agent at once, or wait; `goes` is the lease that is taken back."""
        names = LeaseId(f"{project}:{second}"), SessionId(f"{project}{second}"), UserName(project)
        request = RequestId(f"{project}/{second}")
        asked = ev.RequestSubmitted(request, *names, ProjectId(project), qos, gpus, None, kind)
        if "slots" in told:
            slots = tuple(map(SlotId, told["slots"].split()))
            self.say(second, asked, act.Grant(request, *names[:2], AgentId(told["agent"]), slots, WALLTIME_MS))
            self.say(second, ev.CellStarted(names[0], CellId(f"c{second}")))
        else:
            goes = [act.Reclaim(LeaseId(told["goes"]), GRACE_S * 1000)] if "goes" in told else []
            self.say(second, asked, *goes)

    def is_broken(self, until: int) -> bool:
        """Whether the lab has waited for too long, once it is this late."""
        self.say(until, ev.Tick())
        return any(one.promise == 1 and "lab" in one.facts for one in self.judge.violations)


@pytest.fixture
def told() -> Told:
    """Guests have a GPU of one type, and a batch cell of the course two of the other one, that are guaranteed."""
    told = Told()
    told.ask(1, "guests", "H100", agent="a", slots="g0")
    told.ask(2, "course", "L4", 2, "batch", agent="a", slots="g1 g2")
    return told


@pytest.mark.parametrize(("kind", "gpus", "is_broken"), [("H100", 1, True), ("", 2, True), ("", 1, False)])
def test_who_waits_has_more_time_where_a_cell_that_goes_leaves_a_gpu_for_them(
    told: Told, kind: str, gpus: int, *, is_broken: bool
) -> None:
    """Not for a cell of another type, nor for one all of whose GPUs the other one needs."""
    told.drain("b")
    told.ask(100, "lab", kind)
    told.ask(101, "course", "L4", gpus, goes="course:2")
    assert told.is_broken(150) is is_broken
    assert told.is_broken(101 + GRACE_S + 50)


def test_what_somebody_else_is_given_elsewhere_gives_nobody_more_time(told: Told) -> None:
    told.ask(100, "lab", "H100")
    assert not told.is_broken(105)
    told.ask(108, "guests", "T4", agent="b", slots="g0")
    told.ask(116, "guests", "T4", agent="b", slots="g1")
    assert told.is_broken(125)
