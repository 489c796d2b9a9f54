"""Who may not use the pool any more learns nothing of it, whatever they ask by a connection that is still there."""

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from bulletin.codes import RefusalCode
from bulletin.ids import KernelId
from bulletin.picture_sight import hide_others
from bulletin.wire import messages as wire
from gpu_worker.broker import picture
from gpu_worker.broker.hub_answers import Hub
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.broker.joins import Joins
from gpu_worker.broker.kernels import Kernels
from gpu_worker.broker.session_names import SessionNames
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub

HELLO = wire.Hello(protocol=wire.PROTOCOL, version="1", token="ann-token", kernel=KernelId("k"))


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    hub.users["ann-token"] = {"name": "ann", "kind": "user", "scopes": [SCOPE]}
    with hub.serving():
        yield hub


async def draw(broker: BrokerParts, viewer: Person) -> wire.Picture:
    """What the broker's picture shows to somebody."""
    return await picture.draw(
        viewer,
        broker.shell,
        broker.agents,
        broker.ledger,
        broker.clock_ms,
        broker.console.drains.why,
        started_ms=0,
        counters={"malformed": 3},
        ledger_problem="db.inside:5432 refused the connection",
        serves_hub=True,
    )


def test_counters_are_for_admins(broker: BrokerParts) -> None:
    assert asyncio.run(draw(broker, ANN)).counters == {}
    assert asyncio.run(draw(broker, ADMIN)).counters == {"malformed": 3}


def test_what_the_ledgers_server_says_is_for_admins(broker: BrokerParts) -> None:
    assert asyncio.run(draw(broker, ANN)).ledger_problem == ""
    assert "db.inside" in asyncio.run(draw(broker, ADMIN)).ledger_problem


def test_what_the_page_leaves_of_an_admins_picture_is_what_the_broker_draws(broker: BrokerParts) -> None:
    """The page asks once for all of its readers, as an admin."""
    broker.join()
    for person in (ANN, EVE):
        broker.submit(person, f"of-{person.user}")
    whole, own = (asyncio.run(draw(broker, viewer)) for viewer in (ADMIN, ANN))
    assert hide_others(whole, ANN.user) == msgspec.structs.replace(own, project=whole.project)


def test_why_others_wait_is_theirs_to_know(broker: BrokerParts) -> None:
    """It names projects, and what is left of their budgets."""
    broker.join()
    broker.submit(ANN, "first")
    broker.submit(EVE, "second")
    for viewer, is_told in ((ANN, False), (EVE, True), (ADMIN, True)):
        (one,) = asyncio.run(draw(broker, viewer)).waiting
        assert bool(one.reason) is is_told
        assert (one.user == EVE.user) is is_told


@pytest.mark.parametrize("question", [wire.Look(), wire.Find()], ids=["look", "find"])
def test_the_hub_is_asked_again_for_every_question(broker: BrokerParts, hub: FakeHub, question: wire.Look) -> None:
    async def say(message: wire.Hello | wire.Look) -> None:
        broker.to_routes.clear()
        await kernels.take(b"r", message)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    async def look(viewer: Person) -> wire.Picture:
        return await draw(broker, viewer)

    async def main() -> None:
        await say(HELLO)
        await say(question)
        assert isinstance(broker.to_routes[0][1], wire.Picture | wire.Found)
        broker.now_ms += 61_000
        await say(question)
        assert isinstance(broker.to_routes[0][1], wire.Picture | wire.Found)
        broker.now_ms += 61_000
        hub.users["ann-token"]["scopes"] = []
        await say(question)
        ((_, answer),) = broker.to_routes
        assert isinstance(answer, wire.Refusal)
        assert (answer.code, answer.request) == (RefusalCode.NOT_ALLOWED, None)

    identity = Identity("own", Hub(url=f"http://127.0.0.1:{hub.server_address[1]}/hub/api", token="service"), SCOPE)
    kernels = Kernels(
        broker.send, identity, broker.clock_ms, look, broker._answer, "GPU", broker.faults, SessionNames("secret")
    )
    kernels.shell = broker.shell
    kernels.joins = Joins(broker.send, broker.tell_agent, broker.shell, broker.clock_ms)
    asyncio.run(main())
