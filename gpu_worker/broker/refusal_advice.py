"""How somebody asks for more whose cell was refused, in the words of a notebook, and what groups like theirs have."""

import shlex

from bulletin.ids import ProjectId
from bulletin.units import HOUR_MS, spell_duration
from gpu_worker.broker.allowance_limits import LONGEST_CELL_MS
from gpu_worker.quotas.group_rule_settings import describe_terms
from gpu_worker.scheduler import actions
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.exclusive_reasons import NotExclusive
from gpu_worker.scheduler.policy.projects import GPU_MILLI


def how_to_ask(reason: actions.Reason, project: ProjectId | None, *, has_budgets: bool = False) -> str:
    """Say with which line a user may ask for what was refused; empty where asking would not help.

    `project` is the one that the cell named; None is the user's usual one. Where several budgets hold it
    (`has_budgets`), the line names the one that the cell is too large for: another may leave less.
    """
    match reason:
        case actions.WalltimeTooLong(walltime_ms=walltime_ms) | actions.TooLongForProject(walltime_ms=walltime_ms):
            if walltime_ms > LONGEST_CELL_MS:
                return ""
            what = f"--time {spell_duration(walltime_ms)}"
        case actions.OverBudget():
            what = f"--budget {missing_hours(reason)}"
            what += f" --budget-of {shlex.quote(reason.project)}" if has_budgets else ""
        case NotExclusive(gpus=gpus):
            what = f"--exclusive --gpus {gpus}"
        case actions.TooManyPerCell(gpus=gpus):
            what = f"--gpus {gpus}"
        case actions.OverLimit(of_user=True, cost_milli=cost):
            what = f"--gpus {-(-cost // GPU_MILLI)}"
        case _:
            return ""
    where = f" --project {shlex.quote(project)}" if project else ""
    return f' To ask for it: `%gpu request {what}{where} --why "..."`.'


def missing_hours(reason: actions.OverBudget) -> int:
    """Find how many GPU-hours a budget lacks for the whole of a cell, rounded up."""
    asked_ms = (reason.charged_milli or reason.cost_milli) * reason.walltime_ms // GPU_MILLI
    return max(1, -(-(asked_ms - reason.budget_ms) // HOUR_MS))


def what_groups_have(reason: actions.Reason, accounts: Accounts) -> str:
    """Say what a project has that the quota file does not name, where it was a limit of its own; else nothing."""
    match reason:
        case (
            actions.OverLimit(project=name)
            | actions.OverBudget(project=name)
            | actions.NeverInQuota(project=name)
            | actions.QoSNotAllowed(project=name)
            | actions.TooLongForProject(project=name)
            | actions.TooManyPerCell(project=str() as name)
        ):
            account = accounts.by_id.get(name)
        case _:
            return ""
    if account is None or not account.project.rule:
        return ""
    terms = describe_terms(account.project) or "nothing of its own"
    return (
        f" {name!r} is a group that the rule {account.project.rule!r} is for: each of them has {terms}, and no "
        "guarantee. For more than that an admin names it in the quota file."
    )
