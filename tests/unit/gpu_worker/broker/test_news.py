"""Who waits is told where: soon where something is new, and not after each thing that happens to a long line."""

import asyncio

from bulletin.ids import CellId, SessionId
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, BrokerParts

PATIENCE_S = 60


async def tell(broker: BrokerParts) -> None:
    """Let what is new be told once."""
    broker.heard = asyncio.Event()
    telling = asyncio.create_task(broker.shell.teller.run())
    async with asyncio.timeout(PATIENCE_S):
        await broker.heard.wait()
    telling.cancel()
    await asyncio.gather(telling, return_exceptions=True)


def test_each_is_told_its_place_once_however_many_came_meanwhile(broker: BrokerParts) -> None:
    broker.join()
    broker.run(ADMIN, "runs")
    for number in range(15):
        broker.submit(ADMIN, f"cell-{number}")
    assert broker.queued() == []
    asyncio.run(tell(broker))
    assert broker.queued() == [(SessionId(f"s-cell-{number}"), number + 1) for number in range(15)]


def test_only_what_is_new_is_told_and_everybody_hears_each_second(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.run(ADMIN, "runs")
    for name in ("one", "two"):
        broker.submit(ADMIN, name)
    asyncio.run(tell(broker))
    assert len(broker.queued()) == 2
    broker.submit(ADMIN, "three")
    asyncio.run(tell(broker))
    assert broker.queued() == [(SessionId("s-three"), 3)]
    asyncio.run(broker.shell.tell_queue())
    assert [place for _, place in broker.queued()] == [1, 2, 3]
    broker.step(events.CellEnded(lease, CellId("runs")))
    broker.step(events.LeaseEnded(lease))
    broker.submit(ADMIN, "four")
    asyncio.run(tell(broker))
    assert broker.queued() == [(SessionId("s-two"), 1), (SessionId("s-three"), 2), (SessionId("s-four"), 3)]
