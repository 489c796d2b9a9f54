"""What is known of notebooks that are gone takes nothing: a program may call itself another one with each word."""

import asyncio

from bulletin.ids import KernelId, SessionId
from bulletin.wire import messages as wire
from tests.unit.gpu_worker.broker.broker_parts import ANN, TOKEN, BrokerParts

MANY = 50


def test_a_session_is_forgotten_that_has_neither_connection_nor_lease(broker: BrokerParts) -> None:
    async def play() -> set[SessionId]:
        for number in range(MANY):
            hello = wire.Hello(protocol=wire.PROTOCOL, version="1", token=TOKEN, kernel=KernelId(f"k{number}"))
            await broker.kernels._hello(b"one", hello)
            if number == 0:
                (lease,) = broker.shell.active_leases.values()
                (lease.session,) = (one.name for one in broker.kernels._sessions.values())
                kept.add(lease.session)
            await broker.kernels.tidy()
            broker.now_ms += 1_000
        return {one.name for one in broker.kernels._sessions.values()}

    broker.join()
    broker.run(ANN, "c1")
    kept: set[SessionId] = set()
    left = asyncio.run(play())
    assert kept <= left, "its notebook may come back to what it has there"
    assert len(left) < MANY / 2
