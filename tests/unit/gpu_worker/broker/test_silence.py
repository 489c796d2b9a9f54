"""An agent that says nothing is lost; one that was not listened to is not."""

import asyncio

from bulletin.ids import CellId
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, BrokerParts


def listen(broker: BrokerParts, seconds: int) -> None:
    """Let time pass for a broker that looks once a second."""
    for _ in range(seconds):
        broker.now_ms += 1_000
        asyncio.run(broker.agents.tidy())


def test_an_agent_that_is_silent_while_the_broker_listens_is_lost(broker: BrokerParts) -> None:
    broker.join()
    listen(broker, 10)
    assert broker.agents.known
    listen(broker, 1)
    assert not broker.agents.known


def test_no_agent_is_lost_because_the_broker_stood_still(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.run(ADMIN, "runs")
    listen(broker, 2)
    broker.now_ms += 60_000
    asyncio.run(broker.agents.tidy())
    assert lease in broker.shell.scheduler.state.leases
    listen(broker, 8)
    assert broker.agents.known
    listen(broker, 1)
    assert not broker.agents.known, "it has said nothing since, either"


def test_an_agent_that_registers_again_on_its_connection_keeps_what_was_granted_since(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.submit(ADMIN, "new")
    broker.join()
    broker.step(events.CellStarted(lease, CellId("new")))
    assert broker.shell.scheduler.state.leases[lease].cell == "new"
