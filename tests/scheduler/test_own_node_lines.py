"""Who waits for a node of their own stands in nobody's way in the pool, and takes nobody's turn there."""

import sys

from bulletin.ids import AgentId, CellId, ProjectId, RequestId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Reclaim
from gpu_worker.scheduler.estimates.explain import waiting
from gpu_worker.scheduler.policy.projects import Project, QoS
from tests.scheduler.bench import MINUTE, models, slots
from tests.scheduler.own_node_pool import QOS, Pool, granted


def test_whoever_waits_for_the_pool_starts_on_the_own_node_as_soon_as_that_has_room() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(1), "ann")
    pool.start("ann1")
    pool.start("eve1")
    assert granted(pool.ask("ann2")) == {}
    assert granted(pool.end("ann1")) == {"ann2": "anns"}


def test_whoever_waits_starts_on_the_own_node_when_that_comes() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.start("eve1")
    assert granted(pool.ask("bob1")) == {}
    assert granted(pool.ask("ann1")) == {}
    assert granted(pool.join("anns", slots(1), "ann")) == {"ann1": "anns"}


def test_whoever_would_delay_one_that_waits_for_the_own_node_alone_has_the_pools_gpu() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("ann1")
    assert granted(pool.ask("ann2", gpus=2)) == {}
    assert granted(pool.ask("ann3")) == {"ann3": "shared"}
    assert granted(pool.end("ann1")) == {"ann2": "anns"}


def test_whoever_is_over_in_time_starts_beside_one_that_waits_for_the_own_node_alone() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("ann1")
    pool.start("eve1")
    assert granted(pool.ask("ann2", gpus=2)) == {}
    assert granted(pool.ask("ann3", walltime_ms=10 * MINUTE)) == {"ann3": "anns"}
    assert granted(pool.ask("ann4")) == {}, "the pool is full, and it would be in the way of ann2"
    assert granted(pool.end("eve1")) == {"ann4": "shared"}


def test_a_start_on_the_own_node_is_no_turn_of_the_project_to_pass_others_in_the_pool() -> None:
    def next_of_the_pool(owner: str) -> dict[str, str]:
        pool = Pool(Project(id=ProjectId("p")), Project(id=ProjectId("q"), priority=10))
        pool.join("shared", slots(1))
        if owner:
            pool.join("anns", slots(1), owner)
            pool.start("ann1")
        pool.start("eve1", project="q")
        if owner:
            pool.ask("ann2")
        pool.ask("bob1")
        pool.now_ms += pool.scheduler.state.qos["interactive"].patience_ms + MINUTE
        pool.ask("eve2", project="q")
        pool.say(ev.Tick())
        if owner:
            assert granted(pool.end("ann1")) == {"ann2": "anns"}
        return granted(pool.end("eve1"))

    assert next_of_the_pool("") == {"bob1": "shared"}
    assert next_of_the_pool("ann") == {"bob1": "shared"}


def test_where_nothing_has_changed_nobody_is_looked_at_anew() -> None:
    assert _calls_of_a_tick(80) - _calls_of_a_tick(8) < 5 * 72, "of one request that is looked at there are hundreds"


