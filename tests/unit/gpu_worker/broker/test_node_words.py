"""A node that somebody controls says much, and of others: it is heard of its own cells, in words that can be read."""

import asyncio
from typing import Any

from msgspec import structs

from bulletin.codes import LeaseEnd
from bulletin.ids import AgentId, CellId, LeaseId, RequestId
from bulletin.wire import messages as wire
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.node_reports import done
from tests.unit.gpu_worker.broker.two_notebooks import (
    prepared,
    says,
)


def test_a_node_that_connects_without_end_is_taken_in_so_often_and_told_why(pool: BrokerParts) -> None:
    def come(route: int, node: str = "lying") -> None:
        message = structs.replace(pool.registration(node), process="one", clock_ms=None)
        asyncio.run(pool.agents.take(f"{node}-{route}".encode(), message))

    for route in range(1_000):
        come(route)
    taken = [said for _, said in pool.to_routes if isinstance(said, wire.Registered)]
    [refusal] = [said for _, said in pool.to_routes if isinstance(said, wire.Refusal)]
    assert len(taken) <= 150
    assert "again and again" in refusal.sentence
    assert "'lying'" in refusal.sentence
    come(0, "honest")
    assert isinstance(pool.to_routes[-1][1], wire.Registered), "others are taken in"
    pool.now_ms += 10_000
    come(1_000)
    assert isinstance(pool.to_routes[-1][1], wire.Registered), "so is it, in time"


def test_a_node_says_to_notebooks_one_line_that_can_be_read(pool: BrokerParts) -> None:
    says(pool, "ann", wire.Submit(request=RequestId("r")))
    granted = prepared(pool)
    node = pool.shell.nodes[pool.shell.active_leases[granted.lease].agent].node
    pool.to_routes.clear()
    pool.report(
        node,
        wire.LeaseOver(lease=granted.lease, code=LeaseEnd.CANNOT_START, sentence="\x1b[2J\u202ebad\nsecond" * 5_000),
    )
    [sentence] = [said.sentence for _, said in pool.to_routes if isinstance(said, wire.Revoked)]
    assert sentence.isprintable()
    assert 0 < len(sentence) <= 1_000
    says(pool, "eve", wire.Join(request=RequestId("j"), cell=CellId("c"), agent=AgentId("agent-lying")))
    asked = next(said for said in pool.to_agents if isinstance(said, wire.HandOver))
    pool.report("lying", wire.HandedOver(query=asked.query, sentence="\x1b]0;mine\x07no\n" * 5_000))
    [sentence] = [said.sentence for _, said in pool.to_routes if isinstance(said, wire.Refusal)]
    assert sentence.isprintable()
    assert 0 < len(sentence) <= 1_000


def test_a_node_hands_over_no_cell_of_another_node(pool: BrokerParts) -> None:
    says(pool, "ann", wire.Submit(request=RequestId("r")))
    granted = prepared(pool)
    node = pool.shell.active_leases[granted.lease].agent
    other = next(agent for agent in pool.shell.nodes if agent != node)
    says(pool, "eve", wire.Join(request=RequestId("j"), cell=CellId("c"), agent=other))
    asked = next(said for said in pool.to_agents if isinstance(said, wire.HandOver))
    pool.to_routes.clear()
    pool.report(
        "honest" if other == AgentId("agent-honest") else "lying",
        wire.HandedOver(query=asked.query, lease=granted.lease, slots=granted.slots, walltime_ms=1),
    )
    assert pool.shell.active_leases[granted.lease].session == granted.session
    [(route, told)] = pool.to_routes
    assert route == b"eve"
    assert isinstance(told, wire.Refusal)
    assert "another node" in told.sentence


def note(cell: str, since_ms: int, **changes: Any) -> wire.CellNote:
    one = wire.CellNote(
        cell=CellId(cell), agent=AgentId("agent-honest"), node="honest", state="running", line="x", since_ms=since_ms
    )
    return structs.replace(one, **changes)


def test_a_node_that_lists_cells_without_end_hides_none_of_another_nodes(pool: BrokerParts) -> None:
    says(pool, "ann", wire.Find())
    query = next(said for said in pool.to_agents if isinstance(said, wire.ListCells)).query
    pool.to_routes.clear()
    made_up = tuple(note(f"made-up-{number}", -number) for number in range(5_000))
    pool.report("lying", wire.Listed(query=query, cells=made_up))
    pool.report("honest", wire.Listed(query=query, cells=(note("hers", 3_600_000),)))
    [(_, found)] = pool.to_routes
    assert isinstance(found, wire.Found)
    assert "hers" in {one.cell for one in found.cells}
    assert len(found.cells) <= 100


def test_a_node_lists_its_own_cells_and_no_others(pool: BrokerParts) -> None:
    """It says that a cell is another node's, by a name that a terminal obeys, and since before there were computers."""
    says(pool, "ann", wire.Find())
    query = next(said for said in pool.to_agents if isinstance(said, wire.ListCells)).query
    pool.to_routes.clear()
    pool.report("honest", wire.Listed(query=query, cells=()))
    pool.report("lying", wire.Listed(query=query, cells=(note("c", 10**30, node="honest\x1b[2J", label="\x1bc"),)))
    [(_, found)] = pool.to_routes
    assert isinstance(found, wire.Found)
    [one] = found.cells
    assert (one.agent, one.node) == ("agent-lying", "lying")
    assert one.label.isprintable()
    assert 0 <= one.since_ms <= 10 * 366 * 24 * 3_600_000


def test_cells_that_a_node_makes_up_without_end_take_little_of_the_broker_and_its_ledger(
    pool: BrokerParts,
) -> None:
    async def flood(node: str, number: int) -> None:
        for at in range(number):
            await pool.agents.take(node.encode(), done(lease=LeaseId(f"{node}-{at}"), slots=()))

    asyncio.run(flood("lying", 20_000))
    assert pool.writer.unwritten <= 6_000
    before = pool.writer.unwritten
    asyncio.run(flood("honest", 10))
    assert pool.writer.unwritten == before + 10, "others' are recorded"
