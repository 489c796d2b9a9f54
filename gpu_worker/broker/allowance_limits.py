"""What may be granted to a user of a project beyond its rules: by leads, by admins, and at once by the project's rules.

Nobody has more than the project itself may have. A lead gives no longer cells than some class of service of the
project does, and none that the project which theirs is in forbids.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from bulletin.ids import ProjectId
from bulletin.units import DAY_MS, show_duration
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.admission.cell_rules import cell_rules, known_qos, longest_walltime_ms
from gpu_worker.scheduler.admission.refusals import no_such_node
from gpu_worker.scheduler.policy.projects import GPU_MILLI, Project, show_gpus, slot_word
from gpu_worker.scheduler.state import State

#: For so long something is granted at most, and a cell runs at most.
LEAD_FOR_MS, ADMIN_FOR_MS, LONGEST_CELL_MS = 31 * DAY_MS, 366 * DAY_MS, 30 * DAY_MS
#: Where nobody says for how long, and how often something is granted at once.
USUAL_FOR_MS, USUAL_PER_WEEK = DAY_MS, 3


class AllowanceTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for, and for how long."""

    walltime_ms: int | None
    gpus: int | None
    for_ms: int
    is_exclusive: bool = False  #: as a node that nobody else is on
    budget_ms: int | None = None  #: beyond a budget, GPUs times milliseconds


def refuse_for_all(accounts: Accounts, project: ProjectId, wanted: AllowanceTerms, *, on_cpu: bool = False) -> str:
    """Say why nobody could grant this; empty where somebody could."""
    if wanted.walltime_ms is not None and wanted.walltime_ms > LONGEST_CELL_MS:
        return f"No cell runs for longer than {show_duration(LONGEST_CELL_MS)}. Ask for less with --time."
    if wanted.for_ms > ADMIN_FOR_MS:
        return f"Nothing is granted for more than {ADMIN_FOR_MS // DAY_MS} days. Ask for less with --for."
    gpus = wanted.gpus or 0
    for at in accounts.of(project).path:
        if at.highest_limit is not None and gpus * GPU_MILLI > at.highest_limit:
            most = show_gpus(at.highest_limit, on_cpu=on_cpu)
            return (
                f"Project {at.project.id!r} may use {most} at most, and nobody in it can have {gpus}. "
                "Ask for fewer with --gpus, or an admin for a higher limit of the project."
            )
    return ""


def refuse_size(state: State, project: ProjectId, wanted: AllowanceTerms, *, on_cpu: bool = False) -> str:
    """Say that no node has as many GPUs, so that no cell could ever use what is asked for; empty where one could.

    What only a user's limit forbids may be for several cells at once, on several nodes.
    """
    catalog, gpus = state.slot_catalog, wanted.gpus or 0
    if catalog.awaited:
        return ""
    if wanted.is_exclusive:
        never = no_such_node(state, gpus)
        return "" if never is None else f"Nobody can have this: {never}"
    largest = catalog.largest[catalog.lane_for(gpus)]
    limit = state.accounts.of(project).project.user_limit_milli
    if not largest or gpus <= largest or (limit is not None and limit < gpus * GPU_MILLI):
        return ""
    most = show_gpus(largest * GPU_MILLI, on_cpu=on_cpu)
    word = slot_word(on_cpu=on_cpu)
    return (
        f"A cell has all its {word}s on one node, and the largest has {most}. Ask for {largest} or fewer with --gpus."
    )


def refuse_what_all_have(
    accounts: Accounts, project: ProjectId, wanted: AllowanceTerms, *, on_cpu: bool = False
) -> str:
    """Say that everybody in the project has all of this already, in each class of service; empty where not."""
    account = accounts.of(project)
    classes = [accounts.qos[name] for name in known_qos(accounts, project)]
    had = []
    if wanted.is_exclusive:
        if not all(one.can_be_exclusive for one in classes):
            return ""
        had.append("a node for themselves")
    if wanted.walltime_ms is not None:
        least_ms = min((longest_walltime_ms(accounts, project, one) for one in classes), default=0)
        if wanted.walltime_ms > least_ms:
            return ""
        had.append(f"cells of up to {show_duration(least_ms)}")
    if wanted.gpus is not None:
        limits = [cell_rules(account).gpus, *(one.gpus_per_cell for one in classes)]
        limits += [
            None if at.project.user_limit_milli is None else at.project.user_limit_milli // GPU_MILLI
            for at in account.path
        ]
        least = min((one for one in limits if one is not None), default=None)
        if least is None:
            had.append(f"{show_gpus(wanted.gpus * GPU_MILLI, on_cpu=on_cpu)} and more")
        elif wanted.gpus > least:
            return ""
        else:
            had.append(show_gpus(least * GPU_MILLI, on_cpu=on_cpu))
    return f"Everybody in project {project!r} may have {' and '.join(had)} without asking. Run your cell."


