"""What each project has spent of its budget, from the tenants and the clock alone."""

from datetime import UTC, datetime, timedelta

from bulletin.ids import ProjectId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.projects import Budget
from tests.scheduler.promises.books import Books
from tests.scheduler.promises.tree import Side, Tree


def period(budget: Budget, now_ms: int) -> tuple[int, int]:
    """Find when the present day, week or month began and ends, in milliseconds since 1970, UTC."""
    day = datetime.fromtimestamp(now_ms / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if budget.period == "day":
        begin, end = day, day + timedelta(days=1)
    elif budget.period == "week":
        begin = day - timedelta(days=day.weekday())
        end = begin + timedelta(days=7)
    else:
        begin = day.replace(day=1)
        end = (begin + timedelta(days=32)).replace(day=1)
    return round(begin.timestamp() * 1000), round(end.timestamp() * 1000)


class BudgetBook:
    """Adds up, in thousandths of a GPU times milliseconds, what runs or is about to."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self.spent: dict[ProjectId, int] = {}
        self.starts: dict[ProjectId, int] = {}  #: what the beginnings and ends of cells may cost beyond the budget
        self._ends: dict[ProjectId, int] = {}
        self._until_ms = 0
        self._tree = books.tree  #: of the last step

    def advance(self, now_ms: int) -> None:
        """Count until now. Whoever has a new period has spent nothing in it."""
        tree = self.books.tree
        budgets = budgets_of(tree)
        if budgets and self._until_ms:
            edges = sorted({end for end in self._ends.values() if self._until_ms < end <= now_ms})
            for at_ms in [*edges, now_ms]:
                self._count(at_ms)
                for name, budget in budgets.items():
                    if self._ends.get(name, 0) <= at_ms:
                        self._begin(name, budget, at_ms)
        for name, budget in budgets.items():
            if name not in self._ends:
                self._begin(name, budget, now_ms)
        for name in [name for name in self._ends if name not in budgets]:
            del self._ends[name], self.spent[name], self.starts[name]
        if tree is not self._tree:
            self._tree, before = tree, self._tree
            self._count_before(before, now_ms)
        self._until_ms = now_ms

    def _begin(self, name: ProjectId, budget: Budget, at_ms: int) -> None:
        self._ends[name] = period(budget, at_ms)[1]
        self.spent[name] = 0
        self.starts[name] = sum(2 * 60_000 * lease.cost for lease in self.books.leases.values() if lease.is_using)

    def _count_before(self, before: Tree, now_ms: int) -> None:
        """Add what runs has used in the period of each budget in which it did not count before the settings changed."""
        known = budgets_of(before)
        for name, budget in budgets_of(self.books.tree).items():
            is_same = name in known and known[name].period == budget.period
            if not is_same:
                self._begin(name, budget, now_ms)
            begin_ms, _ = period(budget, now_ms)
            for lease in self.books.leases.values():
                was_inside = is_same and Side(name) in before.chain(lease.project)
                if lease.is_using and Side(name) in self.books.tree.chain(lease.project) and not was_inside:
                    since_ms = lease.granted_ms if lease.cell is None else lease.began_ms
                    self.spent[name] += lease.cost * (now_ms - max(begin_ms, since_ms))

    def _count(self, at_ms: int) -> None:
        passed = at_ms - self._until_ms
        self._until_ms = at_ms
        for lease in self.books.leases.values():
            if lease.is_using:
                for side in self.books.tree.chain(lease.project):
                    if not side.own_users and side.project in self.spent:
                        self.spent[side.project] += lease.cost * passed

    def note_begin(self, project: ProjectId, cost: int, grace_ms: int) -> None:
        """Take in that a cell begins, whose start and end may cost a little more."""
        for side in self.books.tree.chain(project):
            if not side.own_users and side.project in self.starts:
                self.starts[side.project] += cost * (60_000 + grace_ms + 20_000)

    def refund(self, event: ev.UseRefunded) -> None:
        """Take back what was lost."""
        for name, amount in event.spent.items():
            if name in self.spent:
                self.spent[name] = max(0, self.spent[name] - amount)

    def left(self, name: ProjectId) -> int:
        """Compute what is left, if all that runs takes its whole walltime, and each hot session begins once more.

        With a minute to start for each. Only what falls into the present period counts.
        """
        budget = budgets_of(self.books.tree)[name]
        left = budget.gpu_ms * 1000 - self.spent[name]
        for lease in self.books.leases.values():
            if any(side.project == name and not side.own_users for side in self.books.tree.chain(lease.project)):
                if lease.is_over:
                    continue
                remaining = lease.walltime_ms + 60_000
                if lease.cell is not None:
                    remaining = max(0, lease.began_ms + lease.walltime_ms + lease.more_ms - self.books.now_ms) + 60_000
                left -= lease.cost * remaining
        return left


def budgets_of(tree: Tree) -> dict[ProjectId, Budget]:
    """List the budgets that the settings have."""
    return {name: project.budget for name, project in tree.projects.items() if project.budget is not None}
