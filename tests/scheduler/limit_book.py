"""The referee's book of limits: what may run beside what has its GPUs, what ever may, and what may be kept."""

from dataclasses import dataclass

from gpu_worker.scheduler import events as ev
from tests.scheduler.project_book import ProjectBook, Who
from tests.scheduler.rule_book import RuleBook
from tests.scheduler.tenancy import USING, Tenancy


@dataclass
class LimitBook:
    projects: ProjectBook
    rules: RuleBook

    def limit(self, who: Who) -> int | None:
        match who:
            case ("project", name):
                return self.projects.limit(name)
            case ("user", project, user):
                return self.rules.user_limit(project, user)
        qos = self.projects.qos(who[1])
        return None if qos is None else qos.running_per_user

    def is_below_limits(self, asked: ev.RequestSubmitted, amounts: dict[Who, int]) -> bool:
        cost = self.projects.pool.cost(asked)
        after = {one: amounts.get(one, 0) + (1 if one[0] == "qos" else cost) for one in self.projects.who(asked)}
        limits = {one: self.limit(one) for one in after}
        return all(limit is None or after[one] <= limit for one, limit in limits.items())

    def is_allowed(self, asked: ev.RequestSubmitted, used: dict[Who, int]) -> bool:
        """Whether it may run by its limits and its QoS, once hot sessions have made room."""
        cost = self.projects.pool.cost(asked)
        if cost and not self.is_below_limits(asked, used):
            return False
        if self.projects.hopes and self.rules.breaks_a_rule(asked):
            return False
        if not cost:
            return True
        place = self.projects.place(asked.project, asked.user)
        budgets = [self.projects.project(name).budget for name in self.projects.path(place)]
        charge = self.projects.pool.charge(asked, self.projects.settings.prices) * self.rules.walltime_ms(asked)
        if any(budget is not None and charge > budget.gpu_ms * 1000 for budget in budgets):
            return False
        payer = self.projects.payer(place)
        is_covered = used.get(("project", payer), 0) + cost <= self.projects.promised(payer)
        return is_covered or not self.projects.qos(asked.qos).must_be_in_quota

    def could_be_allowed(self, asked: ev.RequestSubmitted) -> bool:
        """Whether it might run if nobody else did, nothing was spent, and its class hours had come."""
        pool = self.projects.pool
        if pool.awaited_until_ms is not None and not pool.was_shown_for(asked):
            return not self.rules.breaks_a_rule(asked)  # what it costs depends on nodes that are to come back
        self.projects.hopes = True
        try:
            return self.is_allowed(asked, {})
        finally:
            self.projects.hopes = False

    def may_be_kept(self, lease: Tenancy) -> bool:
        """Whether a hot session may stay where nobody waits: hot ones count for limits, and keep what never borrows."""
        if self.rules.is_beyond(lease):
            return False
        held, qos = self.projects.amounts(*USING, "hot"), self.projects.qos(lease.qos)
        if qos is not None and qos.must_be_in_quota:
            payer = self.projects.payer(lease.project)
            if held[("project", payer)] > self.projects.promised(payer):
                return False
        limits = {one: self.limit(one) for one in self.projects.who(lease)}
        return all(limit is None or held[one] <= limit for one, limit in limits.items())
