"""A node that somebody controls says of no lease that it is over: its notebook goes on elsewhere, in its turn."""

import pytest

from bulletin.codes import LeaseEnd
from bulletin.ids import AgentId, CellId, LeaseId, RequestId, UserName
from bulletin.units import HOUR_MS
from bulletin.wire import messages as wire
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.two_notebooks import (
    KERNELS,
    claim,
    grants,
    hears,
    let_go_by,
    prepared,
    says,
)


@pytest.mark.parametrize("has_begun", [False, True], ids=["no cell", "a cell"])
def test_a_node_that_never_says_that_a_lease_is_over_keeps_its_notebook_from_others_for_a_bounded_time(
    pool: BrokerParts, has_begun: bool
) -> None:
    says(pool, "ann", wire.Submit(request=RequestId("r"), walltime_ms=HOUR_MS // 2))
    granted = prepared(pool)
    node = pool.shell.active_leases[granted.lease].agent.removeprefix("agent-")
    if has_begun:
        pool.report(node, wire.CellBegan(lease=granted.lease, cell=CellId("c")))
    says(pool, "ann", wire.Submit(request=RequestId("r2"), walltime_ms=HOUR_MS // 2))
    let_go_by(pool, 89 if has_begun else 9, "honest", "lying")
    assert grants(pool, granted.lease) == [], "it may be at work yet"
    let_go_by(pool, 3, "honest", "lying")
    [elsewhere] = grants(pool, granted.lease)
    assert (elsewhere.user, elsewhere.kernel) == ("ann", KERNELS["ann"])
    assert elsewhere.session != granted.session
    assert hears(pool, elsewhere.session) == ["ann"]
    assert wire.Evict(lease=granted.lease, force=True) in pool.to_agents
    state = pool.shell.scheduler.state
    assert granted.lease in state.leases, "its slots are not given to anybody"
    says(pool, "ann")
    assert hears(pool, elsewhere.session) == ["ann"], "also with its next words"


def test_who_waits_for_a_cell_on_a_node_that_is_not_heard_waits_on(pool: BrokerParts) -> None:
    """Its cell may go on there, and is not to run twice."""
    pool.agents._keep_ms = 24 * HOUR_MS
    says(pool, "ann", wire.Submit(request=RequestId("r"), walltime_ms=60_000))
    granted = prepared(pool)
    node = pool.shell.active_leases[granted.lease].agent.removeprefix("agent-")
    pool.report(node, wire.CellBegan(lease=granted.lease, cell=CellId("c")))
    pool.agents.known[AgentId(f"agent-{node}")].is_away = True
    says(pool, "ann", wire.Submit(request=RequestId("r2")))
    let_go_by(pool, 70, *{"honest", "lying"} - {node})
    assert grants(pool, granted.lease) == []


@pytest.mark.parametrize("is_old", [False, True], ids=["one that nobody granted", "the lease that ended"])
def test_a_node_keeps_no_notebook_from_other_nodes_by_a_lease_that_it_does_not_have(
    pool: BrokerParts, is_old: bool
) -> None:
    """It had a cell of the notebook, says that it is over, and comes again with it."""
    says(pool, "ann", wire.Submit(request=RequestId("r")))
    granted = prepared(pool)
    node = pool.shell.nodes[pool.shell.active_leases[granted.lease].agent].node
    pool.report(node, wire.LeaseOver(lease=granted.lease, code=LeaseEnd.LEFT, sentence=""))
    claim(
        pool,
        node,
        lease=granted.lease if is_old else LeaseId("l-made-up"),
        session=granted.session,
        user=UserName("ann"),
        kernel=KERNELS["ann"],
    )
    says(pool, "ann", wire.Submit(request=RequestId("r2")))
    assert prepared(pool).lease != granted.lease
    assert pool.shell.scheduler.state.pending == {}


def test_a_request_that_waits_for_a_lease_which_is_never_over_goes_on_with_its_age_and_its_place(
    pool: BrokerParts,
) -> None:
    """An admin put it first, and no other node is free: whoever came later stands behind it yet."""
    says(pool, "ann", wire.Submit(request=RequestId("r"), walltime_ms=HOUR_MS // 2))
    hers = prepared(pool)
    says(pool, "eve", wire.Submit(request=RequestId("r"), walltime_ms=4 * HOUR_MS, qos="batch"))
    others = prepared(pool)
    for lease in (hers.lease, others.lease):
        node = pool.shell.active_leases[lease].agent.removeprefix("agent-")
        pool.report(node, wire.CellBegan(lease=lease, cell=CellId("c")))
    says(pool, "ann", wire.Submit(request=RequestId("r2"), walltime_ms=HOUR_MS // 2))
    [before] = pool.shell.scheduler.state.pending.values()
    pool.step(events.RequestPutFirst(before.id))
    let_go_by(pool, 89, "honest", "lying")
    pool.to_routes.clear()
    let_go_by(pool, 3, "honest", "lying")
    [revoked] = [said for _, said in pool.to_routes if isinstance(said, wire.Revoked)]
    assert (revoked.lease, revoked.code) == (hers.lease, LeaseEnd.NOT_RELEASED)
    [after] = pool.shell.scheduler.state.pending.values()
    assert after.session != before.session
    assert (after.lease, after.since_ms) == (before.lease, before.since_ms)
    assert (after.entry.key.turn, after.entry.key.seq) == (before.entry.key.turn, before.entry.key.seq)
    assert after.entry.key.turn < 0
    says(pool, "ann", wire.Submit(request=RequestId("r2"), walltime_ms=HOUR_MS // 2))
    assert list(pool.shell.scheduler.state.pending) == [after.id], "said again, it is the same one"
    node = pool.shell.active_leases[others.lease].agent.removeprefix("agent-")
    pool.report(node, wire.LeaseOver(lease=others.lease, code=LeaseEnd.LEFT, sentence=""))
    assert (prepared(pool).session, prepared(pool).user) == (after.session, "ann")


def test_a_request_that_goes_on_by_another_session_is_withdrawn_by_its_kernel(pool: BrokerParts) -> None:
    says(pool, "ann", wire.Submit(request=RequestId("r"), walltime_ms=HOUR_MS // 2))
    hers = prepared(pool)
    says(pool, "eve", wire.Submit(request=RequestId("r"), walltime_ms=4 * HOUR_MS, qos="batch"))
    pool.report(
        pool.shell.active_leases[prepared(pool).lease].agent.removeprefix("agent-"),
        wire.CellBegan(lease=prepared(pool).lease, cell=CellId("c")),
    )
    says(pool, "ann", wire.Submit(request=RequestId("r2")))
    let_go_by(pool, 20, "honest", "lying")
    [waits] = pool.shell.scheduler.state.pending.values()
    assert waits.session != hers.session
    assert hears(pool, waits.session) == ["ann"]
    says(pool, "ann", wire.Withdraw(request=RequestId("r2")))
    assert pool.shell.scheduler.state.pending == {}
    assert pool.shell.pending_requests == {}
