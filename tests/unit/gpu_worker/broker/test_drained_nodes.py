"""Nodes that are to be empty: who reads why, and what becomes of that while a node is not heard."""

import asyncio

import pytest

from bulletin.ids import AgentId
from bulletin.wire import console
from gpu_worker.broker.ledger import Ledger
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, HOUR_MS, BrokerParts


def test_a_reason_that_was_written_before_all_could_read_it_is_shown_to_nobody(ledger: Ledger) -> None:
    old = {"agent": "agent-n1", "node": "n1", "is_drained": True, "by": "root", "why": "ann broke it"}
    ledger.append("node-drained", old, at_ms=1)
    broker = BrokerParts(ledger)
    asyncio.run(broker.console.recall())
    broker.join("n1")
    assert broker.console.drains.why(AgentId("agent-n1")) == ""
    broker.ask(ADMIN, console.Drain(node="n1", is_undone=True))
    broker.ask(ADMIN, console.Drain(node="n1", why="new disks"))
    after = BrokerParts(ledger)
    asyncio.run(after.console.recall())
    assert after.console.drains.why(AgentId("agent-n1")) == "new disks"


def test_a_node_that_is_not_heard_gets_no_cells_and_is_drained_at_its_time_after_that(broker: BrokerParts) -> None:
    agent, unreachable = AgentId("agent-n1"), broker.agents.unreachable
    broker.join("n1")
    broker.ask(ADMIN, console.Drain(node="n1", in_ms=2 * HOUR_MS))
    asyncio.run(unreachable.add(agent, "n1", "it has only old keys"))
    lease = broker.submit(ANN, "cell-a")
    assert broker.ask(ANN, console.AskAbout(id=lease)).request.reason == "node n1 is being drained"
    asyncio.run(unreachable.remove(agent, "n1"))
    assert isinstance(broker.ask(ANN, console.AskAbout(id=lease)), console.AboutRunning)
    assert broker.shell.scheduler.state.planned_drains.at_ms == {agent: 2 * HOUR_MS}
    asyncio.run(unreachable.add(agent, "n1", "it has only old keys"))
    broker.now_ms = 2 * HOUR_MS
    asyncio.run(unreachable.remove(agent, "n1"))
    assert agent in broker.shell.scheduler.state.drained, "its time has come meanwhile"


def test_a_node_that_was_left_out_and_lost_gets_cells_when_it_comes_again(broker: BrokerParts) -> None:
    agent = AgentId("agent-n1")
    broker.join("n1")
    asyncio.run(broker.agents.unreachable.add(agent, "n1", "it is not heard"))
    for _ in range(11):
        broker.now_ms += 1_000
        asyncio.run(broker.agents.tidy())
    assert not broker.agents.known
    broker.join("n1")
    lease = broker.submit(ANN, "cell-a")
    assert lease in broker.shell.scheduler.state.leases


@pytest.mark.parametrize("in_ms", [None, 2 * HOUR_MS])
def test_a_drain_that_is_undone_while_the_node_is_not_heard_gives_it_no_cells_before_it_is(
    broker: BrokerParts, in_ms: int | None
) -> None:
    agent, unreachable = AgentId("agent-n1"), broker.agents.unreachable
    broker.join("n1")
    broker.ask(ADMIN, console.Drain(node="n1", in_ms=in_ms))
    asyncio.run(unreachable.add(agent, "n1", "it is not heard"))
    broker.ask(ADMIN, console.Drain(node="n1", is_undone=True))
    lease = broker.submit(ANN, "cell-a")
    assert broker.ask(ANN, console.AskAbout(id=lease)).request.reason == "node n1 is being drained"
    asyncio.run(unreachable.remove(agent, "n1"))
    assert isinstance(broker.ask(ANN, console.AskAbout(id=lease)), console.AboutRunning)
    assert broker.shell.scheduler.state.planned_drains.at_ms == {}


def test_a_drain_is_planned_while_the_node_is_not_heard(broker: BrokerParts) -> None:
    agent, unreachable = AgentId("agent-n1"), broker.agents.unreachable
    broker.join("n1")
    asyncio.run(unreachable.add(agent, "n1", "it is not heard"))
    broker.ask(ADMIN, console.Drain(node="n1", in_ms=2 * HOUR_MS))
    assert agent in broker.shell.scheduler.state.drained
    asyncio.run(unreachable.remove(agent, "n1"))
    assert broker.shell.scheduler.state.planned_drains.at_ms == {agent: 2 * HOUR_MS}
    assert agent not in broker.shell.scheduler.state.drained
