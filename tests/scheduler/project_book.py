"""The referee's book of projects: what each is guaranteed and may have at most, and what counts where."""

from dataclasses import dataclass

from bulletin.ids import ProjectId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.projects import Project, QoS, SchedulerSettings
from tests.scheduler.hours_book import best_guarantee, own_guarantee
from tests.scheduler.pool_book import PoolBook
from tests.scheduler.tenancy import Tenancy

#: Whose amounts something counts for: a project, a user in a project, a user in a class of service.
Who = tuple[str, ...]


@dataclass
class ProjectBook:
    settings: SchedulerSettings
    pool: PoolBook
    now_ms: int = 0
    hopes: bool = False  # whether all class hours that are still to come count

    def qos(self, name: str) -> QoS | None:
        return next((qos for qos in self.settings.qos if qos.name == name), None)

    def project(self, name: str) -> Project:
        return next((one for one in self.settings.projects if one.id == name), Project(id=ProjectId(name)))

    def path(self, name: str) -> list[str]:
        """A project, and what it is in, from the outside in."""
        parent = self.project(name).parent
        return [*(self.path(parent) if parent else []), name]

    # What is guaranteed, and how much it may be at most

    def guaranteed(self, name: str) -> int:
        """What is promised or, where that is more than there is, the same part of it for everybody."""
        total = sum(self.promised(one.id) for one in self.settings.projects if one.parent is None)
        there, promised = self.pool.offered(), self.promised(name)
        return promised * there // total if 0 < there < total else promised

    def promised(self, name: str) -> int:
        inside = sum(self.promised(one.id) for one in self.settings.projects if one.parent == name)
        own = (best_guarantee if self.hopes else own_guarantee)(self.project(name), self.now_ms)
        return max(own, inside)

    def has_a_usual_guarantee(self, name: str) -> bool:
        inside = [one.id for one in self.settings.projects if one.parent == name]
        return self.project(name).guaranteed_milli > 0 or any(map(self.has_a_usual_guarantee, inside))

    def payer(self, place: str) -> str:
        """Whose guarantee counts there for a class that never borrows."""
        path = self.path(place)
        return [name for name in path if self.has_a_usual_guarantee(name) or name == path[0]][-1]

    def limit(self, name: str) -> int | None:
        project = self.project(name)
        if project.can_borrow:
            return project.limit_milli
        return min(self.promised(name), self.promised(name) if project.limit_milli is None else project.limit_milli)

    # Where something counts

    def place(self, home: str, user: str) -> str:
        """Where what a user wants of a project counts now: in what is reserved for the user there, while it is on."""
        for one in self.settings.projects:
            if user in one.users and one.parent == home and own_guarantee(one, self.now_ms):
                return one.id
        return home

    def place_anew(self) -> None:
        """What runs stays in its project; what is in a reservation that is no more, or runs nothing, does not."""
        for lease in self.pool.leases.values():
            if lease.project != lease.home or lease.state in ("hot", "leaving"):
                lease.project = self.place(lease.home, lease.user)

    def place_of_held(self, held: ev.ReportedLease, was: Tenancy | None) -> str:
        """Where a lease counts that an agent reports: what runs, where it did or where it would have begun."""
        place = self.place(held.project, held.user)
        if was and held.cell and (was.cell, was.home) == (held.cell, held.project):
            return was.project if was.project == was.home else place
        began_ms = self.now_ms - held.running_ms
        return place if not held.cell or own_guarantee(self.project(place), began_ms) else held.project

    def who(self, of: ev.RequestSubmitted | Tenancy) -> list[Who]:
        at = of.project if isinstance(of, Tenancy) else self.place(of.project, of.user)
        projects = [("project", name) for name in self.path(at)]
        return [*projects, ("user", at, of.user), ("qos", of.qos, of.user)]

    def amounts(self, *states: str) -> dict[Who, int]:
        """Add up what leases cost; for a class of service, how many there are."""
        amounts: dict[Who, int] = {}
        for lease in self.pool.leases.values():
            if lease.state in states:
                cost = self.pool.cost_of(lease)
                for one in self.who(lease):
                    amounts[one] = amounts.get(one, 0) + (1 if one[0] == "qos" else cost)
        return amounts
