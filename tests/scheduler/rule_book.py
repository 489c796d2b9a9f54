"""The referee's book of rules for cells: what one may ask for in its project and its class, and who is allowed more."""

from dataclasses import dataclass, field
from typing import Any

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.allowances import Allowance
from tests.scheduler.project_book import ProjectBook
from tests.scheduler.tenancy import Tenancy


@dataclass
class RuleBook:
    projects: ProjectBook
    allowed: dict[str, ev.AllowanceChanged] = field(default_factory=dict)

    def rule_of_cells(self, event: ev.RequestSubmitted, field: str) -> Any:
        """What a project says of its cells, or the one that it is in."""
        path = reversed(self.projects.path(event.project))
        rules = (getattr(self.projects.project(name), field) for name in path)
        return next((rule for rule in rules if rule is not None), None)

    def walltime_ms(self, event: ev.RequestSubmitted) -> int:
        longest_ms = self.projects.qos(event.qos).walltime_ms
        return event.walltime_ms or min(longest_ms, self.rule_of_cells(event, "walltime_ms") or longest_ms)

    def is_too_long(self, event: ev.RequestSubmitted) -> bool:
        own_ms = self.allowance(event.project, event.user, "walltime_ms")
        return (event.walltime_ms or 0) > max(self.projects.qos(event.qos).walltime_ms, own_ms)

    def breaks_a_rule(self, event: ev.RequestSubmitted) -> bool:
        """Whether its project, or its class of service, does not let a cell ask for this."""
        own, qos = self.rule_of_cells(event, "qos"), self.projects.qos(event.qos)
        most = [self.rule_of_cells(event, "gpus_per_cell"), qos.gpus_per_cell]
        most = [one if one is None else max(one, self.allowance(event.project, event.user, "gpus")) for one in most]
        alone = [one.gpus for one in self.allowances(event.project, event.user) if one.is_exclusive]
        if event.is_exclusive and not qos.can_be_exclusive and max(alone, default=0) < event.gpus:
            return True
        longest_ms = self.rule_of_cells(event, "walltime_ms")
        if longest_ms is not None:
            longest_ms = max(longest_ms, self.allowance(event.project, event.user, "walltime_ms"))
        return (
            (own is not None and event.qos not in own)
            or any(one is not None and event.gpus > one for one in most)
            or (longest_ms is not None and (event.walltime_ms or 0) > longest_ms)
        )

    def is_beyond(self, lease: Tenancy) -> bool:
        """Whether its session, if it is hot, could begin a cell that nobody may ask for now."""
        if self.projects.qos(lease.qos) is None:
            return False
        gpus = len(lease.slots) if self.projects.pool.cost_of(lease) else 0
        next_one = ev.RequestSubmitted(
            "", "", lease.session, lease.user, lease.project, lease.qos, gpus, lease.walltime_ms,
            is_exclusive=lease.is_exclusive,
        )  # fmt: skip
        return self.is_too_long(next_one) or self.breaks_a_rule(next_one)

    # What users are allowed beyond the rules for everybody

    def allowance(self, project: str, user: str, kind: str) -> int:
        return max((getattr(one, kind) for one in self.allowances(project, user)), default=0)

    def allowances(self, project: str, user: str) -> list[Allowance]:
        it = self.projects.project(project)
        home = (it.parent if it.users else project) or project
        mine = [one.allowance for one in self.allowed.values() if (one.project, one.user) == (home, user)]
        return [one for one in mine if one.until_ms > self.projects.now_ms]

    def user_limit(self, project: str, user: str) -> int | None:
        limit = self.projects.project(project).user_limit_milli
        return None if limit is None else max(limit, 1000 * self.allowance(project, user, "gpus"))

    def drop_allowances(self) -> set[str]:
        """Forget those that are over; of whom they were."""
        over = {name for name, one in self.allowed.items() if one.allowance.until_ms <= self.projects.now_ms}
        return {self.allowed.pop(name).user for name in over}
