"""A node that a user has brought comes and goes: who needs it waits for a while, and is told so."""

from bulletin.ids import AgentId, RequestId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import EndLease, Refuse
from gpu_worker.scheduler.estimates.explain import waiting
from gpu_worker.scheduler.nodes.own_nodes import AWAY_MS
from tests.scheduler.bench import MINUTE, slots
from tests.scheduler.own_node_pool import Pool, granted, refused


def test_whoever_waits_for_the_own_node_alone_waits_on_while_that_is_gone_for_a_moment_and_is_told_so() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("ann1")
    assert pool.ask("ann2", gpus=2) == []
    pool.now_ms += MINUTE
    assert refused(pool.say(ev.AgentLost(AgentId("anns")))) == []
    assert pool.ask("ann3", gpus=2) == [], "nor is who asks meanwhile"
    said = waiting(pool.scheduler.state, RequestId("ann2/2"), pool.now_ms)
    assert said is not None
    assert "the node that you have brought is not there and is awaited for 10 min more" in said.reason
    pool.now_ms += MINUTE
    assert granted(pool.join("anns", slots(2), "ann")) == {"ann2": "anns"}
    pool.now_ms += AWAY_MS
    assert refused(pool.say(ev.Tick())) == []


def test_whoever_is_refused_since_the_own_node_is_gone_for_long_is_told_of_that() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("ann1")
    pool.ask("ann2", gpus=2)
    pool.say(ev.AgentLost(AgentId("anns")))
    (refusal,) = pool.refused_by(AWAY_MS)
    assert refusal.had_own_node
    (other,) = (one for one in pool.ask("eve1", gpus=2) if isinstance(one, Refuse))
    assert not other.had_own_node


def test_whoever_needs_the_own_node_waits_while_it_is_drained() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.say(ev.NodeDrained(AgentId("anns"), is_drained=True))
    assert pool.ask("ann1", gpus=2) == []
    said = waiting(pool.scheduler.state, RequestId("ann1/1"), pool.now_ms)
    assert said is not None
    assert "anns" in said.reason
    assert granted(pool.say(ev.NodeDrained(AgentId("anns"), is_drained=False))) == {"ann1": "anns"}


def test_after_a_restart_of_the_pool_nobody_is_refused_before_their_own_node_can_be_back() -> None:
    pool = Pool()
    pool.say(ev.OwnNodesAwaited({AgentId("anns"): UserName("ann")}, 5 * MINUTE))
    pool.join("shared", slots(1))
    assert pool.ask("ann1", gpus=2) == []
    assert refused(pool.ask("eve1", gpus=2)) != []
    assert granted(pool.join("anns", slots(2), "ann")) == {"ann1": "anns"}
    late = Pool()
    late.say(ev.OwnNodesAwaited({AgentId("anns"): UserName("ann")}, 5 * MINUTE))
    late.join("shared", slots(1))
    assert late.ask("ann1", gpus=2) == []
    assert len(late.refused_by(5 * MINUTE)) == 1


def test_where_nothing_but_a_node_of_somebodys_own_is_there_no_node_is_connected_to_the_pool() -> None:
    pool = Pool()
    pool.join("anns", slots(1), "ann")
    pool.ask("bob1")
    said = waiting(pool.scheduler.state, RequestId("bob1/1"), pool.now_ms)
    assert said is not None
    assert said.reason == "no node is connected to the pool"
    pool.start("ann1")
    pool.ask("ann2")
    said = waiting(pool.scheduler.state, RequestId("ann2/3"), pool.now_ms)
    assert said is not None
    assert "no node is connected to the pool" in said.reason
    assert "the node that you have brought has no room for it now" in said.reason


def test_while_the_pool_has_no_node_nobody_is_refused_for_what_somebody_has_brought() -> None:
    pool = Pool()
    pool.join("anns", slots(1), "ann")
    assert pool.ask("eve1", gpus=2) == []
    assert granted(pool.join("shared", slots(2))) == {"eve1": "shared"}


def test_its_cells_are_told_when_it_is_lost_and_who_asks_again_waits_for_the_pool() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(1), "ann")
    pool.start("ann1")
    (end,) = pool.say(ev.AgentLost(AgentId("anns")))
    assert isinstance(end, EndLease)
    assert granted(pool.ask("ann1")) == {"ann1": "shared"}


def test_an_agent_that_comes_back_has_its_cells_still_and_they_cost_nothing() -> None:
    pool = Pool()
    pool.join("anns", slots(1), "ann")
    pool.start("ann1")
    lease = pool.scheduler.state.leases[pool.lease_of("ann1")]
    held = ev.ReportedLease(
        lease.id, lease.session, lease.user, lease.home, lease.qos, lease.slots, lease.cell, lease.walltime_ms, 0
    )
    again = Pool()
    again.join("anns", slots(1), "ann", held=(held,))
    assert again.where() == {"ann1": "anns"}
    assert again.used() == 0
