"""A user of a project may have more than its rules until a time: what that allows, what it never does, its end."""

from typing import Literal

import pytest

from bulletin.ids import LeaseId, ProjectId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, Evict, Refuse
from gpu_worker.scheduler.policy.allowances import Allowance
from gpu_worker.scheduler.policy.projects import Project
from tests.scheduler.bench import MINUTE, Bench, project, slots
from tests.scheduler.quota_bench import Quotas, changed, granted

HOUR = 60 * MINUTE


def course(**settings: object) -> Project:
    return project("course", **settings)


def pool(*projects: Project, number: int = 4) -> Quotas:
    bench = Quotas(*projects)
    bench.join("a", slots(number))
    return bench


def allow(
    bench: Bench, user: str, kind: Literal["walltime", "gpus"], amount: int, *, hours: float = 24, name: str = ""
) -> list[Action]:
    until_ms = round(bench.now_ms + hours * HOUR)
    given = {"walltime_ms" if kind == "walltime" else kind: amount}
    return bench.say(
        ev.AllowanceChanged(name or kind, ProjectId("course"), UserName(user), Allowance(until_ms, **given))
    )


def refused(actions: list[Action]) -> str:
    [action] = actions
    assert isinstance(action, Refuse)
    return str(action.reason)


def test_a_cell_runs_as_long_as_its_user_is_allowed_whatever_class_and_project_give() -> None:
    bench = pool(course(walltime_ms=20 * MINUTE))
    assert "more than the 20 min" in refused(bench.ask("ann", project="course", walltime_ms=25 * MINUTE))
    assert "more than the 30 min" in refused(bench.ask("ann", project="course", walltime_ms=4 * HOUR))
    allow(bench, "ann", "walltime", 4 * HOUR)
    [grant] = bench.ask("ann", project="course", walltime_ms=4 * HOUR)
    assert grant.walltime_ms == 4 * HOUR  # type: ignore[union-attr]
    assert "more than the 4 h" in refused(bench.ask("ann2", user="ann", project="course", walltime_ms=5 * HOUR))


@pytest.mark.parametrize(
    ("rule", "kind", "amount", "asked", "says"),
    [
        ({}, "walltime", 4 * HOUR, {"walltime_ms": 5 * HOUR}, "the 4 h that you were granted. Ask for less"),
        ({"gpus_per_cell": 1}, "gpus", 2, {"gpus": 3}, "and you were granted 2 GPUs. Ask for 2 or fewer"),
        ({"user_limit_milli": 1000}, "gpus", 2, {"gpus": 3}, "and you were granted 2 GPUs. Ask for fewer"),
    ],
    ids=["walltime", "GPUs of a cell", "GPUs of a user"],
)
def test_who_asks_for_more_than_they_were_granted_reads_that_it_was_granted(
    rule: dict[str, int], kind: Literal["walltime", "gpus"], amount: int, asked: dict[str, int], says: str
) -> None:
    bench = pool(course(**rule))
    assert "granted" not in refused(bench.ask("ann", project="course", **asked))  # type: ignore[arg-type]
    allow(bench, "ann", kind, amount)
    assert says in refused(bench.ask("ann", project="course", **asked))  # type: ignore[arg-type]


def test_more_than_was_granted_is_said_to_be_so_also_where_its_class_gives_as_much() -> None:
    bench = pool(course(walltime_ms=10 * MINUTE))
    allow(bench, "ann", "walltime", 20 * MINUTE)
    said = refused(bench.ask("ann", project="course", walltime_ms=25 * MINUTE))
    assert "more than the 20 min that you were granted in project 'course'. Ask for less" in said


def test_it_is_for_nobody_else_and_for_no_other_project() -> None:
    bench = pool(course(), project("lab"))
    allow(bench, "ann", "walltime", 4 * HOUR)
    assert "more than" in refused(bench.ask("bob", project="course", walltime_ms=4 * HOUR))
    assert "more than" in refused(bench.ask("ann", project="lab", walltime_ms=4 * HOUR))


def test_a_cell_that_does_not_ask_has_the_time_that_it_had_before() -> None:
    bench = pool(course(walltime_ms=20 * MINUTE))
    allow(bench, "ann", "walltime", 4 * HOUR)
    [grant] = bench.ask("ann", project="course")
    assert grant.walltime_ms == 20 * MINUTE  # type: ignore[union-attr]


