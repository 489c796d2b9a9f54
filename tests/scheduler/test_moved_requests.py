"""A notebook goes on by another session: its request waits on as it did, and nobody who came later stands before it."""

import pytest

from bulletin.ids import LeaseId, RequestId, SessionId, SlotId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.bench import MINUTE, SETTINGS, Bench, granted, project, reclaimed, slots


@pytest.fixture
def bench() -> Bench:
    """No GPU is free, and none will be before somebody leaves."""
    bench = Bench()
    bench.join("a", slots(2))
    for one in ("busy", "silent"):
        bench.ask(one)
        bench.start(f"{one}:1")
    return bench


def move(bench: Bench, request: str, to: str = "new") -> list[Action]:
    return bench.say(ev.RequestMoved(RequestId(request), RequestId(f"{to}/1"), SessionId(to)))


def free_one(bench: Bench) -> list[str]:
    bench.end("busy:1")
    return granted(bench.free("busy:1"))


def test_what_waited_for_its_own_sessions_lease_is_in_line_where_it_came(bench: Bench) -> None:
    bench.ask("silent", n=2)
    bench.later(5 * MINUTE)
    bench.ask("late", user="silent")
    assert bench.why("late/1").position == 1
    move(bench, "silent/2")
    assert bench.why("new/1").position == 1
    assert bench.why("late/1").position == 2
    assert free_one(bench) == ["silent:2"], "by the name that its user was told"
    bench.replay()


def test_what_an_admin_put_first_is_first_yet(bench: Bench) -> None:
    bench.ask("early")
    bench.ask("silent", n=2)
    bench.say(ev.RequestPutFirst(RequestId("silent/2")))
    move(bench, "silent/2")
    assert bench.why("new/1").position == 1
    assert free_one(bench) == ["silent:2"]


def test_what_a_person_holds_waits_until_that_is_released(bench: Bench) -> None:
    bench.ask("silent", n=2)
    bench.say(ev.RequestHeld(RequestId("silent/2"), "the exam comes first", is_by_admin=True))
    move(bench, "silent/2")
    assert bench.why("new/1").reason == "held by an admin: the exam comes first"
    assert free_one(bench) == []
    assert granted(bench.say(ev.RequestReleased(RequestId("new/1")))) == ["silent:2"]


def test_who_has_waited_for_their_patience_is_late_by_the_new_session_too(bench: Bench) -> None:
    bench.ask("early")
    patience_ms = bench.scheduler.state.qos["interactive"].patience_ms
    bench.later(patience_ms)
    before = bench.scheduler.state.pending[RequestId("early/1")]
    assert not before.entry.key.is_early
    move(bench, "early/1")
    after = bench.scheduler.state.pending[RequestId("new/1")]
    assert (after.entry.key, after.since_ms) == (before.entry.key, before.since_ms)
    check(bench.scheduler.state)


def test_what_waits_no_longer_stays_as_it_is(bench: Bench) -> None:
    assert move(bench, "silent/1") == []
    assert move(bench, "nobody/1") == []
    assert not bench.scheduler.state.pending
    assert set(bench.scheduler.state.leases) == {"busy:1", "silent:1"}


def test_who_lost_a_cell_for_a_share_does_not_take_it_back_by_the_new_session() -> None:
    """They would take from each other in turn: what was taken for a share is not taken back for one."""
    bench = Bench()
    bench.join("a", tuple(ev.Slot(SlotId(f"g{n}"), "gpu", "L4" if n else "H100", 80 * 10**9) for n in range(4)))
    for session, kind in (("loses", "H100"), ("other", "L4")):
        bench.ask(session, project="b", gpu_type=kind)
        bench.start(f"{session}:1")
    bench.later(MINUTE)
    bench.ask("takes", project="a", gpu_type="H100")
    assert list(reclaimed(bench.later(2 * MINUTE))) == ["loses:1"]
    assert granted(bench.free("loses:1")) == ["takes:1"]
    bench.start("takes:1")
    bench.ask("loses", n=2, project="b", gpu_type="H100")
    before = "loses/2"
    for session in ("new", "newer", "newest"):
        move(bench, before, session)
        before = f"{session}/1"
    takes = bench.scheduler.state.leases[LeaseId("takes:1")]
    assert takes.took == {"newest"}, "whoever moves on and on makes nothing grow"
    for session in ("more", "rest"):
        bench.ask(session, project="a", gpu_type="L4")
        bench.start(f"{session}:1")
    asked = [reclaimed(bench.later(MINUTE)) for _ in range(5)]
    assert asked == [{}] * 5
    bench.replay()


def test_what_a_limit_keeps_for_who_has_waited_is_kept_for_the_new_session() -> None:
    """Another one that came later would have its turn, and what is over meanwhile would be kept for nobody."""
    bench = Bench(SchedulerSettings(qos=SETTINGS.qos, projects=(project("lab", limit_milli=2000),)))
    bench.join("a", slots(8))
    for session in ("x", "y"):
        bench.ask(session, project="lab", qos="batch", walltime_ms=90 * MINUTE)
        bench.start(f"{session}:1")
    bench.later(1000)
    bench.ask("first", project="lab", gpus=2)
    bench.later(5000)
    bench.ask("second", project="lab", gpus=1, walltime_ms=10 * MINUTE)
    bench.later(60 * MINUTE)
    move(bench, "first/1")
    assert granted(bench.free("x:1")) == []
    assert granted(bench.free("y:1")) == ["first:1"]
    bench.replay()


def test_of_two_alike_at_a_limit_the_one_that_moved_is_next_yet() -> None:
    bench = Bench(SchedulerSettings(qos=SETTINGS.qos, projects=(project("lab", limit_milli=2000),)))
    bench.join("a", slots(8))
    bench.ask("old", project="lab", gpus=2)
    bench.start("old:1")
    for session in ("first", "second"):
        bench.later(1000)
        bench.ask(session, project="lab", gpus=2)
    bench.later(60 * MINUTE)
    move(bench, "first/1")
    assert granted(bench.free("old:1")) == ["first:1"]
    assert granted(bench.free("first:1")) == ["second:1"]
    bench.replay()