def _calls_of_a_tick(waiting: int) -> int:
    """Count the calls of functions in a step in which nothing happens, while so many wait who have brought a node."""
    pool, calls = Pool(), [0]
    pool.join("shared", slots(1))
    pool.start("eve1")
    for number in range(waiting // 4):
        user = f"user{number}-"
        pool.join(f"node{number}", slots(1), user)
        pool.start(f"{user}0", user=user)
        for one in range(1, 5):
            assert granted(pool.ask(f"{user}{one}", user=user)) == {}
    pool.now_ms += 1000
    pool.say(ev.Tick())

    def count(_frame: object, event: str, _arg: object) -> None:
        calls[0] += event == "call"

    sys.setprofile(count)
    try:
        pool.scheduler.step(ev.Tick(), pool.now_ms + 1)
    finally:
        sys.setprofile(None)
    return calls[0]


def test_whoever_waits_for_the_own_node_alone_is_told_so() -> None:
    pool = Pool()
    pool.join("shared", models(1, "NVIDIA T4", 16))
    pool.join("anns", models(1, "NVIDIA H100", 80), "ann")
    pool.start("ann1", gpu_type="H100")
    assert granted(pool.ask("ann2", gpu_type="H100")) == {}
    said = waiting(pool.scheduler.state, RequestId("ann2/2"), pool.now_ms)
    assert said is not None
    assert "busy on the node that you have brought" in said.reason
    assert said.wait_ms == 30 * MINUTE


def test_nobody_stands_before_another_on_a_node_of_ones_own() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    for user in ("bob", "ann"):
        pool.join(f"{user}s", slots(2), user)
        pool.start(f"{user}1", gpus=2)
    for session in ("bob2", "bob3", "ann2", "ann3"):
        assert granted(pool.ask(session, gpus=2)) == {}
    said = [waiting(pool.scheduler.state, name, pool.now_ms) for name in pool.scheduler.state.pending]
    assert [one.position for one in said if one is not None] == [1, 2, 1, 2]


def test_one_that_waits_for_the_own_node_alone_takes_nobodys_turn_in_the_pool() -> None:
    """Of several requests of a user one has the right of who has waited for their patience in the pool (6)."""

    def next_of_the_pool(owner: str) -> dict[str, str]:
        pool = Pool(Project(id=ProjectId("p")), Project(id=ProjectId("q"), priority=10))
        pool.join("shared", slots(1))
        pool.start("eve1", project="q")
        if owner:
            pool.join("anns", slots(2), owner)
            pool.start("ann1", gpus=2)
            assert granted(pool.ask("ann2", gpus=2)) == {}
        pool.now_ms += MINUTE
        pool.ask("ann3")
        pool.now_ms += pool.scheduler.state.qos["interactive"].patience_ms + MINUTE
        pool.ask("eve2", project="q")
        pool.say(ev.Tick())
        found = granted(pool.end("eve1"))
        if owner:
            assert granted(pool.end("ann1")) == {"ann2": "anns"}
        return found

    assert next_of_the_pool("") == {"ann3": "shared"}
    assert next_of_the_pool("ann") == {"ann3": "shared"}


def test_one_that_is_late_and_turns_to_the_own_node_leaves_nothing_in_the_line_of_the_pool() -> None:
    """Where its project has others give way for it, and for who is late (6)."""
    batch = QoS(name="batch", priority=1, walltime_ms=480 * MINUTE, queued_per_user=8, min_runtime_ms=0)
    pool = Pool(Project(id=ProjectId("p"), guaranteed_milli=1000), qos=(*QOS, batch))
    pool.join("anns", slots(1), "ann")
    pool.join("shared", slots(1))
    pool.start("ann1")
    pool.start("eve1", qos="batch")
    pool.say(ev.NodeDrained(AgentId("shared")))
    pool.ask("ann2")
    pool.now_ms += pool.scheduler.state.qos["interactive"].patience_ms + MINUTE
    pool.say(ev.Tick())
    pool.say(ev.CellEnded(pool.lease_of("ann1"), CellId("cell of ann1")))
    assert granted(pool.say(ev.LeaseEnded(pool.lease_of("ann1")))) == {"ann2": "anns"}
    pool.say(ev.CellStarted(pool.lease_of("ann2"), CellId("cell of ann2")))
    pool.say(ev.NodeDrained(AgentId("shared"), is_drained=False))
    asked = pool.ask("bob1")
    assert [one.lease for one in asked if isinstance(one, Reclaim)] == [pool.lease_of("eve1")]


def test_all_that_have_waited_for_their_patience_are_late_at_once_on_the_own_node_and_beside_it() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("eve1")
    pool.start("ann1", gpus=2)
    pool.ask("ann2", gpus=2)
    pool.ask("ann3", gpus=2)
    pool.ask("ann4")
    pool.now_ms += pool.scheduler.state.qos["interactive"].patience_ms
    pool.say(ev.Tick())
    pending = pool.scheduler.state.pending.values()
    assert {str(one.session): one.entry.key.is_early for one in pending} == dict.fromkeys(
        ("ann2", "ann3", "ann4"), False
    )


def test_who_was_late_in_the_pool_has_no_second_such_turn_by_a_detour_over_the_own_node() -> None:
    """Of several requests of one user one has this right in each such time (6)."""
    pool = Pool(Project(id=ProjectId("p")), Project(id=ProjectId("q"), priority=10))
    pool.join("shared", slots(1))
    pool.start("eve0", project="q")
    pool.join("anns", slots(2), "ann")
    pool.start("ann0", gpus=2)
    pool.ask("ann1", gpus=2)
    pool.ask("ann2")
    pool.now_ms += pool.scheduler.state.qos["interactive"].patience_ms + MINUTE
    pool.say(ev.Tick())
    assert granted(pool.end("eve0")) == {"ann2": "shared"}
    pool.now_ms += MINUTE
    pool.ask("eve1", project="q")
    pool.ask("eve2", project="q")
    assert granted(pool.join("big", slots(2))) == {"eve1": "big", "eve2": "big"}
    (one,) = (one for one in pool.scheduler.state.pending.values() if one.session == "ann1")
    assert (one.lane, one.entry.key.is_early) == ("gpu", True)