@pytest.mark.parametrize("rule", [{"gpus_per_cell": 1}, {"user_limit_milli": 1000}])
def test_a_user_has_as_many_gpus_in_a_cell_and_at_once_as_is_allowed(rule: dict[str, int]) -> None:
    bench = pool(course(**rule))
    assert "may" in refused(bench.ask("ann", project="course", gpus=2))
    allow(bench, "ann", "gpus", 2)
    assert granted(bench.ask("ann", project="course", gpus=2)) == ["ann:1"]
    assert "granted 2 GPUs" in refused(bench.ask("ann2", user="ann", project="course", gpus=3))
    assert "may" in refused(bench.ask("bob", project="course", gpus=2))


def test_what_waits_for_the_users_limit_starts_when_more_is_allowed() -> None:
    bench = pool(course(user_limit_milli=1000))
    assert granted(bench.ask("ann", project="course")) == ["ann:1"]
    bench.start("ann:1")
    assert bench.ask("ann2", user="ann", project="course") == []
    assert granted(allow(bench, "ann", "gpus", 2)) == ["ann2:1"]


def test_no_allowance_is_more_than_the_project_has() -> None:
    bench = pool(project("dept", limit_milli=2000), course(parent="dept", gpus_per_cell=1, user_limit_milli=1000))
    allow(bench, "ann", "gpus", 100)
    assert "project 'dept' may use 2 GPUs at most" in refused(bench.ask("ann", project="course", gpus=3))
    assert granted(bench.ask("ann", project="course", gpus=2)) == ["ann:1"]
    bench.start("ann:1")
    assert bench.ask("bob", project="course") == []


def test_it_ends_by_itself_what_runs_goes_on_and_what_waits_is_refused() -> None:
    bench = pool(course(), number=1)
    allow(bench, "ann", "walltime", 4 * HOUR, hours=1)
    bench.ask("ann", project="course", walltime_ms=4 * HOUR)
    bench.start("ann:1")
    assert bench.ask("ann2", user="ann", project="course", walltime_ms=2 * HOUR) == []
    assert bench.ask("ann3", user="ann", project="course") == []  # needs none of it
    due_ms = bench.scheduler.deadline()
    assert due_ms is not None
    assert due_ms <= HOUR
    bench.now_ms = HOUR - 1
    assert bench.later(0) == []
    assert "a walltime of 2 h is more than the 30 min" in refused(bench.later(1))
    assert bench.scheduler.state.leases[LeaseId("ann:1")].walltime_ms == 4 * HOUR
    assert list(bench.scheduler.state.pending) == ["ann3/1"]
    assert "more than" in refused(bench.ask("ann4", user="ann", project="course", walltime_ms=2 * HOUR))


def test_gpus_that_are_allowed_no_more_are_given_back_when_their_cell_ends() -> None:
    bench = pool(course(user_limit_milli=1000))
    allow(bench, "ann", "gpus", 2, hours=1)
    bench.ask("ann", project="course", gpus=2)
    bench.start("ann:1")
    assert bench.later(HOUR) == []  # it runs
    ended = bench.end("ann:1")
    assert [type(action).__name__ for action in ended] == ["Evict"]  # hot it would be more than a user may have


@pytest.mark.parametrize("how", ["in its time", "by a lead"])
@pytest.mark.parametrize(
    ("rule", "kind", "amount", "asked"),
    [
        ({"walltime_ms": 20 * MINUTE}, "walltime", 4 * HOUR, {"walltime_ms": 4 * HOUR}),
        ({}, "walltime", 4 * HOUR, {"walltime_ms": 4 * HOUR}),
        ({"gpus_per_cell": 1}, "gpus", 2, {"gpus": 2}),
    ],
    ids=["the project's walltime", "the walltime of its class", "GPUs of a cell"],
)
def test_a_hot_session_begins_no_cell_by_what_is_allowed_no_more(
    how: str, rule: dict[str, int], kind: Literal["walltime", "gpus"], amount: int, asked: dict[str, int]
) -> None:
    bench = pool(course(**rule))
    allow(bench, "ann", kind, amount, hours=2)
    bench.ask("ann", project="course", **asked)  # type: ignore[arg-type]
    bench.ask("bob", project="course")  # of the rules alone
    for name in ("ann:1", "bob:1"):
        bench.start(name)
        assert bench.end(name) == []
    assert bench.later(HOUR) == []
    ended = bench.later(HOUR) if how == "in its time" else allow(bench, "ann", kind, amount, hours=0)
    assert ended == [Evict(LeaseId("ann:1"))]


