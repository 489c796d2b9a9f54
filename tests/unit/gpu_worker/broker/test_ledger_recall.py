"""A scheduler that was told of the past by the ledger decides as the one that lived through it."""

import asyncio
from pathlib import Path

from bulletin.codes import CellOutcome
from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from bulletin.wire import console
from gpu_worker.broker import recall
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.metering import Stretch
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, Budget, Project, QoS, SchedulerSettings
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, BrokerParts
from tests.unit.gpu_worker.broker.ledger_records import record

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = 20_000 * DAY_MS + 10 * HOUR_MS
ML, BIO = ProjectId("ml"), ProjectId("bio")
HALF = QoS(name="half", priority=1, walltime_ms=HOUR_MS, queued_per_user=9, usage_percent=50)


def cell(name: str, ended_at_ms: int, hours: int, **changes: object) -> object:
    held_ms = hours * HOUR_MS
    times = {"started_at_ms": ended_at_ms - held_ms, "ended_at_ms": ended_at_ms, "held_ms": held_ms, "ran_ms": held_ms}
    return record(name, slots=("gpu-0",), **times, **changes)


def told(ledger: Ledger, *projects: Project) -> Scheduler:
    settings = SchedulerSettings(qos=(*DEFAULT_QOS, HALF), projects=projects)
    scheduler = Scheduler(settings)
    for event, at_ms in recall.past(ledger, settings, ledger.past_credits(), NOW_MS):
        assert scheduler.step(event, at_ms) == []
    return scheduler


def used(scheduler: Scheduler, project: ProjectId) -> int:
    """In thousandths of a GPU-hour, as it counts now."""
    accounts = scheduler.state.accounts
    return accounts.of(project).history.at(NOW_MS - (accounts.began_ms or 0)) // HOUR_MS


def test_past_use_counts_for_half_after_a_week_and_as_its_qos_says(ledger: Ledger) -> None:
    cells = [
        cell("c1", NOW_MS - 7 * DAY_MS, 8),
        cell("c2", NOW_MS - HOUR_MS, 2, qos="half", project="bio"),
        cell(
            "c3", NOW_MS - HOUR_MS, 4, outcome=CellOutcome.RECLAIMED, refunded_ms=3 * HOUR_MS, project="bio", user="bob"
        ),
        cell("c4", NOW_MS - 60 * DAY_MS, 100, project="old"),
    ]
    ledger.record(cells, at_ms=0)  # type: ignore[arg-type]
    scheduler = told(ledger)
    assert abs(used(scheduler, ML) - 4_000) < 40  # by whole hours
    assert abs(used(scheduler, BIO) - 2_000) < 20
    assert used(scheduler, ProjectId("old")) == 0
    users = scheduler.state.accounts.of(BIO).users
    assert users[UserName("ann")].history.amount == users[UserName("bob")].history.amount > 0


def test_cpu_slots_count_where_the_pool_has_no_gpu(ledger: Ledger) -> None:
    ledger.record([cell("c1", NOW_MS - HOUR_MS, 2, kind="cpu")], at_ms=0)  # type: ignore[list-item]
    assert used(told(ledger), ML) > 1_900
    ledger.record([cell("c2", NOW_MS - HOUR_MS, 2, project="bio")], at_ms=0)  # type: ignore[list-item]
    assert used(told(ledger), ML) == 0


def test_a_budget_has_what_was_spent_in_its_period_inside_the_project_too(ledger: Ledger) -> None:
    midnight_ms = NOW_MS - 10 * HOUR_MS
    cells = [
        cell("c1", midnight_ms + HOUR_MS, 2),  # half of it was yesterday
        cell("c2", midnight_ms + 2 * HOUR_MS, 1, project="bio"),
        cell("c3", midnight_ms - HOUR_MS, 5),
        cell("c4", midnight_ms + 3 * HOUR_MS, 1, outcome=CellOutcome.RECLAIMED, refunded_ms=HOUR_MS),
        cell(
            "c5", midnight_ms + HOUR_MS, 8, outcome=CellOutcome.RECLAIMED, refunded_ms=8 * HOUR_MS
        ),  # this day pays back its own
        cell("c6", midnight_ms + 2 * HOUR_MS, 4, refunded_ms=HOUR_MS),  # of what is in this day a quarter, too
    ]
    ledger.record(cells, at_ms=0)  # type: ignore[arg-type]
    day, week = Budget(10 * HOUR_MS, "day"), Budget(100 * HOUR_MS, "week")
    scheduler = told(
        ledger, Project(id=ML, budget=day), Project(id=BIO, parent=ML), Project(id=ProjectId("x"), budget=week)
    )
    accounts = scheduler.state.accounts
    assert accounts.of(ML).left(NOW_MS) == 1000 * 13 * HOUR_MS // 2
    assert accounts.of(ProjectId("x")).left(NOW_MS) == 1000 * 100 * HOUR_MS