def refuse_for_lead(accounts: Accounts, project: ProjectId, wanted: AllowanceTerms, *, on_cpu: bool = False) -> str:
    """Say why a lead of the project cannot grant this, and an admin could; empty where a lead can."""
    account = accounts.of(project)
    around = cell_rules(account.parent) if account.parent is not None else None
    classes = [accounts.qos[name] for name in known_qos(accounts, project)]
    if wanted.for_ms > LEAD_FOR_MS:
        return (
            f"A lead grants something for {LEAD_FOR_MS // DAY_MS} days at most. Choose a shorter time, or ask an admin."
        )
    if wanted.walltime_ms is not None:
        most_ms = max((one.walltime_ms for one in classes), default=0)
        if around is not None and around.walltime_ms is not None:
            most_ms = min(most_ms, around.walltime_ms)
        if wanted.walltime_ms > most_ms:
            return (
                f"Cells of {show_duration(wanted.walltime_ms)} are more than the {show_duration(most_ms)} that "
                f"project {project!r} has from those around it. An admin decides this."
            )
    if wanted.gpus is not None:
        limits = [one.gpus_per_cell for one in classes]
        most = None if None in limits or not limits else max(one for one in limits if one is not None)
        if around is not None and around.gpus is not None:
            most = around.gpus if most is None else min(most, around.gpus)
        if most is not None and wanted.gpus > most:
            return (
                f"{show_gpus(wanted.gpus * GPU_MILLI, on_cpu=on_cpu)} for a cell are more than the {most} that "
                f"project {project!r} has from those around it. An admin decides this."
            )
    return ""


def usual_for_ms(accounts: Accounts, project: ProjectId) -> int:
    """Find for how long something is granted where nobody says."""
    found = _rule(accounts.of(project), "auto_grant_for_ms")
    return USUAL_FOR_MS if found is None else int(found)


def is_granted_at_once(
    accounts: Accounts,
    project: ProjectId,
    wanted: AllowanceTerms,
    now_ms: int,
    granted_at_ms: Iterable[int],
    taken_at_ms: Iterable[int],
) -> bool:
    """Tell whether the project's rules grant this by themselves.

    `granted_at_ms`: when they did so for this user. `taken_at_ms`: when somebody else ended what the user had, who
    would have it again at once: for a week a person decides.
    """
    account = accounts.of(project)
    if wanted.is_exclusive or wanted.budget_ms is not None:
        return False  # a person weighs what it takes from others
    for amount, field in ((wanted.walltime_ms, "auto_grant_walltime_ms"), (wanted.gpus, "auto_grant_gpus")):
        most = _rule(account, field)
        if amount is not None and (most is None or amount > most):
            return False
    if wanted.for_ms > usual_for_ms(accounts, project) or refuse_for_lead(accounts, project, wanted):
        return False
    per_week, week_ago_ms = _rule(account, "auto_grants_per_week"), now_ms - 7 * DAY_MS
    if any(at_ms > week_ago_ms for at_ms in taken_at_ms):
        return False
    recent = sum(1 for at_ms in granted_at_ms if at_ms > week_ago_ms)
    return recent < (USUAL_PER_WEEK if per_week is None else per_week)


def named_leads(account: Account) -> tuple[str, ...]:
    """List whom the quota file names as leads of a project, and of what it is in."""
    return tuple(dict.fromkeys(name for at in account.path for name in at.project.leads))


def _rule(account: Account, field: str) -> Any:
    projects: list[Project] = [at.project for at in account.path]
    return next((getattr(one, field) for one in projects if getattr(one, field) is not None), None)