def test_the_cell_that_runs_when_it_ends_is_the_last_of_its_session() -> None:
    bench = pool(course())
    allow(bench, "ann", "walltime", 4 * HOUR, hours=1)
    bench.ask("ann", project="course", walltime_ms=4 * HOUR)
    bench.start("ann:1")
    assert bench.later(2 * HOUR) == []
    assert bench.end("ann:1") == [Evict(LeaseId("ann:1"))]


def test_of_several_the_most_counts_until_it_ends() -> None:
    bench = pool(course())
    allow(bench, "ann", "walltime", 2 * HOUR, hours=3)
    allow(bench, "ann", "walltime", 4 * HOUR, hours=1, name="other")
    assert "more than the 4 h" in refused(bench.ask("ann", project="course", walltime_ms=5 * HOUR))
    bench.later(HOUR)
    assert "more than the 2 h" in refused(bench.ask("ann", project="course", walltime_ms=3 * HOUR))
    bench.later(2 * HOUR)
    assert "more than the 30 min" in refused(bench.ask("ann", project="course", walltime_ms=HOUR))


def test_the_last_word_holds_and_one_of_the_past_ends_it() -> None:
    bench = pool(course())
    allow(bench, "ann", "walltime", 4 * HOUR)
    allow(bench, "ann", "walltime", 2 * HOUR)
    assert "more than the 2 h" in refused(bench.ask("ann", project="course", walltime_ms=3 * HOUR))
    allow(bench, "ann", "gpus", 2)
    allow(bench, "ann", "walltime", 2 * HOUR, hours=0)
    assert "more than the 30 min" in refused(bench.ask("ann", project="course", walltime_ms=HOUR))
    assert bench.scheduler.state.accounts.allowances.next_ms == bench.now_ms + 24 * HOUR  # the other kind's


def test_a_clock_that_is_set_back_prolongs_nothing_and_one_that_jumps_ends_it() -> None:
    bench = pool(course())
    bench.later(10 * HOUR)
    allow(bench, "ann", "walltime", 4 * HOUR, hours=1)
    bench.now_ms -= 9 * HOUR
    bench.later(0)
    assert granted(bench.ask("ann", project="course", walltime_ms=4 * HOUR)) == ["ann:1"]
    bench.now_ms += 1000 * HOUR
    bench.later(0)
    assert bench.scheduler.state.accounts.allowances.by_owner == {}


def test_new_settings_leave_it_as_it_is() -> None:
    bench = pool(course(), number=1)
    allow(bench, "ann", "walltime", 4 * HOUR)
    bench.ask("bob", project="course")
    bench.start("bob:1")
    bench.ask("ann", project="course", walltime_ms=4 * HOUR)
    assert changed(bench, course(walltime_ms=10 * MINUTE)) == []
    assert "ann/1" in bench.scheduler.state.pending


def test_it_holds_in_a_reservation_for_its_user() -> None:
    bench = pool(
        course(gpus_per_cell=1),
        project("course/exam", parent="course", users=(UserName("ann"),)),
    )
    allow(bench, "ann", "gpus", 2)
    allowances = bench.scheduler.state.accounts.allowances
    inner = bench.scheduler.state.accounts.of(ProjectId("course/exam")).project
    assert allowances.gpus(inner, UserName("ann")) == 2
    assert allowances.gpus(inner, UserName("bob")) == 0


def test_a_long_walltime_in_the_line_keeps_its_length() -> None:
    bench = pool(course(), number=1)
    allow(bench, "ann", "walltime", 60 * 24 * HOUR)
    bench.ask("bob", project="course")
    bench.start("bob:1")
    bench.ask("ann", project="course", walltime_ms=50 * 24 * HOUR)
    [request] = bench.scheduler.state.pending.values()
    assert request.entry.shape.walltime_ms == 50 * 24 * HOUR
    bench.end("bob:1")
    bench.replay()
