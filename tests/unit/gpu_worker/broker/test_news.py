"""Who waits is told where: soon where something is new, and not after each thing that happens to a long line."""

import asyncio

from bulletin.ids import CellId, SessionId, UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.identity import Person
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


def told(broker: BrokerParts) -> dict[str, wire.Queued]:
    """What was told last to each session, since one last looked."""
    said, broker.to_sessions = broker.to_sessions, []
    return {session.removeprefix("s-"): message for session, message in said if isinstance(message, wire.Queued)}


def test_who_waits_is_told_how_long_at_most_and_how_long_usually(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.run(ADMIN, "first")
    for number in range(7):
        before = lease
        lease = broker.submit(ADMIN, f"next-{number}")
        asyncio.run(broker.shell.tell_queue())
        said = told(broker)[f"next-{number}"]
        assert said.wait_ms == 30 * 60_000
        if number >= 5:
            assert said.usual_ms is not None
            assert 50_000 < said.usual_ms < 70_000
        else:
            assert said.usual_ms is None
        broker.now_ms += 60_000
        broker.step(events.CellEnded(before, CellId("first" if number == 0 else f"next-{number - 1}")))
        broker.step(events.LeaseEnded(before))
        broker.step(events.CellStarted(lease, CellId(f"next-{number}")))


def test_of_a_long_line_the_first_are_told_each_second_and_others_in_turn_what_is_new(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.run(ADMIN, "runs")
    for number in range(450):
        broker.submit(Person(user=UserName(f"u{number}")), f"cell-{number}")
    asyncio.run(broker.shell.tell_queue())
    assert len(told(broker)) == 450, "each is told where it stands once"
    asyncio.run(broker.shell.tell_queue())
    assert len(told(broker)) == 200
    broker.step(events.CellEnded(lease, CellId("runs")))
    broker.step(events.LeaseEnded(lease))
    heard = [len(told(broker)) for _ in range(3) if asyncio.run(broker.shell.tell_queue()) is None]
    assert heard[0] >= 200


def test_a_request_that_is_said_again_is_answered_again(broker: BrokerParts) -> None:
    broker.join()
    broker.run(ADMIN, "runs")
    broker.submit(ADMIN, "waits")
    asyncio.run(tell(broker))
    assert list(told(broker)) == ["waits"]
    broker.submit(ADMIN, "waits")
    asyncio.run(tell(broker))
    assert list(told(broker)) == ["waits"]


def test_where_the_forecast_fails_people_are_told_all_but_how_long(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.run(ADMIN, "runs")
    broker.shell.scheduler.state.leases[lease].cell = None  # a bug of the scheduler
    broker.submit(ADMIN, "waits")
    asyncio.run(tell(broker))
    said = told(broker)["waits"]
    assert (said.position, said.wait_ms) == (1, None)
    assert said.reason == "the only GPU is busy"
