"""What a scheduler must be told of the time before it was there, out of the ledger: use, spent budgets, nodes."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from bulletin.ids import AgentId, ProjectId, UserName
from bulletin.units import DAY_MS
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.metering import Stretch
from gpu_worker.broker.node_notes import AWAITED_MS, NODES, awaited
from gpu_worker.broker.usage import HourUse, paths
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.events import Event, OwnNodesAwaited, PastCredits, PastUse, UseRecalled, UseRefunded
from gpu_worker.scheduler.policy.periods import Period, period_at
from gpu_worker.scheduler.policy.projects import QoS, SchedulerSettings

#: What was used longer ago counts for less than a two-hundredth.
_REMEMBERED_MS = 8 * 7 * DAY_MS


def past(
    ledger: Ledger,
    settings: SchedulerSettings,
    balances: Iterable[PastCredits],
    now_ms: int,
    outer: Mapping[ProjectId, ProjectId] | None = None,
    owners: Mapping[AgentId, UserName] | None = None,
) -> Iterator[tuple[Event, int]]:
    """Yield each fact with its time: to be stepped in this order, before all else.

    `balances` are credits as the ledger has them (`Ledger.past_credits`). A CPU slot counts as a GPU does where the
    ledger knows of no GPU. `outer` is what projects were in that are no more: their use counts there.
    `owners` is which nodes users have brought for themselves: they are registered.
    """
    known = ledger.past_use(now_ms - _REMEMBERED_MS)
    has_gpu = any(use.kind == "gpu" for use in known)
    counted = [use for use in known if use.kind == "gpu" or not has_gpu]
    for until_ms, uses in groupby(counted, key=lambda use: use.until_ms):
        yield UseRecalled(tuple(_as_counted(uses, settings.qos, outer or {}))), min(until_ms, now_ms)
    spent = _spent(ledger, None, settings, now_ms, has_gpu=has_gpu)
    yield UseRecalled((), spent, tuple(balances)), now_ms
    for event in awaited(ledger.last_event(NODES), now_ms):
        yield event, now_ms
    if owners:
        yield OwnNodesAwaited(dict(owners), now_ms + AWAITED_MS), now_ms


def of_new_budgets(
    ledger: Ledger, before: SchedulerSettings, after: SchedulerSettings, now_ms: int
) -> UseRecalled | None:
    """Make a fact of what was spent of budgets in which it is not counted yet, and of those in which it no longer is.

    A budget is new, or has another period; or a project has come into one that has a budget, or has left it. It is of
    cells that have ended: those that run the scheduler knows. None where the ledger has nothing of them.
    """
    was, now = _Budgets(before), _Budgets(after)
    if all(was.of(one.id) == now.of(one.id) for one in (*before.projects, *after.projects)):
        return None
    spent = _spent(ledger, was, after, now_ms, has_gpu="gpu" in ledger.slot_kinds())
    return UseRecalled((), spent) if spent else None


class _Budgets:
    """In which budgets what is used counts, with their periods."""

    def __init__(self, settings: SchedulerSettings) -> None:
        self._parents = {one.id: one.parent for one in settings.projects}
        self.periods = {one.id: one.budget.period for one in settings.projects if one.budget is not None}

    def of(self, project: ProjectId) -> dict[ProjectId, Period]:
        """Return those of a project, and of all that it is in."""
        path = map(ProjectId, paths(project, self._parents))
        return {at: self.periods[at] for at in path if at in self.periods}


def _spent(
    ledger: Ledger, was: _Budgets | None, settings: SchedulerSettings, now_ms: int, *, has_gpu: bool
) -> dict[ProjectId, int]:
    """Sum what was charged in the present periods of budgets, as far as it did not count there before.

    What counted there, and does not any more, is below 0.
    """
    spent: dict[ProjectId, int] = {}
    now = _Budgets(settings)
    for period in dict.fromkeys(now.periods.values()):
        since_ms, _ = period_at(period, now_ms)
        for (project, kind), amount in ledger.charged(since_ms, now_ms).items():
            if kind != "gpu" and has_gpu:
                continue
            before = was.of(project) if was is not None else {}
            after = now.of(project)
            for at in before.keys() | after.keys():
                if now.periods.get(at) == period:
                    sign = (after.get(at) == period) - (before.get(at) == period)
                    spent[at] = spent.get(at, 0) + sign * amount
    return {at: amount for at, amount in spent.items() if amount}


def _as_counted(
    uses: Iterable[HourUse], classes: Iterable[QoS], outer: Mapping[ProjectId, ProjectId]
) -> Iterator[PastUse]:
    percents = {qos.name: qos.usage_percent for qos in classes}
    for use in uses:
        *_, project = map(ProjectId, paths(use.project, outer))
        yield PastUse(project, use.user, use.amount * percents.get(use.qos, 100) // 100)


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
