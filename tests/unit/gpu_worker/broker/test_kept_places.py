"""A place that the hub has reserved for a notebook: it is for a cell that asks for what was reserved."""

import asyncio

import pytest
from msgspec import structs

from bulletin.ids import CellId, KernelId, LeaseId, RequestId, SessionId
from bulletin.kept_time import make_kept_cell
from bulletin.units import HOUR_MS, MINUTE_MS
from bulletin.wire import messages as wire
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ANN, BrokerParts

SESSION, NAME = SessionId("s"), RequestId("s/server-1")
RESERVED = wire.Submit(
    request=RequestId("server-1"),
    qos="reserved",
    is_qos_asked=False,
    label="Notebook with a GPU of its own",
    keep_ms=20 * MINUTE_MS,
    walltime_ms=HOUR_MS,
    keep_at_once=True,
)
#: What a cell of that notebook asks for.
CELL = structs.replace(RESERVED, label="", keep_at_once=False)


@pytest.fixture
def place(broker: BrokerParts) -> LeaseId:
    """A place that was reserved, and is kept for a notebook that is yet to come."""
    broker.join(slots=2)
    ask(broker, RESERVED)
    (lease,) = broker.shell.scheduler.state.leases
    broker.step(events.CellStarted(lease, make_kept_cell()))
    broker.to_sessions.clear()
    broker.to_agents.clear()
    return lease


def ask(broker: BrokerParts, message: wire.Submit) -> None:
    """What the broker does with a request of the notebook."""
    if not asyncio.run(broker.shell.find_kept(SESSION, NAME, message)):
        pending = PendingRequest(SESSION, KernelId("server-1"), ANN, message, broker.now_ms)
        asyncio.run(broker.shell.submit(NAME, pending))


@pytest.mark.parametrize("label", ["", "mine"])
def test_who_asks_for_what_was_reserved_has_it(broker: BrokerParts, place: LeaseId, label: str) -> None:
    ask(broker, structs.replace(CELL, label=label))
    ((session, told),) = broker.to_sessions
    assert isinstance(told, wire.Granted)
    assert (session, told.lease) == (SESSION, place)
    assert broker.to_agents == []


@pytest.mark.parametrize(
    "other",
    [
        {"gpus": 2, "qos": "batch", "keep_ms": 0},
        {"qos": "batch", "keep_ms": 0},
        {"gpu_memory_bytes": 1},
        {"walltime_ms": MINUTE_MS},
    ],
)
def test_who_asks_for_something_else_gives_it_back_and_has_that(
    broker: BrokerParts, place: LeaseId, other: dict[str, object]
) -> None:
    asked = structs.replace(CELL, **other)
    ask(broker, asked)
    assert broker.to_sessions == []
    assert broker.to_agents == [wire.Evict(lease=place, force=True)]
    broker.step(events.CellEnded(place, CellId("kept")))
    broker.step(events.LeaseEnded(place))
    broker.to_agents.clear()
    ask(broker, asked)  # kernels say it again until they are answered
    assert place not in broker.shell.scheduler.state.leases
    if "gpu_memory_bytes" not in other:  # which no GPU has here
        prepared = [said for said in broker.to_agents if isinstance(said, wire.Prepare)]
        assert [said.keep_ms for said in prepared] == [asked.keep_ms]
