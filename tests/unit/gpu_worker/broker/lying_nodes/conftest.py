"""A broker of a hub, with two nodes of which one lies."""

from collections.abc import Iterator

import pytest

from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub
from tests.unit.gpu_worker.broker.lying_nodes.two_notebooks import KERNELS, restart


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    for user in KERNELS:
        hub.users[f"{user}-token"] = {"name": user, "kind": "user", "scopes": [SCOPE], "groups": ["maths"]}
    with hub.serving():
        yield hub


@pytest.fixture
def broker(broker: BrokerParts, hub: FakeHub) -> BrokerParts:
    """A broker of a hub with two nodes, and notebooks that hear what is said to their sessions."""
    restart(broker, hub)
    for node in ("honest", "lying"):
        broker.join(node)
    return broker
