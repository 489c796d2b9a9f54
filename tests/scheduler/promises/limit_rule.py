"""Promises 3, 8, 9 and 10: who never borrows never does; limits, budgets and what a lending limit keeps hold."""

from collections.abc import Iterator, Sequence

from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.projects import show_gpus
from tests.scheduler.promises.books import Tenancy, Waiting
from tests.scheduler.promises.budget_book import BudgetBook, budgets_of
from tests.scheduler.promises.keep_time import is_beyond_rules
from tests.scheduler.promises.lending import is_lent, kept_from, room_for
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View
from tests.scheduler.promises.violations import Report, Rule


class LimitRule(Rule):
    """Judges whenever somebody begins to use more."""

    def __init__(self, report: Report, budgets: BudgetBook) -> None:
        super().__init__(report)
        self.budgets = budgets
        self.trusts_budgets = True
        self._hot: set[str] = set()

    def action(self, action: act.Action, view: View) -> None:
        """Judge what a grant lends before it is written down."""
        if not isinstance(action, act.Grant) or action.request not in view.books.waiting:
            return
        request = view.books.waiting[action.request]
        for what, facts in _beyond_rules(request, view):
            self.report(8, what, f"{request} is granted {facts}")
        machine = view.books.machines[action.agent]
        cost = view.books.cost(machine.slots[name] for name in action.slots if name in machine.slots)
        covers = view.covered(request)
        if cost and not is_lent(view, request.event.project, cost, covers, soon=True):
            kept = kept_from(view, request.event.project, covers)
            room = room_for(view, request.event.project, covers, soon=True)
            facts = f"{request} leaves {show_gpus(max(0, room - cost))} of {show_gpus(kept)} that are kept"
            self.report(10, "somebody borrows what a lending limit keeps", facts)

    def granted(self, lease: Tenancy, view: View) -> None:
        """Judge how things stand after a grant."""
        books, tree = view.books, view.tree
        qos = tree.qos.get(lease.qos)
        present = [other for other in books.leases.values() if not other.is_over]
        if qos is not None and qos.running_per_user is not None:
            mine = [other for other in present if (other.user, other.qos) == (lease.user, lease.qos)]
            if len(mine) > qos.running_per_user:
                self.report(8, "running_per_user is exceeded", f"{lease.user} has {len(mine)} leases in {lease.qos!r}")
        if lease.cost == 0:
            return
        for side in tree.chain(lease.project):
            project = tree.projects.get(side.project)
            if project is None or side.own_users:
                continue
            inside = [other for other in present if side in tree.chain(other.project)]
            total = sum(other.cost for other in inside)
            limit = tree.limit(side, view.nominal)
            if limit is not None and total > limit:
                facts = f"{side} has {show_gpus(total)} of {show_gpus(limit)}, hot ones included, with {lease}"
                self.report(8, "a limit is exceeded", facts)
            if side.project != lease.project:
                continue  # of its own users, to whom the grant gives no more
            theirs = sum(other.cost for other in inside if (other.user, other.project) == (lease.user, side.project))
            most = books.user_limit(side.project, lease.user)
            if most is not None and theirs > most:
                self.report(8, "a user limit is exceeded", f"{lease.user} has {show_gpus(theirs)} in {side}")
        self._judge_quota(lease, view)

    def event(self, event: ev.Event, view: View) -> None:
        """Judge a hot session that begins a cell by itself; of one that was asked to leave nobody can know.

        Whoever is about to begin uses its GPUs already, and was judged when it was granted them.
        """
        lease = view.books.leases.get(event.lease) if isinstance(event, ev.CellStarted) else None
        if lease is not None and lease.lease in self._hot:
            self._judge_quota(lease, view)
            if is_beyond_rules(view, lease):
                self.report(8, "a hot session begins a cell that the rules forbid", f"{lease}")

    def _judge_quota(self, lease: Tenancy, view: View) -> None:
        qos = view.tree.qos.get(lease.qos)
        if qos is not None and qos.must_be_in_quota and lease.lease not in view.covers_nominally and lease.cost:
            uses = ", ".join(
                f"{side} uses {show_gpus(view.used.get(side, 0))} of {show_gpus(view.nominal.get(side, 0))}"
                for side in view.tree.chain(lease.project)
            )
            self.report(3, "a cell of a class that never borrows borrows", f"{lease}: {uses}")
        for side in view.tree.chain(lease.project) if lease.cost else ():
            project = view.tree.projects.get(side.project)
            if project is None or project.can_borrow or side.own_users:
                continue
            used, promised = view.used.get(side, 0), view.nominal[side]
            if used > promised:
                facts = f"{side} uses {show_gpus(used)} of {show_gpus(promised)} with {lease}"
                self.report(3, "a project that never borrows borrows", facts)

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Judge budgets, and remember whose session is hot and was not asked to leave."""
        for request in view.books.waiting.values() if view.books.allowances else ():
            if (request.event.project, request.event.user) in view.books.allowances:
                for _, facts in _beyond_rules(request, view):
                    self.report(8, "what was granted is over, and who needs it waits", f"{request}, {facts}")
        self._hot = {lease.lease for lease in view.books.leases.values() if lease.is_hot and not lease.is_asked}
        if not self.trusts_budgets:
            return
        for name, budget in budgets_of(view.tree).items():
            over = self.budgets.spent[name] - budget.gpu_ms * 1000
            if over > self.budgets.starts[name]:
                hours = f"{self.budgets.spent[name] / 3.6e9:.3f} of {budget.gpu_ms / 3.6e6:.3f} GPU-hours"
                self.report(9, "a budget is overspent", f"{Side(name)} has spent {hours} this {budget.period}")


def _beyond_rules(request: Waiting, view: View) -> Iterator[tuple[str, str]]:
    """List what its project, its class of service, and what its user was granted do not let one cell have."""
    at, tree = request.event, view.tree
    own, qos = tree.rule_of_cells(at.project, "qos"), tree.qos.get(at.qos)
    if own is not None and at.qos not in own:
        yield "a class of service that its project may not use", f"and may use {own}"
    allowed = view.books.allowed(at.project, at.user, "gpus")
    for most in (tree.rule_of_cells(at.project, "gpus_per_cell"), qos.gpus_per_cell if qos else None):
        if most is not None and at.gpus > max(most, allowed):
            yield "more GPUs than a cell may have", f"{at.gpus} of {most}, and {allowed} are allowed"
    node = view.books.allowed_node(at.project, at.user)
    if at.is_exclusive and qos is not None and not qos.can_be_exclusive and at.gpus > node:
        yield "a node that it may not have alone", f"{at.gpus} GPUs, and a node of {node} is allowed"
    allowed_ms = view.books.allowed(at.project, at.user, "walltime_ms")
    for longest_ms in (tree.rule_of_cells(at.project, "walltime_ms"), qos.walltime_ms if qos else None):
        if longest_ms is not None and request.walltime_ms > max(longest_ms, allowed_ms):
            yield (
                "longer than a cell may run",
                f"{request.walltime_ms} of {longest_ms} ms, and {allowed_ms} are allowed",
            )
