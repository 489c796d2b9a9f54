"""What people change by hand: hold, release, to the top of a project, run again. Step by step."""

import pytest

from bulletin.ids import CellId, LeaseId, ProjectId, RequestId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Reclaim, Right
from gpu_worker.scheduler.interventions import MOST_MORE_MS, most_more_ms
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.policy.projects import Budget, QoS
from tests.scheduler.bench import MINUTE, SETTINGS, Bench, evicted, granted, project, slots
from tests.scheduler.quota_bench import Quotas


def hold(bench: Bench, request: str, why: str = "", *, is_by_admin: bool = True) -> list[str]:
    return granted(bench.say(ev.RequestHeld(RequestId(request), why, is_by_admin)))


def release(bench: Bench, request: str) -> list[str]:
    return granted(bench.say(ev.RequestReleased(RequestId(request))))


def put_first(bench: Bench, request: str) -> list[str]:
    return granted(bench.say(ev.RequestPutFirst(RequestId(request))))


def full(bench: Bench, number: int = 1, **how: object) -> None:
    """All GPUs are busy."""
    bench.join("a", slots(number))
    for one in range(number):
        bench.ask(f"busy{one}", **how)  # type: ignore[arg-type]
        bench.start(f"busy{one}:1")


def test_what_is_held_is_passed_and_starts_when_it_is_released(bench: Bench) -> None:
    full(bench)
    bench.ask("ann")
    bench.ask("bob")
    hold(bench, "ann/1", "the exam comes first")
    said = bench.why("ann/1")
    assert (said.reason, said.wait_ms, said.is_on_hold) == ("held by an admin: the exam comes first", None, True)
    assert bench.why("bob/1").position == 1
    bench.end("busy0:1")
    assert granted(bench.free("busy0:1")) == ["bob:1"]
    bench.start("bob:1")
    bench.end("bob:1")
    assert bench.later(MINUTE) == []  # nobody leaves for it
    assert evicted(bench.say(ev.RequestReleased(RequestId("ann/1")))) == ["bob:1"]
    assert granted(bench.free("bob:1")) == ["ann:1"]


def test_an_owner_is_told_that_it_is_their_own_doing(bench: Bench) -> None:
    full(bench)
    bench.ask("ann")
    hold(bench, "ann/1", is_by_admin=False)
    assert bench.why("ann/1").reason == "you hold it until you release it"
    hold(bench, "ann/1", "not before the data is there", is_by_admin=False)
    assert bench.why("ann/1").reason == "you hold it: not before the data is there"