def test_a_budget_that_is_written_into_the_file_has_what_was_spent_as_one_that_was_always_there(
    broker: BrokerParts, tmp_path: Path
) -> None:
    def left(project: ProjectId) -> int:
        asyncio.run(broker.follower.load(broker.shell))
        (row,) = (row for row in broker.ask(ADMIN, console.AskProjects()).projects if row.project == project)
        assert row.budget_left_ms is not None
        return row.budget_left_ms // HOUR_MS

    broker.now_ms = NOW_MS
    monday_ms = NOW_MS - NOW_MS % DAY_MS - (NOW_MS // DAY_MS + 3) % 7 * DAY_MS
    cells = [cell("c1", NOW_MS - HOUR_MS, 3), cell("c2", monday_ms + 5 * HOUR_MS, 4), cell("c3", monday_ms, 9)]
    broker.ledger.record(cells, at_ms=0)  # type: ignore[arg-type]
    file = tmp_path / "quotas.toml"
    file.write_text(f"[projects.dep]\n[projects.{ML}]\nparent = 'dep'\n")
    broker.use_quota_file(file)
    lefts = []
    for budget in ("20 GPU-hours per week", "100 GPU-hours per day", "20 GPU-hours per week", "30 GPU-hours per week"):
        file.write_text(f"[projects.dep]\nbudget = '{budget}'\n[projects.{ML}]\nparent = 'dep'\n")
        lefts.append(left(ProjectId("dep")))
    assert lefts == [20 - 7, 100 - 3, 20 - 7, 30 - 7]
    file.write_text(f"[projects.dep]\n[projects.{ML}]\nparent = 'dep'\nbudget = '5 GPU-hours per day'\n")
    assert left(ML) == 5 - 3


def test_a_budget_has_what_was_spent_by_a_project_that_comes_into_it_for_as_long_as_it_is_there(
    broker: BrokerParts, tmp_path: Path
) -> None:
    def left() -> int:
        asyncio.run(broker.follower.load(broker.shell))
        (row,) = (row for row in broker.ask(ADMIN, console.AskProjects()).projects if row.project == "dep")
        assert row.budget_left_ms is not None
        return row.budget_left_ms // HOUR_MS

    broker.now_ms = NOW_MS
    cells = [cell("c1", NOW_MS - HOUR_MS, 3), cell("c2", NOW_MS - HOUR_MS, 2, project="bio")]
    broker.ledger.record(cells, at_ms=0)  # type: ignore[arg-type]
    dep, out, inside = ("[projects.dep]\nbudget = '20 GPU-hours per day'\n", "[projects.ml]\n", "parent = 'dep'\n")
    file = tmp_path / "quotas.toml"
    file.write_text(dep + out + "[projects.bio]\n" + inside)
    broker.use_quota_file(file)
    for event, _ in recall.past(broker.ledger, broker.follower.settings, (), NOW_MS):
        broker.step(event)
    lefts = []
    for text in (out, out + inside, out, out + inside):
        file.write_text(dep + text + "[projects.bio]\n" + inside)
        lefts.append(left())
    assert lefts == [20 - 2, 20 - 5, 20 - 2, 20 - 5]


def test_the_budget_around_a_group_has_what_the_group_spent_before_its_rule_held(
    broker: BrokerParts, tmp_path: Path
) -> None:
    """As at its first cell after an upgrade, or where the last broker was killed before it wrote the group down."""
    broker.now_ms = NOW_MS
    broker.ledger.record([cell("c1", NOW_MS - HOUR_MS, 3, project="course-ml")], at_ms=0)  # type: ignore[list-item]
    file = tmp_path / "quotas.toml"
    file.write_text(
        "[projects.teaching]\nbudget = '20 GPU-hours per day'\n"
        "[group_rules.courses]\ngroups = ['course-*']\nparent = 'teaching'\n"
    )
    broker.use_quota_file(file)
    person = Person(user=UserName("ml"), groups=("course-ml",))
    assert asyncio.run(broker.groups.learn(person, person.project)) is None
    (row,) = (row for row in broker.ask(ADMIN, console.AskProjects()).projects if row.project == "teaching")
    assert row.budget_left_ms == (20 - 3) * HOUR_MS


def test_what_comes_to_light_late_is_cut_at_the_period_for_budgets_only() -> None:
    day = Project(id=ML, budget=Budget(HOUR_MS, "day"))
    accounts = Accounts([day, Project(id=BIO, parent=ML)], [HALF])
    midnight_ms = 20_000 * DAY_MS
    late = Stretch(BIO, UserName("ann"), "half", 2000, midnight_ms - 700, midnight_ms + 300)
    event = recall.unseen([late, late], accounts, midnight_ms + 400)
    assert [use.amount for use in event.uses] == [1_000_000, 1_000_000]
    assert event.spent == {ML: 2 * 600_000}


def test_a_refund_is_cut_at_the_period_for_budgets_only_and_counts_as_its_qos_did() -> None:
    accounts = Accounts([Project(id=ML, budget=Budget(HOUR_MS, "day")), Project(id=BIO, parent=ML)], [HALF])
    midnight_ms = 20_000 * DAY_MS
    lost = Stretch(BIO, UserName("ann"), "half", 2000, midnight_ms - 700, midnight_ms + 300)
    event = recall.refunded([lost], accounts, midnight_ms + 400)
    assert event == ev.UseRefunded((ev.PastUse(BIO, UserName("ann"), 1_000_000),), {ML: 600_000})


def test_who_used_more_before_the_restart_comes_later(ledger: Ledger) -> None:
    ledger.record([cell("c1", NOW_MS - HOUR_MS, 1, user="ann", project="ml")], at_ms=0)  # type: ignore[list-item]
    scheduler = told(ledger)
    slot = ev.Slot(SlotId("gpu-0"), "gpu", "model", 1)
    scheduler.step(ev.AgentJoined(AgentId("a"), "a", (slot,)), NOW_MS)
    for name in ("eve", "ann", "bob"):
        asked = ev.RequestSubmitted(
            RequestId(name), LeaseId(name), SessionId(name), UserName(name), ML, "interactive", 1
        )
        scheduler.step(asked, NOW_MS)
    scheduler.step(ev.CellStarted(LeaseId("eve"), CellId("c")), NOW_MS)
    (granted,) = scheduler.step(ev.LeaseEnded(LeaseId("eve")), NOW_MS + 1)
    assert granted.lease == "bob"  # type: ignore[union-attr]
