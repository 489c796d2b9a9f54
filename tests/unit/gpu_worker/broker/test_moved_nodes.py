"""A node comes from another address: the notebooks that have something there are told, also those that come later."""

from msgspec import structs

from bulletin.ids import RequestId
from bulletin.wire import messages as wire
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.node_reports import held
from tests.unit.gpu_worker.broker.two_notebooks import prepared, says

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
