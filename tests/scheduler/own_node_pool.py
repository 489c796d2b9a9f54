"""A scheduler with nodes that users have brought, and what it gives and refuses."""

import msgspec

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, Grant, Refuse
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import NodePool, Project, QoS, SchedulerSettings
from tests.scheduler.bench import MINUTE

QOS = (QoS(name="interactive", priority=2, walltime_ms=30 * MINUTE, queued_per_user=8, gpus_per_cell=2),)


class Pool:
    """A scheduler whose invariants are checked after each event; cells begin when they are granted."""

    def __init__(self, *projects: Project, node_pools: tuple[NodePool, ...] = (), qos: tuple[QoS, ...] = QOS) -> None:
        self.scheduler = Scheduler(SchedulerSettings(qos=qos, projects=projects, node_pools=node_pools))
        self.now_ms, self._named = 0, 0

    def say(self, event: ev.Event) -> list[Action]:
        actions = self.scheduler.step(event, self.now_ms)
        check(self.scheduler.state)
        return actions

    def join(self, agent: str, offered: tuple[ev.Slot, ...], owner: str = "", **how: object) -> list[Action]:
        joined = ev.AgentJoined(AgentId(agent), agent, offered, owner=UserName(owner))
        return self.say(msgspec.structs.replace(joined, **how))

    def ask(self, session: str, user: str = "", gpus: int = 1, project: str = "p", **how: object) -> list[Action]:
        self._named += 1
        asked = ev.RequestSubmitted(
            RequestId(f"{session}/{self._named}"),
            LeaseId(f"{session}:{self._named}"),
            SessionId(session),
            UserName(user or session.rstrip("0123456789")),
            ProjectId(project),
            "interactive",
            gpus,
        )
        return self.say(msgspec.structs.replace(asked, **how))

    def start(self, session: str, **how: object) -> None:
        """Ask for a cell that begins at once."""
        (given,) = granted(self.ask(session, **how)).items()  # type: ignore[arg-type]
        self.say(ev.CellStarted(self.lease_of(session), CellId(f"cell of {session}")))
        assert given[0] == session

    def lease_of(self, session: str) -> LeaseId:
        return next(iter(self.scheduler.state.leases_of[SessionId(session)]))

    def end(self, session: str) -> list[Action]:
        """End the cell of a session, whose process goes too."""
        lease = self.lease_of(session)
        actions = self.say(ev.CellEnded(lease, CellId(f"cell of {session}")))
        return actions + self.say(ev.LeaseEnded(lease))

    def refused_by(self, last_ms: int) -> list[Refuse]:
        """Let time pass until then, and list who is refused just then, and nobody before."""
        found: list[Refuse] = []
        while (at_ms := self.scheduler.deadline()) is not None and at_ms <= last_ms:
            assert found == [], "before its time"
            self.now_ms = at_ms
            found = [one for one in self.say(ev.Tick()) if isinstance(one, Refuse)]
        assert self.now_ms == last_ms
        return found

    def where(self) -> dict[str, str]:
        """Say which session is on which node."""
        return {lease.session: str(lease.agent) for lease in self.scheduler.state.leases.values()}

    def used(self, project: str = "p") -> int:
        return self.scheduler.state.accounts.of(ProjectId(project)).used


def granted(actions: list[Action]) -> dict[str, str]:
    return {one.session: str(one.agent) for one in actions if isinstance(one, Grant)}


def refused(actions: list[Action]) -> list[str]:
    return [str(one.reason) for one in actions if isinstance(one, Refuse)]
