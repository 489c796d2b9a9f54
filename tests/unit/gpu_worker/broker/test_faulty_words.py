"""What somebody says never ends the broker; a step of the scheduler that fails does."""

import asyncio

import pytest

from bulletin.codes import LeaseEnd, RefusalCode
from bulletin.ids import CellId, KernelId, RequestId
from bulletin.wire import messages as wire
from gpu_worker.broker.scheduler_shell import StepFailed
from gpu_worker.faults import FatalError
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ANN, TOKEN, BrokerParts

HELLO = wire.Hello(protocol=wire.PROTOCOL, version="1", token=TOKEN, kernel=KernelId("k"))


async def settle() -> None:
    """Wait for all that is done aside."""
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


async def say(broker: BrokerParts, *messages: wire.FromKernel, route: bytes = b"r") -> None:
    for message in messages:
        await broker.kernels.take(route, message)
        await settle()


def test_what_fails_aside_ends_its_connection_with_a_sentence(broker: BrokerParts) -> None:
    # A picture of this pool cannot be drawn, which nobody expects.
    asyncio.run(say(broker, HELLO, wire.Look(), wire.Ping()))
    welcome, refused, unknown = broker.to_routes
    assert isinstance(welcome[1], wire.Welcome)
    assert isinstance(refused[1], wire.Refusal)
    assert refused[1].code is RefusalCode.FAULT
    assert "Run the cell again" in refused[1].sentence
    assert isinstance(unknown[1], wire.Unknown)
    assert broker.faults.count == 1


def test_a_step_that_fails_is_fatal_also_aside(broker: BrokerParts) -> None:
    async def main() -> None:
        await say(broker, HELLO)
        broker.shell.scheduler.state.pending = None  # type: ignore[assignment]
        with pytest.raises(StepFailed):
            await broker.kernels.take(b"r", wire.Submit(request=RequestId("c")))
        broker.kernels.aside.start(b"r", broker.shell.withdraw(RequestId("c")))
        async with asyncio.timeout(30):
            with pytest.raises(FatalError):
                await broker.kernels.aside.run()

    asyncio.run(main())
    assert broker.faults.count == 0


def test_one_connection_has_so_much_done_aside_at_once_and_others_have_theirs(broker: BrokerParts) -> None:
    async def main() -> None:
        aside, held = broker.kernels.aside, asyncio.Event()

        async def wait() -> None:
            await held.wait()

        begun = [aside.start(b"greedy", wait()) for _ in range(100)]
        assert 1 <= begun.count(True) < 10
        assert aside.start(b"other", wait())
        held.set()
        await settle()
        assert aside.start(b"greedy", wait())
        await settle()

    asyncio.run(main())


def test_a_fault_with_what_an_agent_says_gives_up_the_session_that_it_is_about(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.submit(ANN, "cell-a")
    broker.step(events.CellStarted(lease, CellId("cell-a")))
    broker.to_sessions.clear()

    async def main() -> None:
        said = wire.CellBegan(lease=lease, cell=CellId("cell-a"), running_ms=1)
        with broker.faults.contain(lambda: broker.agents.end_session(b"n1", said)):
            raise ValueError("nobody expected this")
        await settle()

    asyncio.run(main())
    told = [message for _, message in broker.to_sessions if isinstance(message, wire.Revoked)]
    assert [(one.lease, one.code) for one in told] == [(lease, LeaseEnd.CANNOT_START)]
    assert wire.Evict(lease=lease, force=True) in broker.to_agents


def test_of_one_user_so_many_connections_are_known_and_the_quietest_is_forgotten(broker: BrokerParts) -> None:
    async def main() -> None:
        for number in range(300):
            broker.now_ms += 1
            hello = wire.Hello(protocol=wire.PROTOCOL, version="1", token=TOKEN, kernel=KernelId(f"k{number}"))
            await say(broker, hello, route=f"r{number}".encode())
        broker.to_routes.clear()
        await say(broker, wire.Ping(), route=b"r0")
        await say(broker, wire.Ping(), route=b"r299")

    asyncio.run(main())
    assert [type(message) for _, message in broker.to_routes] == [wire.Unknown, wire.Pong]