def test_a_free_gpu_idles_rather_than_run_what_is_held(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.ask("busy", gpus=2)
    bench.start("busy:1")
    bench.ask("ann", gpus=2)
    bench.ask("bob")
    hold(bench, "ann/1")
    bench.end("busy:1")
    assert granted(bench.free("busy:1")) == ["bob:1"]  # no head of the line holds the node
    assert bench.later(MINUTE) != []  # a grant that is not used
    assert release(bench, "ann/1") == []


def test_it_keeps_its_age(bench: Bench) -> None:
    full(bench)
    bench.ask("ann")
    hold(bench, "ann/1")
    bench.later(20 * MINUTE)
    bench.ask("bob")
    release(bench, "ann/1")
    assert [bench.why(name).position for name in ("ann/1", "bob/1")] == [1, 2]


def test_who_holds_their_own_gains_no_place_by_it(bench: Bench) -> None:
    """Each request of a user is put back by what else of theirs waits, on hold or not."""
    full(bench)
    for number in range(3):
        bench.ask(f"s{number}", user="ann", walltime_ms=MINUTE)
        hold(bench, f"s{number}/1", is_by_admin=False)
    dues = [bench.scheduler.state.pending[RequestId(f"s{number}/1")].entry.key.due for number in range(3)]
    assert dues == [dues[0], dues[0] + 1, dues[0] + 2]  # in tens of seconds
    bench.ask("bob", walltime_ms=MINUTE)
    for number in range(3):
        release(bench, f"s{number}/1")
    assert [bench.why(name).position for name in ("s0/1", "bob/1", "s1/1", "s2/1")] == [1, 2, 3, 4]


def test_what_is_late_keeps_its_limit_from_nobody_while_it_is_held() -> None:
    bench = Quotas(project("lab", limit_milli=2000))
    bench.join("a", slots(4))
    for one in ("one", "two"):
        bench.ask(one, project="lab")
        bench.start(f"{one}:1")
    bench.ask("ann", gpus=2, project="lab")
    patience_ms = next(one.patience_ms for one in SETTINGS.qos if one.name == "interactive")
    bench.later(patience_ms)
    state = bench.scheduler.state
    late = state.accounts.of("lab").late
    assert late == {"ann/1": 2000}
    hold(bench, "ann/1")
    assert not late
    bench.end("one:1")
    bench.free("one:1")
    assert granted(bench.ask("bob", project="lab")) == ["bob:1"]
    release(bench, "ann/1")
    assert late == {"ann/1": 2000}  # it has waited for as long
    check(state)


def test_said_of_nothing_twice_or_of_what_runs_it_changes_nothing(bench: Bench) -> None:
    full(bench)
    for request in ("nothing", "busy0/1"):
        assert hold(bench, request) == release(bench, request) == put_first(bench, request) == []
    bench.ask("ann")
    hold(bench, "ann/1")
    hold(bench, "ann/1")
    release(bench, "ann/1")
    assert release(bench, "ann/1") == []
    bench.end("busy0:1")
    assert granted(bench.free("busy0:1")) == ["ann:1"]


def test_what_is_held_is_withdrawn_replaced_and_said_twice_as_ever(bench: Bench) -> None:
    full(bench)
    bench.ask("ann")
    hold(bench, "ann/1")
    bench.ask("ann")
    assert bench.why("ann/1").is_on_hold
    bench.ask("ann", n=2)
    assert not bench.why("ann/2").is_on_hold
    hold(bench, "ann/2")
    bench.withdraw("ann/2")
    assert not bench.scheduler.state.on_hold


def test_a_session_whose_last_lease_ends_while_its_request_is_held_waits_on(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.run("ann")
    bench.ask("ann", n=2)  # it lost its agent: the old lease leaves
    hold(bench, "ann/2")
    assert bench.free("ann:1") == []
    assert bench.why("ann/2").is_on_hold
    assert release(bench, "ann/2") == ["ann:2"]


def test_the_top_is_the_first_of_its_project_whatever_its_user_and_class() -> None:
    bench = Quotas(project("lab"), project("guests"))
    full(bench, project="guests")
    bench.ask("eve", project="guests")
    bench.ask("ann", project="lab")
    bench.ask("ann2", user="ann", project="lab")
    bench.ask("bob", qos="batch", project="lab")
    places = ("eve/1", "ann/1", "ann2/1", "bob/1")
    before = [bench.why(name).position for name in places]
    put_first(bench, "bob/1")
    mine = sorted(("ann/1", "ann2/1", "bob/1"), key=lambda name: bench.why(name).position)
    assert mine == ["bob/1", "ann/1", "ann2/1"]
    put_first(bench, "ann2/1")
    mine = sorted(("ann/1", "ann2/1", "bob/1"), key=lambda name: bench.why(name).position)
    assert mine == ["ann2/1", "bob/1", "ann/1"]
    assert bench.why("eve/1").position == before[0] == 2


def test_the_top_of_one_project_is_not_that_of_others() -> None:
    bench = Quotas(project("lab", guaranteed_milli=1000), project("guests"))
    full(bench, project="guests")
    bench.ask("ann", project="lab")
    bench.ask("eve", project="guests")
    put_first(bench, "eve/1")
    assert [bench.why(name).position for name in ("ann/1", "eve/1")] == [1, 2]


@pytest.mark.parametrize("qos", ["interactive", "batch"])
def test_a_cell_that_is_to_run_again_has_its_grace_and_stands_where_it_stood(bench: Bench, qos: str) -> None:
    full(bench, qos=qos)
    bench.later(MINUTE)
    (said,) = bench.say(ev.CellRequeued(LeaseId("busy0:1")))
    if qos == "batch":  # that is paused where a node can
        (said,) = bench.say(ev.PauseDeclined(LeaseId("busy0:1")))
    grace_ms = next(one.grace_ms for one in SETTINGS.qos if one.name == qos)
    assert said == Reclaim(LeaseId("busy0:1"), grace_ms, Right.ADMIN)
    account = bench.scheduler.state.accounts.of("p")
    assert (account.back_off_until_ms, account.reclaims) == (0, 0)
    bench.ask("ann", qos=qos)
    bench.free("busy0:1")
    bench.start("ann:1")
    bench.ask("bob", qos=qos)
    bench.ask("busy0", n=2, qos=qos)
    assert [bench.why(name).position for name in ("busy0/2", "bob/1")] == [1, 2]


def test_only_a_cell_that_runs_is_run_again(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.ask("ann")
    again = ev.CellRequeued(LeaseId("ann:1"))
    assert bench.say(again) == []
    bench.start("ann:1")
    assert len(bench.say(again)) == 1
    assert bench.say(again) == []  # it gives back already
    assert bench.say(ev.CellRequeued(LeaseId("nobody"))) == []


def extend(bench: Bench, lease: str, ms: int, cell: str = "c1") -> list[object]:
    return list(bench.say(ev.CellExtended(LeaseId(lease), CellId(cell), ms)))


def test_more_time_is_for_the_cell_that_runs_and_others_are_told_of_it(bench: Bench) -> None:
    full(bench, walltime_ms=10 * MINUTE)
    bench.ask("ann")
    assert bench.why("ann/1").wait_ms == 10 * MINUTE
    extend(bench, "busy0:1", 5 * MINUTE)
    extend(bench, "busy0:1", 5 * MINUTE)
    assert bench.why("ann/1").wait_ms == 20 * MINUTE
    extend(bench, "busy0:1", 5 * MINUTE, cell="another")
    extend(bench, "nobody", 5 * MINUTE)
    assert bench.why("ann/1").wait_ms == 20 * MINUTE
    lease = bench.scheduler.state.leases[LeaseId("busy0:1")]
    assert (lease.walltime_ms, lease.cell_walltime_ms) == (10 * MINUTE, 20 * MINUTE)
    bench.withdraw("ann/1")
    bench.end("busy0:1")
    bench.start("busy0:1", "c2")
    bench.ask("bob")
    assert bench.why("bob/1").wait_ms == 10 * MINUTE  # the next one has the walltime of the lease


def test_who_waits_for_a_node_lets_others_in_for_as_long_as_the_cell_there_runs_now(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.ask("busy", walltime_ms=10 * MINUTE)
    bench.start("busy:1")
    bench.ask("large", gpus=2)
    bench.later(MINUTE)
    assert bench.ask("ann", walltime_ms=15 * MINUTE) == []
    assert granted(extend(bench, "busy:1", 20 * MINUTE)) == ["ann:1"]  # type: ignore[arg-type]


def test_a_budget_and_a_month_are_all_that_a_cell_can_have(bench: Bench) -> None:
    budgeted = Quotas(project("club", budget=Budget(40 * MINUTE, "day")))
    budgeted.join("a", slots(2))
    budgeted.ask("ann", project="club", walltime_ms=10 * MINUTE)
    budgeted.start("ann:1")
    state = budgeted.scheduler.state
    lease = state.leases[LeaseId("ann:1")]
    assert most_more_ms(state, lease) == (30 * MINUTE, "club")
    extend(budgeted, "ann:1", 31 * MINUTE)
    assert lease.more_ms == 0
    extend(budgeted, "ann:1", 20 * MINUTE)
    assert most_more_ms(state, lease) == (10 * MINUTE, "club")
    assert granted(budgeted.ask("bob", project="club", walltime_ms=11 * MINUTE)) == []
    assert granted(budgeted.ask("cem", project="club", walltime_ms=9 * MINUTE)) == ["cem:1"]
    full(bench)
    extend(bench, "busy0:1", MOST_MORE_MS + 1)
    extend(bench, "busy0:1", -1)
    assert bench.scheduler.state.leases[LeaseId("busy0:1")].more_ms == 0
    extend(bench, "busy0:1", MOST_MORE_MS)
    extend(bench, "busy0:1", 1)
    assert bench.scheduler.state.leases[LeaseId("busy0:1")].more_ms == MOST_MORE_MS


def test_a_cell_whose_time_is_over_or_that_gives_back_has_no_more(bench: Bench) -> None:
    full(bench, walltime_ms=MINUTE)
    bench.later(MINUTE)
    extend(bench, "busy0:1", MINUTE)
    lease = bench.scheduler.state.leases[LeaseId("busy0:1")]
    assert lease.more_ms == 0
    other = Bench()
    full(other)
    other.say(ev.CellRequeued(LeaseId("busy0:1")))
    extend(other, "busy0:1", MINUTE)
    assert other.scheduler.state.leases[LeaseId("busy0:1")].more_ms == 0


def boost(bench: Bench, user: str, minutes: int, name: str = "lab") -> list[object]:
    return list(bench.say(ev.UserBoosted(ProjectId(name), UserName(user), bench.now_ms + minutes * MINUTE)))


def places(bench: Bench, *requests: str) -> list[str]:
    return sorted(requests, key=lambda name: bench.why(name).position)


def test_who_is_boosted_is_before_the_projects_other_users_until_it_is_over() -> None:
    bench = Quotas(project("lab"), project("guests", guaranteed_milli=1000))
    full(bench, project="lab")
    bench.ask("ann", project="lab", qos="interactive")
    bench.ask("bob", project="lab", qos="batch")
    bench.ask("eve", project="guests")
    assert places(bench, "ann/1", "bob/1", "eve/1") == ["eve/1", "ann/1", "bob/1"]
    boost(bench, "bob", 10)
    assert places(bench, "ann/1", "bob/1", "eve/1") == ["eve/1", "bob/1", "ann/1"]  # nobody else's right is less
    assert bench.scheduler.deadline() <= bench.now_ms + 10 * MINUTE
    bench.later(10 * MINUTE)
    assert places(bench, "ann/1", "bob/1") == ["ann/1", "bob/1"]
    boost(bench, "bob", 10)
    boost(bench, "bob", 0)
    assert places(bench, "ann/1", "bob/1") == ["ann/1", "bob/1"]
    boost(bench, "nobody", 10, name="nothing")


def test_a_boost_ends_although_nothing_else_happens(bench: Bench) -> None:
    boost(bench, "bob", 10)
    assert bench.scheduler.deadline() == 10 * MINUTE
    bench.later(10 * MINUTE)
    assert bench.scheduler.deadline() is None


def test_a_boost_is_kept_when_settings_change() -> None:
    bench = Quotas(project("lab"))
    full(bench, project="lab")
    boost(bench, "bob", 10)
    bench.say(ev.SettingsChanged(bench.settings))
    bench.ask("ann", project="lab")
    bench.ask("bob", project="lab", qos="batch")
    assert places(bench, "ann/1", "bob/1") == ["bob/1", "ann/1"]
    bench.later(10 * MINUTE)
    assert places(bench, "ann/1", "bob/1") == ["ann/1", "bob/1"]


def held_on(pool: Quotas, request: str, steps: int, step_ms: int, *, is_by_lead: bool = False) -> None:
    """Hold a request anew, so many times."""
    for _ in range(steps):
        pool.say(ev.RequestHeld(RequestId(request), "", is_by_lead, is_by_lead))
        pool.later(step_ms)


@pytest.mark.parametrize("step_ms", [9_990, 10_010])
@pytest.mark.parametrize("is_by_lead", [False, True])
def test_who_keeps_a_request_held_by_many_short_holds_is_due_as_after_one_long_one(
    step_ms: int, is_by_lead: bool
) -> None:
    pool = Quotas(project("lab", limit_milli=1000))
    pool.join("a", slots(1))
    pool.busy("lab.zed")
    pool.wants("lab.game")
    held_on(pool, "lab.game/1", 30, step_ms, is_by_lead=is_by_lead)
    pool.wants("lab.honest")
    held_on(pool, "lab.game/1", 100, step_ms, is_by_lead=is_by_lead)
    release(pool, "lab.game/1")
    assert granted(pool.free("lab.zed:1")) == ["lab.honest:1"]
    pool.replay()


@pytest.mark.parametrize(("is_by_lead", "first"), [(True, "other.honest:1"), (False, "lab.friend:1")])
def test_what_a_lead_holds_does_not_pass_other_projects_by_its_release(is_by_lead: bool, first: str) -> None:
    """What an admin of the pool has held has waited, and is late; a lead would so have a friend pass who is late."""
    qos = QoS(name="interactive", priority=1, walltime_ms=600 * MINUTE, queued_per_user=4, patience_ms=60 * MINUTE)
    pool = Quotas(project("lab"), project("other"), qos=(qos,))
    pool.join("a", slots(1))
    pool.busy("other.zed")
    pool.wants("lab.friend")
    pool.say(ev.RequestHeld(RequestId("lab.friend/1"), "", True, is_by_lead))
    pool.later(15 * MINUTE)
    pool.wants("other.honest")
    pool.later(65 * MINUTE)
    release(pool, "lab.friend/1")
    assert granted(pool.free("other.zed:1")) == [first]
    pool.replay()


def test_whom_a_limit_is_kept_from_for_who_was_put_first_reads_so() -> None:
    pool = Quotas(project("lab", limit_milli=4000))
    pool.join("a", slots(8))
    pool.busy("lab.ann", "lab.bob", walltime_ms=5 * MINUTE)
    pool.wants("lab.cem", gpus=4)
    put_first(pool, "lab.cem/1")
    assert pool.wants("lab.dan", walltime_ms=20 * MINUTE) == []
    assert pool.why("lab.dan/1").reason == (
        "project 'lab' uses 2 of 4 GPUs that it may use, and keeps 2 GPUs of the rest "
        "for a request that was put first in the project"
    )
    assert pool.order(["lab.ann:1", "lab.bob:1"]) == ["lab.cem:1"]
    pool.replay()
