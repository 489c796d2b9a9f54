"""A node that somebody controls says much, and of others: it is heard of its own cells, in words that can be read."""

import asyncio
from typing import Any

from msgspec import structs

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, UserName
from bulletin.wire import messages as wire
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.lying_nodes.two_notebooks import (
    prepared,
    says,
)


def test_a_node_that_connects_without_end_is_taken_in_so_often_and_told_why(broker: BrokerParts) -> None:
    def come(route: int, node: str = "lying") -> None:
        message = structs.replace(broker.registration(node), process="one", clock_ms=None)
        asyncio.run(broker.agents.take(f"{node}-{route}".encode(), message))

    for route in range(1_000):
        come(route)
    taken = [said for _, said in broker.to_routes if isinstance(said, wire.Registered)]
    [refusal] = [said for _, said in broker.to_routes if isinstance(said, wire.Refusal)]
    assert len(taken) <= 150
    assert "again and again" in refusal.sentence
    assert "'lying'" in refusal.sentence
    come(0, "honest")
    assert isinstance(broker.to_routes[-1][1], wire.Registered), "others are taken in"
    broker.now_ms += 10_000
    come(1_000)
    assert isinstance(broker.to_routes[-1][1], wire.Registered), "so is it, in time"


def test_a_node_says_to_notebooks_one_line_that_can_be_read(broker: BrokerParts) -> None:
    says(broker, "ann", wire.Submit(request=RequestId("r")))
    granted = prepared(broker)
    node = broker.shell.nodes[broker.shell.active_leases[granted.lease].agent].node
    broker.to_routes.clear()
    broker.report(
        node,
        wire.LeaseOver(lease=granted.lease, code=LeaseEnd.CANNOT_START, sentence="\x1b[2J\u202ebad\nsecond" * 5_000),
    )
    [sentence] = [said.sentence for _, said in broker.to_routes if isinstance(said, wire.Revoked)]
    assert sentence.isprintable()
    assert 0 < len(sentence) <= 1_000
    says(broker, "eve", wire.Join(request=RequestId("j"), cell=CellId("c"), agent=AgentId("agent-lying")))
    asked = next(said for said in broker.to_agents if isinstance(said, wire.HandOver))
    broker.report("lying", wire.HandedOver(query=asked.query, sentence="\x1b]0;mine\x07no\n" * 5_000))
    [sentence] = [said.sentence for _, said in broker.to_routes if isinstance(said, wire.Refusal)]
    assert sentence.isprintable()
    assert 0 < len(sentence) <= 1_000


def test_a_node_hands_over_no_cell_of_another_node(broker: BrokerParts) -> None:
    says(broker, "ann", wire.Submit(request=RequestId("r")))
    granted = prepared(broker)
    node = broker.shell.active_leases[granted.lease].agent
    other = next(agent for agent in broker.shell.nodes if agent != node)
    says(broker, "eve", wire.Join(request=RequestId("j"), cell=CellId("c"), agent=other))
    asked = next(said for said in broker.to_agents if isinstance(said, wire.HandOver))
    broker.to_routes.clear()
    broker.report(
        "honest" if other == AgentId("agent-honest") else "lying",
        wire.HandedOver(query=asked.query, lease=granted.lease, slots=granted.slots, walltime_ms=1),
    )
    assert broker.shell.active_leases[granted.lease].session == granted.session
    [(route, told)] = broker.to_routes
    assert route == b"eve"
    assert isinstance(told, wire.Refusal)
    assert "another node" in told.sentence


def note(cell: str, since_ms: int, **changes: Any) -> wire.CellNote:
    one = wire.CellNote(
        cell=CellId(cell), agent=AgentId("agent-honest"), node="honest", state="running", line="x", since_ms=since_ms
    )
    return structs.replace(one, **changes)


def test_a_node_that_lists_cells_without_end_hides_none_of_another_nodes(broker: BrokerParts) -> None:
    says(broker, "ann", wire.Find())
    query = next(said for said in broker.to_agents if isinstance(said, wire.ListCells)).query
    broker.to_routes.clear()
    made_up = tuple(note(f"made-up-{number}", -number) for number in range(5_000))
    broker.report("lying", wire.Listed(query=query, cells=made_up))
    broker.report("honest", wire.Listed(query=query, cells=(note("hers", 3_600_000),)))
    [(_, found)] = broker.to_routes
    assert isinstance(found, wire.Found)
    assert "hers" in {one.cell for one in found.cells}
    assert len(found.cells) <= 100


def test_a_node_lists_its_own_cells_and_no_others(broker: BrokerParts) -> None:
    """It says that a cell is another node's, by a name that a terminal obeys, and since before there were computers."""
    says(broker, "ann", wire.Find())
    query = next(said for said in broker.to_agents if isinstance(said, wire.ListCells)).query
    broker.to_routes.clear()
    broker.report("honest", wire.Listed(query=query, cells=()))
    broker.report("lying", wire.Listed(query=query, cells=(note("c", 10**30, node="honest\x1b[2J", label="\x1bc"),)))
    [(_, found)] = broker.to_routes
    assert isinstance(found, wire.Found)
    [one] = found.cells
    assert (one.agent, one.node) == ("agent-lying", "lying")
    assert one.label.isprintable()
    assert 0 <= one.since_ms <= 10 * 366 * 24 * 3_600_000


def test_cells_that_a_node_makes_up_without_end_take_little_of_the_broker_and_its_ledger(broker: BrokerParts) -> None:
    usage = wire.CellUsage(outcome=CellOutcome.RETURNED, ran_ms=1, held_ms=1)
    done = wire.CellDone(
        lease=LeaseId("l"),
        session=SessionId("s"),
        cell=CellId("c"),
        user=UserName("ann"),
        project=ProjectId("maths"),
        qos="interactive",
        slots=(),
        usage=usage,
    )

    async def flood(node: str, number: int) -> None:
        for at in range(number):
            await broker.agents.take(node.encode(), structs.replace(done, lease=LeaseId(f"{node}-{at}")))

    asyncio.run(flood("lying", 20_000))
    assert broker.writer.unwritten <= 6_000
    before = broker.writer.unwritten
    asyncio.run(flood("honest", 10))
    assert broker.writer.unwritten == before + 10, "others' are recorded"
