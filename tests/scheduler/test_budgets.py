"""Budgets: what is spent of them, what a cell may still take, and what a ledger recalls or refunds."""

import pytest

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.projects import Budget
from tests.scheduler.bench import MINUTE, evicted, granted, project, refused, slots
from tests.scheduler.quota_bench import Quotas, changed


def test_what_a_ledger_recalls_of_a_budget_is_spent() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "day")))
    pool.join("a", slots(3))
    pool.say(ev.UseRecalled((), {ProjectId("club"): 1000 * 40 * MINUTE}))
    pool.busy("club.ann", walltime_ms=20 * MINUTE)
    assert pool.wants("club.bob") == []
    assert pool.why("club.bob/1").reason == (
        "beside what runs less than a minute is left of the 1 GPU-hour of this day in project 'club'; "
        "the next one begins in 24 h, and `%gpu request --budget HOURS` asks for more of this one"
    )
    pool.replay()


def test_what_is_refunded_may_be_spent_at_once_and_is_no_past_use() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "day")), project("choir", "club"))
    pool.join("a", slots(1))
    pool.busy("choir.ann")
    pool.later(60 * MINUTE)
    pool.free("choir.ann:1")
    assert pool.wants("choir.bob") == []
    used = ev.PastUse(ProjectId("choir"), UserName("ann"), 1000 * 45 * MINUTE)
    refund = ev.UseRefunded((used,), {ProjectId("club"): 1000 * 45 * MINUTE})
    assert granted(pool.say(refund)) == ["choir.bob:1"]
    pool.start("choir.bob:1")
    accounts = pool.scheduler.state.accounts
    users = accounts.of(ProjectId("choir")).users
    for history in (users[UserName("ann")].history, *(accounts.of(ProjectId(p)).history for p in ("choir", "club"))):
        assert history.at(pool.now_ms) // (1000 * MINUTE) == 15
    pool.free("choir.bob:1")
    pool.later(15 * MINUTE)
    assert accounts.of(ProjectId("club")).left(pool.now_ms) == 1000 * 45 * MINUTE
    pool.replay()


def test_no_more_is_refunded_than_was_used() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "day")))
    pool.join("a", slots(1))
    pool.busy("club.ann")
    pool.later(10 * MINUTE)
    pool.free("club.ann:1")
    pool.later(24 * 60 * MINUTE)
    pool.busy("club.bob")
    pool.later(MINUTE)
    pool.free("club.bob:1")
    lost = ev.PastUse(ProjectId("club"), UserName("ann"), 1000 * 20 * MINUTE)
    pool.say(ev.UseRefunded((lost,), {ProjectId("club"): 1000 * 20 * MINUTE}))
    club = pool.scheduler.state.accounts.of(ProjectId("club"))
    assert club.left(pool.now_ms) == 1000 * 60 * MINUTE
    assert club.users[UserName("ann")].history.amount == 0
    assert club.history.amount == club.users[UserName("bob")].history.amount > 0
    pool.replay()


def test_a_budget_that_is_spent_waits_for_the_next_period() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "day")))
    pool.join("a", slots(3))
    pool.busy("club.ann", "club.bob")
    pool.later(30 * MINUTE)
    assert pool.wants("club.cem") == []
    assert pool.why("club.cem/1").reason == (
        "project 'club' has used the 1 GPU-hour of this day; the next one begins in 23 h, "
        "and `%gpu request --budget HOURS` asks for more of this one"
    )
    assert evicted(pool.end("club.ann:1")) == ["club.ann:1"]
    assert pool.free("club.ann:1") == []
    assert pool.order(["club.bob:1"]) == []
    assert granted(pool.later(23 * 60 * MINUTE + 30 * MINUTE)) == ["club.cem:1"]
    pool.replay()


def test_who_waits_for_one_of_several_budgets_reads_which_one_to_ask_for() -> None:
    of_day = Budget(60 * MINUTE, "day")
    pool = Quotas(project("our club", budget=of_day), project("choir", "our club", budget=Budget(120 * MINUTE, "day")))
    pool.join("a", slots(3))
    pool.busy("choir.ann", "choir.bob")
    pool.later(30 * MINUTE)
    assert pool.wants("choir.cem") == []
    assert "`%gpu request --budget HOURS --budget-of 'our club'`" in pool.why("choir.cem/1").reason


