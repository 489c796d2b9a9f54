"""A node comes from another address: the notebooks that have something there are told, also those that come later."""

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from bulletin.ids import AgentId, RequestId
from bulletin.wire import messages as wire
from gpu_worker.broker.agent_admission import AgentAdmission
from gpu_worker.node_registry import NodeRegistry
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import FakeHub
from tests.unit.gpu_worker.broker.node_reports import held
from tests.unit.gpu_worker.broker.two_notebooks import prepared, restart, says

NOW_AT = wire.AgentAddress(address="tcp://10.77.0.21:9003", public_key="")


def told(broker: BrokerParts) -> list[tuple[bytes, wire.NodeMoved]]:
    said = [(route, one) for route, one in broker.to_routes if isinstance(one, wire.NodeMoved)]
    broker.to_routes.clear()
    return said


def test_who_has_a_lease_of_a_node_is_told_where_that_is_now_and_so_is_who_was_away_meanwhile(
    pool: BrokerParts,
) -> None:
    says(pool, "ann", wire.Submit(request=RequestId("r")))
    given = prepared(pool)
    lease = given.lease
    says(pool, "eve", wire.Submit(request=RequestId("r")))  # has one of another node
    told(pool)
    node = pool.shell.nodes[pool.shell.active_leases[lease].agent]
    keeps = held(lease=lease, session=given.session, kernel=given.kernel, user=given.user, walltime_ms=1_800_000)
    moved = structs.replace(node, address=NOW_AT, held=(structs.replace(keeps, project=given.project),))
    pool.report(node.node, moved)
    assert told(pool) == [(b"ann", wire.NodeMoved(lease=lease, agent=NOW_AT))]
    pool.report(node.node, moved)
    assert told(pool) == [], "it is no news"
    says(pool, "ann")
    assert told(pool) == [(b"ann", wire.NodeMoved(lease=lease, agent=NOW_AT))]
    pool.report(node.node, wire.Prepared(lease=lease))
    [granted] = [one for _, one in pool.to_routes if isinstance(one, wire.Granted)]
    assert granted.agent == NOW_AT, "also who was not told of the grant yet"


def test_a_notebook_of_an_older_bulletin_is_told_nothing_that_it_cannot_read(pool: BrokerParts) -> None:
    says(pool, "ann", wire.Submit(request=RequestId("r")), hears_moves=False)
    node = pool.shell.nodes[pool.shell.active_leases[prepared(pool).lease].agent]
    says(pool, "ann", hears_moves=False)
    pool.report(node.node, structs.replace(node, address=NOW_AT))
    assert told(pool) == []


@pytest.mark.parametrize("goes_back", [False, True])
def test_a_node_that_is_reached_neither_where_it_was_nor_where_it_says_is_given_nothing_until_it_is(
    broker: BrokerParts, hub: FakeHub, tmp_path: Path, *, goes_back: bool
) -> None:
    """As where a firewall lets notebooks to some addresses of the nodes alone."""
    registry = NodeRegistry(tmp_path)
    registry.add("n1", "its key", 0, replaces=True)
    closed: set[str] = set()

    async def find_obstacle(address: str) -> str:
        return "Nothing answers there." if address in closed else ""

    broker.admit(AgentAdmission("secret", registry, lambda _: "its key", lambda _: None), find_obstacle)
    restart(broker, hub)
    node = structs.replace(broker.registration("n1"), agent=AgentId("n1"), clock_ms=1)
    come(broker, node)
    closed.add(NOW_AT.address)
    come(broker, structs.replace(node, address=NOW_AT, clock_ms=2))
    come(broker, wire.Ping())
    [absent] = broker.agents.absent_nodes
    assert (absent.node, absent.problem) == ("n1", "Nothing answers there."), "and whoever runs the pool is told why"
    says(broker, "ann", wire.Submit(request=RequestId("r")))
    assert grants_of(broker) == [], "nothing answers where it was"
    closed.clear()
    now = node.address if goes_back else NOW_AT
    come(broker, structs.replace(node, address=now, clock_ms=3))
    assert broker.agents.absent_nodes == ()
    assert len(grants_of(broker)) == 1
    assert broker.shell.nodes[AgentId("n1")].address == now


def come(broker: BrokerParts, message: wire.FromAgent) -> None:
    async def say() -> None:
        await broker.agents.take(b"n1", message)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    asyncio.run(say())


def grants_of(broker: BrokerParts) -> list[wire.Prepare]:
    return [said for said in broker.to_agents if isinstance(said, wire.Prepare)]
