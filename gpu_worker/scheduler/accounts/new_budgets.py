"""What new settings mean for budgets in which something did not count before: what runs has spent of them already."""

from collections.abc import Iterable

from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.leases.leases import USING, Lease
from gpu_worker.scheduler.policy.periods import period_at


def count_running(before: Accounts, after: Accounts, leases: Iterable[Lease]) -> None:
    """Spend what cells that go on have used since they began, of budgets in which they did not count before.

    These are new, or have another period, or a project has come into one that has a budget; where it has left one,
    what runs has spent nothing there. Of cells that have ended the scheduler knows no times: whoever keeps the books
    tells of them (`UseRecalled`).
    """
    running = [one for one in leases if one.phase in USING]
    for account in after.budgeted:
        was, budget = before.by_id.get(account.project.id), account.project.budget
        counted = was.project.budget if was is not None else None
        if budget is None:
            continue
        began_ms, _ = period_at(budget.period, after.now_ms)
        is_same = counted is not None and counted.period == budget.period
        amount = 0
        for one in running:
            old = before.by_id.get(one.project) if is_same else None
            was_inside = old is not None and was is not None and is_inside(old, was)
            sign = is_inside(after.of(one.project), account) - was_inside
            amount += sign * one.charged * (after.now_ms - max(one.since_ms, began_ms))
        if amount:
            account.spend(amount, after.now_ms)


def is_inside(account: Account, other: Account) -> bool:
    """Whether an account is this one, or inside it."""
    return any(at is other for at in account.path)
