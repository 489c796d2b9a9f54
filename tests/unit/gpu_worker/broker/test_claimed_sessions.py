"""A node that somebody controls says whose lease is whose: each notebook keeps its own session, and has no other."""

import pytest

from bulletin.ids import LeaseId, RequestId, SessionId, UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.metering import Metering
from gpu_worker.broker.session_names import SessionNames
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import FakeHub
from tests.unit.gpu_worker.broker.two_notebooks import (
    KERNELS,
    claim,
    forget_agents,
    hears,
    prepared,
    recorded,
    restart,
    says,
)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_node_gives_nobody_the_session_of_another_users_notebook(
    pool: BrokerParts, hub: FakeHub, is_restarted: bool
) -> None:
    """A node knows the session of each notebook that had a cell there, and its owner has a notebook of their own."""
    says(pool, "ann", wire.Submit(request=RequestId("r")))
    session = prepared(pool).session
    if is_restarted:
        restart(pool, hub)
    claim(pool, session=session)
    says(pool, "eve", wire.Submit(request=RequestId("r")))
    assert hears(pool, session) == ([] if is_restarted else ["ann"])


def test_a_notebook_keeps_its_session_whatever_a_node_says_that_it_has_of_it(pool: BrokerParts) -> None:
    says(pool, "ann", wire.Submit(request=RequestId("r")))
    session = prepared(pool).session
    claim(pool, session=SessionId("junk"), user=UserName("ann"), kernel=KERNELS["ann"])
    says(pool, "ann")
    assert hears(pool, session) == ["ann"]


@pytest.mark.parametrize("order", [("older", "newer"), ("newer", "older")], ids=", then ".join)
def test_a_notebook_keeps_the_session_by_which_it_was_granted_something_last(
    pool: BrokerParts, hub: FakeHub, order: tuple[str, str]
) -> None:
    """A node tells a broker that was restarted of a session that the notebook had before the one that it has."""
    names = SessionNames("secret")
    sessions = {lease: names.draw(UserName("ann"), KERNELS["ann"]) for lease in order}
    open_leases = [recorded(sessions["older"], "older", 1), recorded(sessions["newer"], "newer", 2, "honest")]
    pool.shell.metering = Metering(pool.shell.scheduler.state, open_leases, [], 0)
    restart(pool, hub)
    for lease in order:
        node = "honest" if lease == "newer" else "lying"
        claim(pool, node, lease=LeaseId(lease), session=sessions[lease], user=UserName("ann"), kernel=KERNELS["ann"])
    says(pool, "ann")
    assert hears(pool, sessions["newer"]) == ["ann"]
    assert hears(pool, sessions["older"]) == []


def test_a_notebook_that_has_asked_for_a_place_since_is_not_made_one_of_before(pool: BrokerParts, hub: FakeHub) -> None:
    old = SessionNames("secret").draw(UserName("ann"), KERNELS["ann"])
    pool.shell.metering = Metering(pool.shell.scheduler.state, [recorded(old, "l", pool.now_ms - 1)], [], 0)
    restart(pool, hub)
    says(pool, "ann", wire.Submit(request=RequestId("r")))
    session = prepared(pool).session
    claim(pool, lease=LeaseId("l"), session=old, user=UserName("ann"), kernel=KERNELS["ann"])
    says(pool, "ann")
    assert hears(pool, session) == ["ann"]


def test_a_notebook_has_its_session_again_at_a_broker_that_was_restarted(pool: BrokerParts, hub: FakeHub) -> None:
    says(pool, "ann", wire.Submit(request=RequestId("r")))
    session = prepared(pool).session
    lease = prepared(pool).lease
    node = pool.shell.nodes[pool.shell.active_leases[lease].agent].node
    restart(pool, hub)
    claim(pool, node, lease=lease, session=session, user=UserName("ann"), kernel=KERNELS["ann"])
    says(pool, "ann")
    assert hears(pool, session) == ["ann"]


@pytest.mark.parametrize("comes_first", [False, True])
def test_a_notebook_hears_of_its_lease_whether_it_or_its_agent_came_first_to_a_broker_that_was_restarted(
    pool: BrokerParts, hub: FakeHub, comes_first: bool
) -> None:
    names = SessionNames("secret")
    session = names.draw(UserName("ann"), KERNELS["ann"])
    pool.shell.metering = Metering(pool.shell.scheduler.state, [recorded(session, "l", 1)], [], 0)
    restart(pool, hub)
    forget_agents(pool)
    if comes_first:
        says(pool, "ann")
    claim(pool, lease=LeaseId("l"), session=session, user=UserName("ann"), kernel=KERNELS["ann"])
    if not comes_first:
        says(pool, "ann")
    told = [(route, one.lease) for route, one in pool.to_routes if isinstance(one, wire.NodeMoved)]
    assert told == [(b"ann", "l")], "where its node is: that may have moved, too"
    assert pool.shell.active_leases[LeaseId("l")].token == "ann-token", "else its notebook is taken for one in silence"
    assert hears(pool, session) == ["ann"]
    says(pool, "ann", wire.Ping())
    assert hears(pool, session) == ["ann"], "and it stays so"
    says(pool, "ann")
    assert hears(pool, session) == ["ann"], "as when its link breaks"


@pytest.mark.parametrize(
    "session", [SessionNames("secret").draw(UserName("ann"), KERNELS["ann"]), SessionId("s-0123")], ids=["", "unproved"]
)
def test_what_a_broker_that_was_restarted_finds_in_its_ledger_is_the_notebooks_and_its_users(
    pool: BrokerParts, hub: FakeHub, session: SessionId
) -> None:
    """Also where a Bulletin named the session whose names have no proof."""
    open_lease = recorded(session, "l", 0)
    record = open_lease.lease
    pool.shell.metering = Metering(pool.shell.scheduler.state, [open_lease], [], 0)
    restart(pool, hub, {session: UserName("ann")})
    claim(pool, lease=record.lease, session=session, kernel=KERNELS["ann"], user=UserName("eve"))
    lease = pool.shell.scheduler.state.leases[record.lease]
    assert (lease.user, lease.session) == ("ann", session)
    says(pool, "ann")
    assert hears(pool, session) == ["ann"]


def test_a_node_says_of_no_lease_that_was_granted_whose_it_is(pool: BrokerParts) -> None:
    says(pool, "eve", wire.Submit(request=RequestId("r")))
    granted = prepared(pool)
    node = "honest" if pool.shell.active_leases[granted.lease].agent == "agent-honest" else "lying"
    claim(pool, node, lease=granted.lease, user=UserName("ann"), kernel=KERNELS["ann"], session=granted.session)
    lease = pool.shell.scheduler.state.leases[granted.lease]
    assert (lease.user, lease.session) == ("eve", granted.session)
