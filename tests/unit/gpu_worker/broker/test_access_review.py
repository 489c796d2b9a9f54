"""Access that is taken away is gone: also for a session that asks the broker for nothing."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from bulletin.ids import CellId, LeaseId
from bulletin.wire import messages as wire
from gpu_worker.broker.access_review import AccessReview
from gpu_worker.broker.identity import Hub, Identity
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ANN, BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub

MINUTE_MS = 60_000


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    hub.users["ann-token"] = {"name": "ann", "kind": "user", "scopes": [SCOPE]}
    thread = threading.Thread(target=hub.serve_forever)
    thread.start()
    yield hub
    hub.shutdown()
    hub.server_close()
    thread.join()


@pytest.fixture
def review(broker: BrokerParts, hub: FakeHub) -> AccessReview:
    where = Hub(url=f"http://127.0.0.1:{hub.server_address[1]}/hub/api", token="service")
    return AccessReview(Identity("own", where, SCOPE), broker.shell, broker.kernels, broker.clock_ms)


def look(broker: BrokerParts, review: AccessReview) -> list[wire.Message]:
    """What agents are told a while later."""
    broker.now_ms += 2 * MINUTE_MS
    broker.to_agents.clear()
    asyncio.run(review.review())
    return list(broker.to_agents)


@pytest.fixture
def runs(broker: BrokerParts) -> LeaseId:
    """A cell of ann's."""
    broker.join()
    lease = broker.submit(ANN, "cell-a", token="ann-token")
    broker.step(events.CellStarted(lease, CellId("cell-a")))
    return lease


def test_a_cell_is_interrupted_and_then_ended(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    assert look(broker, review) == []
    hub.users["ann-token"]["scopes"] = []
    (first,) = look(broker, review)
    assert isinstance(first, wire.CancelCell)
    assert (first.lease, first.hard) == (runs, False)
    (second,) = look(broker, review)
    assert isinstance(second, wire.CancelCell)
    assert second.hard


def test_the_cell_of_a_server_that_has_stopped_ends_as_it_would_and_no_other_begins(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    del hub.users["ann-token"]
    assert look(broker, review) == []
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    assert look(broker, review) == [wire.Evict(lease=runs)]
    broker.step(events.CellStarted(runs, CellId("cell-b")))
    (said,) = look(broker, review)
    assert isinstance(said, wire.CancelCell)


def test_a_session_without_a_cell_goes(broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId) -> None:
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    assert look(broker, review) == []
    del hub.users["ann-token"]
    assert look(broker, review) == [wire.Evict(lease=runs)]
    broker.step(events.CellStarted(runs, CellId("cell-b")))
    (said,) = look(broker, review)
    assert isinstance(said, wire.CancelCell)


def test_a_hub_that_does_not_answer_takes_nothing_from_anybody(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    assert runs in broker.shell.active_leases
    hub.status = 503
    assert look(broker, review) == []
