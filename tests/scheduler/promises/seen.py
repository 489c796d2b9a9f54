"""What people see of a history that was played: when they began, how long they waited, what idled meanwhile."""

import itertools
from collections.abc import Collection, Iterable

from bulletin.ids import AgentId, ProjectId, SessionId, UserName
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.play import play
from tests.scheduler.promises.violations import Violation

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


class Seen:
    """A history that was played. All times are in seconds since it began."""

    def __init__(self, history: hi.History, but: Collection[int] = ()) -> None:
        """Play it; the referee must find nothing but violations of these promises, where it knows all that is set."""
        judge, _ = play(history, keeps_log=True)
        self.history = history
        self.violations: list[Violation] = judge.violations
        found = [str(violation) for violation in judge.violations if violation.promise not in but]
        assert not found or not _is_known(history), found[0]
        self.log = [((at - history.begin_ms) / 1000, event, actions) for at, event, actions in judge.log]
        self.opened = {at.what.session: at.what for at in history.happenings if isinstance(at.what, hi.Opens)}
        self.held = {
            action.lease: (action.session, len(action.slots))
            for _, _, actions in self.log
            for action in actions
            if isinstance(action, act.Grant)
        }

    def asked(self, session: str) -> float:
        """Find when a session first asked."""
        found = (at for at, event, _ in self.log if isinstance(event, ev.RequestSubmitted) and event.session == session)
        return next(found, float("inf"))

    def granted(self, session: str) -> float:
        """Find when a session was first granted its GPUs; infinity is never."""
        found = (
            at
            for at, _, actions in self.log
            for action in actions
            if isinstance(action, act.Grant) and action.session == session
        )
        return next(found, float("inf"))

    def wait(self, session: str) -> float:
        """Compute how long a session waited for its first GPUs."""
        return self.granted(session) - self.asked(session)

    def refused(self, session: str) -> list[str]:
        """List what a session was told that cannot run."""
        return [
            str(action.reason)
            for _, _, actions in self.log
            for action in actions
            if isinstance(action, act.Refuse) and action.request.split("/")[0] == session
        ]

    def asked_to_leave(self, session: str) -> list[float]:
        """List when a session was asked to leave its GPUs, in whatever way."""
        return [
            at
            for at, _, actions in self.log
            for action in actions
            if isinstance(action, act.Evict | act.Reclaim | act.Pause) and self.held[action.lease][0] == session
        ]

    def running(self) -> list[tuple[float, dict[str, int]]]:
        """List, after each step, how many GPUs of each session run a cell."""
        found, now = [], dict[str, int]()
        cells: dict[str, tuple[str, int]] = {}
        for at, event, _ in self.log:
            if isinstance(event, ev.CellStarted):
                cells[event.lease] = self.held[event.lease]
            elif isinstance(event, ev.CellEnded | ev.LeaseEnded):
                cells.pop(event.lease, None)
            now = {}
            for session, gpus in cells.values():
                now[session] = now.get(session, 0) + gpus
            found.append((at, now))
        return found

    def gpu_seconds(self, project: str, first: float = 0, last: float = float("inf")) -> float:
        """Compute the GPU time for which cells of a project ran."""
        total, steps = 0.0, self.running()
        for (at, now), (until, _) in itertools.pairwise(steps):
            span = max(0.0, min(until, last) - max(at, first))
            total += span * sum(n for session, n in now.items() if self.opened[SessionId(session)].project == project)
        return total

    def most_at_once(self, project: str) -> int:
        """Find how many GPUs cells of a project ever used at once."""
        return max(
            sum(n for session, n in now.items() if self.opened[SessionId(session)].project == project)
            for _, now in self.running()
        )

    def idle_share(self, gpus: int, first: float, last: float) -> float:
        """Compute which part of all GPU time ran nothing while anybody waited."""
        waiting: set[str] = set()
        idle = 0.0
        steps = self.running()
        for (at, event, actions), (_, now), (until, _) in zip(self.log, steps, [*steps[1:], steps[-1]], strict=True):
            if isinstance(event, ev.RequestSubmitted):
                waiting.add(event.request)
            elif isinstance(event, ev.RequestWithdrawn):
                waiting.discard(event.request)
            waiting -= {action.request for action in actions if isinstance(action, act.Grant | act.Refuse)}
            if waiting:
                idle += max(0.0, min(until, last) - max(at, first)) * (gpus - sum(now.values()))
        return idle / (gpus * (last - first))


def notebook(session: str, project: str, *runs_s: float, think_s: float = 0, **more: object) -> hi.Opens:
    """Make a notebook whose cells run so long; its user has its name, and it is interactive."""
    qos, user = more.pop("qos", "interactive"), more.pop("user", session)
    plans = tuple(hi.CellPlan(round(think_s * 1000) if n else 0, round(run * 1000)) for n, run in enumerate(runs_s))
    return hi.Opens(
        session=SessionId(session), user=UserName(str(user)), project=ProjectId(project), qos=str(qos), cells=plans,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def at(second: float, what: hi.Happening) -> hi.At:
    """Say when something happens."""
    return hi.At(round(second * 1000), what)


def nodes(number: int, gpus: int) -> list[hi.At]:
    """Make so many nodes of so many GPUs, there from the beginning."""
    return [at(0, hi.Joins(AgentId(f"n{index}"), hi.gpus(gpus))) for index in range(number)]


def see(
    settings: SchedulerSettings,
    *happenings: Iterable[hi.At] | hi.At,
    last: float,
    but: Collection[int] = (),
    **more: object,
) -> Seen:
    """Play a history until the last second of it, under the referee, who overlooks violations of some promises."""
    every: list[hi.At] = []
    for one in happenings:
        every += [one] if isinstance(one, hi.At) else one
    every.sort(key=lambda happening: happening.ms)
    return Seen(
        hi.History(settings=settings, happenings=tuple(every), until_ms=round(last * 1000), **more),  # type: ignore[arg-type]
        but,
    )


def _is_known(history: hi.History) -> bool:
    """Whether the referee knows all that is set: it keeps no books of node pools, reservations and prices."""
    later = [at.what.settings for at in history.happenings if isinstance(at.what, hi.Changes)]
    return not any(
        settings.node_pools
        or settings.prices
        or any(project.pool_guarantees or project.reservations for project in settings.projects)
        for settings in (history.settings, *later)
    )
