"""How often a user is given a place in the pool: each is rows of the ledger, whether a cell comes to it or not."""

import asyncio
from collections.abc import Iterator

import pytest

from bulletin.codes import RefusalCode
from bulletin.ids import KernelId, RequestId
from bulletin.wire import messages as wire
from gpu_worker.broker.hub_answers import Hub
from gpu_worker.broker.identity import Identity
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub


@pytest.fixture
def hub_broker(broker: BrokerParts) -> Iterator[BrokerParts]:
    """A broker whose users are a hub's: ann and eve."""
    hub = FakeHub()
    for name in ("ann", "eve"):
        hub.users[f"{name}-token"] = {"name": name, "kind": "user", "scopes": [SCOPE]}
        hub.groups[name] = ["maths"]
    with hub.serving():
        where = Hub(url=f"http://127.0.0.1:{hub.server_address[1]}/hub/api", token="service")
        broker.kernels._identity = Identity("own", where, SCOPE)
        yield broker


async def say(broker: BrokerParts, route: bytes, message: wire.FromKernel) -> list[wire.Message]:
    """What a kernel is told to this."""
    broker.to_routes.clear()
    await broker.kernels.take(route, message)
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
    return [said for _, said in broker.to_routes]


async def greet(broker: BrokerParts, kernel: str) -> bytes:
    token = f"{kernel.partition(' ')[0]}-token"
    hello = wire.Hello(protocol=wire.PROTOCOL, version="1", token=token, kernel=KernelId(kernel))
    assert any(isinstance(said, wire.Welcome) for said in await say(broker, kernel.encode(), hello))
    return kernel.encode()


async def ask(broker: BrokerParts, route: bytes, number: int) -> bool:
    """Ask for a place and give it back; whether that was heard."""
    said = await say(broker, route, wire.Submit(request=RequestId(f"r{number}")))
    refused = [one for one in said if isinstance(one, wire.Refusal)]
    if refused:
        assert refused[0].code is RefusalCode.TOO_FAST
        assert refused[0].request == f"r{number}", "its cell ends with the sentence"
        return False
    await say(broker, route, wire.Withdraw(request=RequestId(f"r{number}")))
    return True


def test_who_asks_and_gives_back_again_and_again_is_told_and_others_are_not(hub_broker: BrokerParts) -> None:
    async def main() -> None:
        first, second, other = [await greet(hub_broker, name) for name in ("ann one", "ann two", "eve")]
        heard = [await ask(hub_broker, first, number) for number in range(1_000)]
        assert 300 < sum(heard) < 1_000
        assert not await ask(hub_broker, second, 1), "it is one user"
        assert await ask(hub_broker, other, 1)
        hub_broker.now_ms += 30_000
        again = [await ask(hub_broker, first, number) for number in range(2_000, 2_300)]
        assert 30 < sum(again) < 100

    asyncio.run(main())


def test_a_request_that_is_said_again_counts_once(hub_broker: BrokerParts) -> None:
    async def main() -> None:
        route = await greet(hub_broker, "ann")
        for _ in range(1_000):
            said = await say(hub_broker, route, wire.Submit(request=RequestId("same")))
            assert not [one for one in said if isinstance(one, wire.Refusal)]

    asyncio.run(main())
