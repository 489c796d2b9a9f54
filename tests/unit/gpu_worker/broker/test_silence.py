"""Who says nothing is gone, be it an agent or a kernel that waits; who was not listened to is not."""

import asyncio

from msgspec import structs

from bulletin import __version__
from bulletin.ids import CellId, KernelId, RequestId
from bulletin.wire import messages as wire
from gpu_worker.broker.node_sentences import AWAY
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, TOKEN, BrokerParts, is_refused


def look(broker: BrokerParts) -> None:
    """Let it see who has said nothing for too long."""
    asyncio.run(broker.agents.tidy())
    asyncio.run(broker.kernels.tidy())


def listen(broker: BrokerParts, seconds: int) -> None:
    """Let time pass for a broker that looks once a second."""
    for _ in range(seconds):
        broker.now_ms += 1_000
        look(broker)


def test_an_agent_that_is_silent_while_the_broker_listens_is_lost(broker: BrokerParts) -> None:
    broker.join()
    listen(broker, 10)
    assert broker.agents.known
    listen(broker, 1)
    assert not broker.agents.known


async def listen_and_try(broker: BrokerParts, seconds: int) -> None:
    """Let time pass, and all come to its end that is found out about who is silent."""
    for _ in range(seconds):
        broker.now_ms += 1_000
        await broker.agents.tidy()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def test_an_agent_that_stands_still_keeps_its_cells_while_it_may_go_on(broker: BrokerParts) -> None:
    """On a host without memory to spare, say; also the pool's own, which is started again where it has ended."""

    async def stands_still(_: str) -> bool:
        return False

    broker.admit(is_refused=stands_still, keep_ms=60_000)
    broker.join()
    lease = broker.run(ADMIN, "runs")
    asyncio.run(listen_and_try(broker, 30))
    assert lease in broker.shell.scheduler.state.leases
    assert [one.problem for one in broker.agents.absent_nodes] == [AWAY]
    asyncio.run(listen_and_try(broker, 31))
    assert not broker.agents.known, "nobody waits for longer than a session is kept"


def test_an_agent_that_ends_after_it_stood_still_is_lost_soon(broker: BrokerParts) -> None:
    """Its host hung, say, and was started anew: nobody waits for as long as a session is kept."""
    asked_ms: list[int] = []

    async def is_gone_by_now(_: str) -> bool:
        asked_ms.append(broker.now_ms)
        return broker.now_ms > 60_000

    broker.admit(is_refused=is_gone_by_now, keep_ms=3_600_000)
    broker.join()
    asyncio.run(listen_and_try(broker, 60))
    assert broker.agents.known
    assert asked_ms == [11_000, 41_000]
    asyncio.run(listen_and_try(broker, 15))
    assert not broker.agents.known


def test_an_agent_that_falls_silent_again_is_left_out_as_soon_as_the_first_time(broker: BrokerParts) -> None:
    async def stands_still(_: str) -> bool:
        return False

    broker.admit(is_refused=stands_still, keep_ms=3_600_000)
    broker.join()
    asyncio.run(listen_and_try(broker, 12))
    broker.report("n1", wire.Ping())
    assert not broker.agents.absent_nodes
    asyncio.run(listen_and_try(broker, 11))
    assert [one.problem for one in broker.agents.absent_nodes] == [AWAY]


def test_an_agent_whose_host_says_that_it_is_gone_is_lost_at_once(broker: BrokerParts) -> None:
    broker.admit(is_refused=is_refused, keep_ms=60_000)
    broker.join()
    asyncio.run(listen_and_try(broker, 11))
    assert not broker.agents.known


def test_no_agent_is_lost_because_the_broker_stood_still(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.run(ADMIN, "runs")
    listen(broker, 2)
    broker.now_ms += 60_000
    look(broker)
    assert lease in broker.shell.scheduler.state.leases
    listen(broker, 8)
    assert broker.agents.known
    listen(broker, 1)
    assert not broker.agents.known, "it has said nothing since, either"


def test_an_agent_that_registers_again_on_its_connection_keeps_what_was_granted_since(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.submit(ADMIN, "new")
    broker.join()
    broker.step(events.CellStarted(lease, CellId("new")))
    assert broker.shell.scheduler.state.leases[lease].cell == "new"


def test_what_an_agent_said_before_its_link_was_cut_ends_nothing_that_began_since(broker: BrokerParts) -> None:
    def says(clock_ms: int, process: str = "one") -> wire.Register:
        return structs.replace(broker.registration(), process=process, clock_ms=clock_ms)

    def report(route: bytes, message: wire.Register) -> None:
        broker.now_ms += 1_000
        asyncio.run(broker.agents.take(route, message))

    report(b"first", says(1_000))
    report(b"second", says(9_000))
    lease = broker.run(ADMIN, "new")
    report(b"first", says(5_000))  # it was on its way since the link was cut
    leases = broker.shell.scheduler.state.leases
    assert leases[lease].cell == "new"
    report(b"third", says(20_000))
    assert lease not in leases, "it says so later: it has not got it"

    lease = broker.run(ADMIN, "another")
    broker.now_ms += 4_000  # or there would be two of them
    report(b"fourth", says(2_000, "another life"))
    assert lease not in leases, "the clock of another host, or of one that was started again"


async def wait_in_line(broker: BrokerParts) -> None:
    """Let a kernel say hello, and ask for what is not free."""
    hello = wire.Hello(protocol=wire.PROTOCOL, version=__version__, token=TOKEN, kernel=KernelId("k"))
    await broker.kernels.take(b"k", hello)
    while not broker.shell.pending_requests:  # until it is welcome
        await asyncio.sleep(0)
        await broker.kernels.take(b"k", wire.Submit(request=RequestId("waits")))


def test_the_request_of_a_kernel_that_is_silent_while_the_broker_listens_is_withdrawn(broker: BrokerParts) -> None:
    asyncio.run(wait_in_line(broker))
    listen(broker, 20)
    assert broker.shell.pending_requests
    listen(broker, 1)
    assert not broker.shell.pending_requests


def test_no_request_is_withdrawn_because_the_broker_stood_still(broker: BrokerParts) -> None:
    asyncio.run(wait_in_line(broker))
    listen(broker, 2)
    broker.now_ms += 60_000
    look(broker)
    assert broker.shell.scheduler.state.pending
    listen(broker, 18)
    assert broker.shell.pending_requests
    listen(broker, 1)
    assert not broker.shell.pending_requests, "it has said nothing since, either"
