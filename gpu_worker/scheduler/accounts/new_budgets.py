"""What new settings mean for budgets that were not counted before: what runs has spent some of them already."""

from collections.abc import Iterable

from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.leases.leases import USING, Lease
from gpu_worker.scheduler.policy.periods import period_at


def count_running(before: Accounts, after: Accounts, leases: Iterable[Lease]) -> None:
    """Spend of budgets that are new, or have another period, what cells that go on have used since it began.

    Of cells that have ended the scheduler knows no times: whoever keeps the books tells of them (`UseRecalled`).
    """
    leases = tuple(leases)
    for account in after.budgeted:
        was, budget = before.by_id.get(account.project.id), account.project.budget
        counted = was.project.budget if was is not None else None
        if budget is None or (counted is not None and counted.period == budget.period):
            continue
        began_ms, _ = period_at(budget.period, after.now_ms)
        running = [one for one in leases if one.phase in USING and is_inside(after.of(one.project), account)]
        account.spend(sum(one.charged * (after.now_ms - max(one.since_ms, began_ms)) for one in running), after.now_ms)


def is_inside(account: Account, other: Account) -> bool:
    """Whether an account is this one, or inside it."""
    return any(at is other for at in account.path)
