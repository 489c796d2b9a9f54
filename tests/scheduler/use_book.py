"""The referee's book of use: what was charged in the past, and what is spent of budgets in this period."""

from dataclasses import dataclass, field
from fractions import Fraction

from gpu_worker.scheduler import events as ev
from tests.scheduler.project_book import ProjectBook, Who
from tests.scheduler.tenancy import USING, Tenancy

DAY_MS = 86_400_000
#: When a period began; months are not played.
PERIOD = {
    "day": lambda now_ms: now_ms // DAY_MS * DAY_MS,
    "week": lambda now_ms: ((now_ms // DAY_MS + 3) // 7 * 7 - 3) * DAY_MS,
}


def weight(now_ms: int) -> int:
    """What use at a time counts for, by the hour: twice as much as a week before."""
    weeks, hours = divmod(now_ms // 3_600_000, 168)
    return round(65_536 * 2 ** (hours / 168)) << weeks


@dataclass
class UseBook:
    projects: ProjectBook
    past: dict[Who, list[tuple[Fraction | int, int]]] = field(default_factory=dict)  # amounts, each with its time
    spent: dict[str, int] = field(default_factory=dict)  # of budgets, in this period

    def before(self, who: Who) -> Fraction:
        """What was used in the past: half of it after a week, by the hour. Histories begin at 0."""
        now = weight(self.projects.now_ms)
        return Fraction(sum(amount * weight(at_ms) for amount, at_ms in self.past.get(who, [])), now)

    def of(self, project: str, user: str) -> list[Who]:
        """Whose past use it is."""
        return [("user", project, user), *(("project", name) for name in self.projects.path(project))]

    def add(self, who: Who, amount: Fraction | int) -> None:
        self.past.setdefault(who, []).append((amount, self.projects.now_ms))

    def count_budgets(self, now_ms: int) -> None:
        """What running cells have used of budgets up to now: afresh in each period."""
        before_ms = self.projects.now_ms
        used: dict[str, int] = {}
        for lease in self.projects.pool.leases.values():
            if lease.state in USING:
                for name in self.projects.path(lease.project):
                    used[name] = used.get(name, 0) + self.projects.pool.charge_of(lease)
        for project in self.projects.settings.projects:
            if project.budget is not None:
                began_ms = PERIOD[project.budget.period](now_ms)
                spent = self.spent.get(project.id, 0) if before_ms >= began_ms else 0
                passed_ms = now_ms - max(began_ms, before_ms)
                self.spent[project.id] = spent + used.get(project.id, 0) * passed_ms

    def forget_budgets(self) -> None:
        """Forget what was spent of those that are no more."""
        self.spent = {name: spent for name, spent in self.spent.items() if self.projects.project(name).budget}

    def cell_over(self, lease: Tenancy) -> None:
        if lease.state in ("busy", "reclaiming"):
            qos = self.projects.qos(lease.qos)
            used_ms = self.projects.now_ms - lease.busy_ms
            amount = self.projects.pool.charge_of(lease) * used_ms * (qos.usage_percent if qos else 100) // 100
            for who in self.of(lease.home, lease.user):
                self.add(who, amount)
        lease.busy_ms = self.projects.now_ms

    def recalled(self, event: ev.UseRecalled) -> None:
        for use in event.uses:
            for who in self.of(use.project, use.user):
                self.add(who, use.amount)
        for name, amount in event.spent.items():
            if self.projects.project(name).budget is not None:
                self.spent[name] = self.spent.get(name, 0) + amount

    def refunded(self, event: ev.UseRefunded) -> None:
        """No more than was used."""
        for use in event.uses:
            user, *projects = self.of(use.project, use.user)
            taken = min(Fraction(use.amount), self.before(user))
            for who in (user, *projects):
                self.add(who, -min(taken, self.before(who)))
        for name, amount in event.spent.items():
            if self.projects.project(name).budget is not None:
                self.spent[name] = max(0, self.spent.get(name, 0) - amount)
