"""Who waits is told where: soon where something is new, and not after each thing that happens to a long line."""

import asyncio

from bulletin.ids import CellId, SessionId
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.desk import ADMIN, Desk

PATIENCE_S = 60


async def tell(desk: Desk) -> None:
    """Let what is new be told once."""
    desk.heard = asyncio.Event()
    telling = asyncio.create_task(desk.leases.tell_news())
    async with asyncio.timeout(PATIENCE_S):
        await desk.heard.wait()
    telling.cancel()
    await asyncio.gather(telling, return_exceptions=True)


def test_each_is_told_its_place_once_however_many_came_meanwhile(desk: Desk) -> None:
    desk.join()
    desk.run(ADMIN, "runs")
    for number in range(15):
        desk.submit(ADMIN, f"cell-{number}")
    assert desk.queued() == []
    asyncio.run(tell(desk))
    assert desk.queued() == [(SessionId(f"s-cell-{number}"), number + 1) for number in range(15)]


def test_only_what_is_new_is_told_and_everybody_hears_each_second(desk: Desk) -> None:
    desk.join()
    lease = desk.run(ADMIN, "runs")
    for name in ("one", "two"):
        desk.submit(ADMIN, name)
    asyncio.run(tell(desk))
    assert len(desk.queued()) == 2
    desk.submit(ADMIN, "three")
    asyncio.run(tell(desk))
    assert desk.queued() == [(SessionId("s-three"), 3)]
    asyncio.run(desk.leases.tell_queue(everybody=True))
    assert [place for _, place in desk.queued()] == [1, 2, 3]
    desk.step(events.CellEnded(lease, CellId("runs")))
    desk.step(events.LeaseEnded(lease))
    desk.submit(ADMIN, "four")
    asyncio.run(tell(desk))
    assert desk.queued() == [(SessionId("s-two"), 1), (SessionId("s-three"), 2), (SessionId("s-four"), 3)]