def test_a_cell_starts_only_if_the_budget_can_finish_it() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "week")))
    pool.join("a", slots(3))
    pool.busy("club.ann", "club.bob")
    pool.later(10 * MINUTE)
    assert evicted(pool.end("club.ann:1")) == ["club.ann:1"], "its next cell would not fit"
    pool.free("club.ann:1")
    assert pool.wants("club.cem") == []
    assert pool.why("club.cem/1").reason == (
        "the 1 GPU-hour of this week in project 'club' is enough for 20 min of such a cell beside what runs, "
        "and yours may take 30 min: ask for less with --time; the next one begins in 3.9 days, "
        "and `%gpu request --budget HOURS` asks for more of this one"
    )
    assert granted(pool.ask("club.dan", project="club", walltime_ms=15 * MINUTE)) == ["club.dan:1"]
    pool.replay()


def test_a_budget_of_nothing_is_refused_at_once_and_named() -> None:
    pool = Quotas(project("club", budget=Budget(0, "week")))
    pool.join("a", slots(1))
    said = refused(pool.ask("club.ann", project="club"))["club.ann/1"]
    assert said == "1 GPU was asked for, and the budget of project 'club' is 0 GPU-hours each week."
    pool.replay()


def test_more_time_than_the_whole_budget_is_refused_with_what_would_fit() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "week")))
    pool.join("a", slots(4))
    said = refused(pool.ask("club.ann", project="club", gpus=4))["club.ann/1"]
    assert said == (
        "4 GPUs for 30 min is more than the 1 GPU-hour that project 'club' has each week. "
        "Ask for 15 min or less with --time."
    )
    pool.replay()


def test_what_was_used_before_is_known_after_a_change() -> None:
    pool = Quotas(project("club", budget=Budget(60 * MINUTE, "day")))
    pool.join("a", slots(1))
    pool.busy("club.ann")
    pool.later(60 * MINUTE)
    changed(pool, project("club", budget=Budget(90 * MINUTE, "day")))
    assert pool.wants("club.bob") == []
    assert pool.why("club.bob/1").reason == "the only GPU is busy"
    pool.later(30 * MINUTE)
    assert pool.free("club.ann:1") == []
    assert pool.why("club.bob/1").reason.startswith("project 'club' has used the 1.5 GPU-hours of this day")
    pool.replay()


def test_what_runs_has_spent_of_the_budget_of_what_its_project_is_in_for_as_long_as_it_is_there() -> None:
    def left() -> int | None:
        return pool.scheduler.state.accounts.of(ProjectId("dep")).left(pool.now_ms)

    dep = project("dep", budget=Budget(60 * MINUTE, "day"))
    pool = Quotas(dep, project("club"))
    pool.join("a", slots(2))
    pool.busy("club.ann")
    pool.later(20 * MINUTE)
    lefts = []
    for parent in ("dep", None, "dep"):
        changed(pool, dep, project("club", parent=parent))
        pool.later(5 * MINUTE)
        lefts.append(left())
    assert lefts == [1000 * minutes * MINUTE for minutes in (35, 60, 25)]
    pool.free("club.ann:1")
    assert left() == 1000 * 25 * MINUTE
    pool.replay()


@pytest.mark.parametrize("before", [None, Budget(600 * MINUTE, "week")], ids=["no budget", "one of another period"])
def test_of_a_new_budget_what_runs_has_spent_since_the_period_began(before: Budget | None) -> None:
    pool = Quotas(project("dep", budget=before), project("club", parent="dep"))
    pool.join("a", slots(2))
    pool.later(24 * 60 * MINUTE - 10 * MINUTE)
    pool.busy("club.ann")
    pool.later(30 * MINUTE)  # over midnight
    changed(pool, project("dep", budget=Budget(60 * MINUTE, "day")), project("club", parent="dep"))
    left = pool.scheduler.state.accounts.of(ProjectId("dep")).left(pool.now_ms)
    assert left == 1000 * 40 * MINUTE
    pool.later(5 * MINUTE)
    pool.free("club.ann:1")
    left = pool.scheduler.state.accounts.of(ProjectId("dep")).left(pool.now_ms)
    assert left == 1000 * 35 * MINUTE
    pool.replay()
