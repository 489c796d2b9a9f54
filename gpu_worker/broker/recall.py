"""What a scheduler must be told of the time before it was there: past use and spent budgets, out of the ledger."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from bulletin.ids import ProjectId
from bulletin.units import DAY_MS
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.metering import Stretch
from gpu_worker.broker.usage import HourUse, paths
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.events import Event, PastCredits, PastUse, UseRecalled, UseRefunded
from gpu_worker.scheduler.policy.periods import Period, period_at
from gpu_worker.scheduler.policy.projects import QoS, SchedulerSettings

#: What was used longer ago counts for less than a two-hundredth.
_REMEMBERED_MS = 8 * 7 * DAY_MS


def past(
    ledger: Ledger, settings: SchedulerSettings, balances: Iterable[PastCredits], now_ms: int
) -> Iterator[tuple[Event, int]]:
    """Yield each fact with its time: to be stepped in this order, before all else.

    `balances` are credits as the ledger has them (`Ledger.past_credits`). A CPU slot counts as a GPU does where the
    ledger knows of no GPU.
    """
    known = ledger.past_use(now_ms - _REMEMBERED_MS)
    has_gpu = any(use.kind == "gpu" for use in known)
    counted = [use for use in known if use.kind == "gpu" or not has_gpu]
    for until_ms, uses in groupby(counted, key=lambda use: use.until_ms):
        yield UseRecalled(tuple(_as_counted(uses, settings.qos))), min(until_ms, now_ms)
    spent = _spent(ledger, settings, _periods(settings), now_ms, has_gpu=has_gpu)
    yield UseRecalled((), spent, tuple(balances)), now_ms


def of_new_budgets(
    ledger: Ledger, before: SchedulerSettings, after: SchedulerSettings, now_ms: int
) -> UseRecalled | None:
    """Make a fact of what was spent of budgets that are not counted yet: new ones, and those that have another period.

    It is of cells that have ended: those that run the scheduler knows. None where the ledger has nothing of them.
    """
    counted = _periods(before)
    new = {name: period for name, period in _periods(after).items() if counted.get(name) != period}
    if not new:
        return None
    spent = _spent(ledger, after, new, now_ms, has_gpu="gpu" in ledger.slot_kinds())
    return UseRecalled((), spent) if spent else None


def _periods(settings: SchedulerSettings) -> dict[ProjectId, Period]:
    return {one.id: one.budget.period for one in settings.projects if one.budget is not None}


def _spent(
    ledger: Ledger, settings: SchedulerSettings, periods: Mapping[ProjectId, Period], now_ms: int, *, has_gpu: bool
) -> dict[ProjectId, int]:
    """Sum what these projects, with all that is inside them, were charged in the present one of their periods."""
    spent: dict[ProjectId, int] = {}
    parents = {project.id: project.parent for project in settings.projects}
    for period in dict.fromkeys(periods.values()):
        since_ms, _ = period_at(period, now_ms)
        for (project, kind), amount in ledger.charged(since_ms, now_ms).items():
            for of in map(ProjectId, paths(project, parents)):
                if periods.get(of) == period and (kind == "gpu" or not has_gpu):
                    spent[of] = spent.get(of, 0) + amount
    return spent


def _as_counted(uses: Iterable[HourUse], classes: Iterable[QoS]) -> Iterator[PastUse]:
    percents = {qos.name: qos.usage_percent for qos in classes}
    for use in uses:
        yield PastUse(use.project, use.user, use.amount * percents.get(use.qos, 100) // 100)


def unseen(stretches: Iterable[Stretch], accounts: Accounts, now_ms: int) -> UseRecalled:
    """Make what came to light only now a fact of now."""
    return UseRecalled(*_counted(stretches, accounts, now_ms))


def refunded(stretches: Iterable[Stretch], accounts: Accounts, now_ms: int) -> UseRefunded:
    """Take back what was counted, and is not to count. Budgets of periods that are over stay as they were."""
    return UseRefunded(*_counted(stretches, accounts, now_ms))


def _counted(
    stretches: Iterable[Stretch], accounts: Accounts, now_ms: int
) -> tuple[tuple[PastUse, ...], dict[ProjectId, int]]:
    uses: list[PastUse] = []
    spent: dict[ProjectId, int] = {}
    for one in stretches:
        percent = accounts.qos[one.qos].usage_percent if one.qos in accounts.qos else 100
        uses.append(PastUse(one.project, one.user, one.charged * (one.until_ms - one.from_ms) * percent // 100))
        for at in accounts.of(one.project).path:
            if at.project.budget is not None:
                since_ms = max(one.from_ms, period_at(at.project.budget.period, now_ms)[0])
                amount = one.charged * max(0, one.until_ms - since_ms)
                spent[at.project.id] = spent.get(at.project.id, 0) + amount
    return tuple(uses), spent
