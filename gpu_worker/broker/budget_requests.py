"""More of a budget: whose it is, what may be granted beyond it, and until when. Pure.

It is granted for the period that runs, at most: the next one has a budget of its own, and nothing is counted twice.
"""

from bulletin.codes import RefusalCode
from bulletin.ids import ProjectId
from bulletin.units import DAY_MS
from gpu_worker.broker.known_ids import CannotTell
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.policy.periods import period_at
from gpu_worker.scheduler.policy.projects import show_gpu_time

#: For so long it is asked for where nobody says: for all that is left of the period.
PERIOD_MS = {"day": DAY_MS, "week": 7 * DAY_MS, "month": 31 * DAY_MS}


def list_budgets(accounts: Accounts, project: ProjectId) -> list[Account]:
    """List whose budgets the cells of a project use up: its own, and those of what it is in."""
    return [at for at in accounts.of(project).path if at.project.budget is not None]


def find_budget(accounts: Accounts, project: ProjectId, named: str) -> Account | None:
    """Find the budget of this name, or without one that which leaves a project least; None where there is none.

    Raises CannotTell where cells of the project do not use up the budget that is named.
    """
    found = list_budgets(accounts, project)
    if not named:
        return min(found, key=lambda at: at.left(accounts.now_ms) or 0, default=None)
    for at in found:
        if at.project.id == named:
            return at
    there = ", ".join(repr(at.project.id) for at in found) or "none"
    sentence = f"Cells of project {project!r} use no budget of {named[:50]!r}. Of these they use one: {there}."
    raise CannotTell(RefusalCode.OVER_LIMIT, sentence)


def refuse_budget_for_all(accounts: Accounts, project: ProjectId) -> str:
    """Say why nobody could grant more of a project's budget; empty where somebody could."""
    holder = accounts.by_id.get(project)
    if holder is not None and holder.project.budget is not None:
        return ""
    return f"Project {project!r} has no budget that its cells could use up. Run your cell."


def refuse_budget_for_lead(accounts: Accounts, project: ProjectId, budget_ms: int, *, on_cpu: bool) -> str:
    """Say why a lead of the project cannot grant so much, and an admin could; empty where a lead can.

    Leads grant as much again as the budget has, in all that is in force at once.
    """
    holder = accounts.by_id.get(project)
    own = holder.project.budget if holder is not None else None
    if holder is None or own is None or budget_ms + holder.granted_ms <= own.gpu_ms:
        return ""
    whole, granted = show_gpu_time(own.gpu_ms, on_cpu=on_cpu), show_gpu_time(holder.granted_ms, on_cpu=on_cpu)
    beside = f", beside the {granted} that are granted already," if holder.granted_ms else ""
    return (
        f"{show_gpu_time(budget_ms, on_cpu=on_cpu)}{beside} are more than the budget of project {project!r} itself, "
        f"{whole}. An admin decides this."
    )


def last_ms(accounts: Accounts, project: ProjectId, now_ms: int) -> int:
    """Find when the period of a budget ends; now where there is no budget any more."""
    budget = accounts.of(project).project.budget
    return now_ms if budget is None else period_at(budget.period, now_ms)[1]
