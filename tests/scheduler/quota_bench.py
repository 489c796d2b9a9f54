"""A bench for stories about quotas: sessions are called for their projects, and projects change on the way."""

import msgspec

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, Pause, Reclaim
from gpu_worker.scheduler.policy.projects import Project, QoS
from tests.scheduler.bench import MINUTE, SETTINGS, Bench, granted, project, slots


class Quotas(Bench):
    """A bench whose sessions are called for their projects: "lab.ann" is a session of ann, who is in the lab."""

    def __init__(self, *projects: Project, qos: tuple[QoS, ...] = SETTINGS.qos) -> None:
        super().__init__(msgspec.structs.replace(SETTINGS, projects=projects, qos=qos))

    def wants(self, session: str, **how: object) -> list[str]:
        """Ask for the project and the user that the session's name says; who is granted."""
        name, _, user = session.partition(".")
        return granted(self.ask(session, project=name, user=user.rstrip("0123456789"), **how))  # type: ignore[arg-type]

    def busy(self, *sessions: str, **how: object) -> None:
        """These sessions run a cell each."""
        for session in sessions:
            assert self.wants(session, **how) == [f"{session}:1"]
            self.start(f"{session}:1")

    def order(self, leases: list[str]) -> list[str]:
        """End these leases one by one; who is granted, in order."""
        return [one for lease in leases for one in granted(self.free(lease))]


def changed(pool: Quotas, *projects: Project, **how: object) -> list[Action]:
    return pool.say(ev.SettingsChanged(msgspec.structs.replace(SETTINGS, projects=projects, **how)))


def lent(*projects: Project) -> Quotas:
    """Two GPUs, one of them guaranteed to the lab, both with guests for ten minutes and five."""
    pool = Quotas(project("lab", guaranteed_milli=1000), *projects)
    pool.join("a", slots(2))
    pool.busy("guests.eve")
    pool.later(5 * MINUTE)
    pool.busy("guests.tom")
    pool.later(5 * MINUTE)
    return pool


def taken(actions: list[Action]) -> list[str]:
    """Whose cells are asked for, to be run again or to be paused."""
    return [one.lease for one in actions if isinstance(one, Reclaim | Pause)]
