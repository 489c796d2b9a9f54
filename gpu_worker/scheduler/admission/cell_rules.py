"""What one cell of a project may ask for: its class of service, how many GPUs, and how long it may run.

What a project does not say is said by the one that it is in. So a department sets it once, and one of its labs may have
another rule. (Slurm inherits QOS, MaxTRESPerJob and MaxWall along its associations in the same way.)
"""

from typing import NamedTuple

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.actions import QoSNotAllowed, TooLongForProject, TooManyPerCell
from gpu_worker.scheduler.events import RequestSubmitted
from gpu_worker.scheduler.exclusive_reasons import NotExclusive
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.resources import Wants
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.policy.projects import QoS


class CellRules(NamedTuple):
    """The rules for the cells of one project. None is no rule."""

    qos: tuple[str, ...] | None
    default_qos: str | None
    gpus: int | None
    walltime_ms: int | None


def cell_rules(account: Account) -> CellRules:
    """Find the rules for the cells of a project: its own, and where it has none those of what it is in."""
    projects = [at.project for at in account.path]
    return CellRules(
        next((one.qos for one in projects if one.qos is not None), None),
        next((one.default_qos for one in projects if one.default_qos is not None), None),
        next((one.gpus_per_cell for one in projects if one.gpus_per_cell is not None), None),
        next((one.walltime_ms for one in projects if one.walltime_ms is not None), None),
    )


def choose_qos(accounts: Accounts, project: ProjectId, usual: str) -> str:
    """Choose the class of service of a cell that names none: the project's default, or the usual one where it may be.

    Else the first that the project may use.
    """
    rules = cell_rules(accounts.of(project))
    if rules.default_qos is not None:
        return rules.default_qos
    return usual if rules.qos is None or usual in rules.qos else rules.qos[0]


def longest_walltime_ms(accounts: Accounts, project: ProjectId, qos: QoS) -> int:
    """Find how long a cell may run at most, which is what it gets if it does not ask."""
    own_ms = cell_rules(accounts.of(project)).walltime_ms
    return qos.walltime_ms if own_ms is None else min(own_ms, qos.walltime_ms)


def most_walltime_ms(accounts: Accounts, project: ProjectId, user: UserName, qos: str) -> int:
    """Find how long a cell of a user may run at most if it asks, by its class of service or by an allowance."""
    return max(accounts.qos[qos].walltime_ms, accounts.allowances.walltime_ms(accounts.of(project).project, user))


def walltime_of(accounts: Accounts, event: RequestSubmitted) -> int:
    """Find how long the cell of a request may run: what it asks for, or else all that it may."""
    if event.walltime_ms is not None:
        return event.walltime_ms
    return longest_walltime_ms(accounts, event.project, accounts.qos[event.qos])


def known_qos(accounts: Accounts, project: ProjectId) -> tuple[str, ...]:
    """List the classes of service that there are and cells of a project may use."""
    rules = cell_rules(accounts.of(project))
    return tuple(name for name in accounts.qos if rules.qos is None or name in rules.qos)


def forbidden(
    accounts: Accounts, project: ProjectId, user: UserName, qos: QoS, shape: Shape, walltime_ms: int
) -> QoSNotAllowed | NotExclusive | TooLongForProject | TooManyPerCell | None:
    """Refused if the rules of the project, or its class of service, never let such a cell run, nor an allowance."""
    account = accounts.of(project)
    rules, on_cpu = cell_rules(account), shape.lane == "cpu"
    allowed_ms = accounts.allowances.walltime_ms(account.project, user)
    allowed = accounts.allowances.gpus(account.project, user)
    if rules.qos is not None and qos.name not in rules.qos:
        return QoSNotAllowed(project, qos.name, known_qos(accounts, project))
    may_be_alone = qos.can_be_exclusive or accounts.allowances.is_exclusive(account.project, user, shape.need)
    if shape.wants.is_exclusive and not may_be_alone:
        others = known_qos(accounts, project)
        return NotExclusive(qos.name, tuple(name for name in others if accounts.qos[name].can_be_exclusive), shape.need)
    if rules.walltime_ms is not None and walltime_ms > max(rules.walltime_ms, allowed_ms):
        own_ms = rules.walltime_ms
        return TooLongForProject(project, walltime_ms, max(own_ms, allowed_ms), allowed_ms > own_ms)
    if shape.cost and rules.gpus is not None and shape.need > max(rules.gpus, allowed):
        return TooManyPerCell(shape.need, max(rules.gpus, allowed), project, "", on_cpu, allowed > rules.gpus)
    if shape.cost and qos.gpus_per_cell is not None and shape.need > max(qos.gpus_per_cell, allowed):
        most = max(qos.gpus_per_cell, allowed)
        return TooManyPerCell(shape.need, most, None, qos.name, on_cpu, allowed > qos.gpus_per_cell)
    return None


def is_next_forbidden(accounts: Accounts, lease: Lease) -> bool:
    """Whether the next cell of a hot lease is more than the rules allow, and whatever is allowed to its user now.

    Of a class of service that is no more nobody knows what it allows.
    """
    qos, walltime_ms = accounts.qos.get(lease.qos), lease.walltime_ms
    if qos is None:
        return False
    if walltime_ms > most_walltime_ms(accounts, lease.project, lease.user, lease.qos):
        return True
    wants = Wants(is_exclusive=lease.is_exclusive)
    shape = Shape(lease.lane, len(lease.slots), lease.cost, lease.qos, walltime_ms, wants)
    return forbidden(accounts, lease.project, lease.user, qos, shape, walltime_ms) is not None
