"""Outputs that a kernel has missed go by credit, in their order, and what comes after them comes after them."""

import asyncio
from pathlib import Path

from bulletin.ids import CellId
from bulletin.wire import frames, messages as wire
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.session import Session
from gpu_worker.agent.spool import DiskShare
from tests.unit.gpu_worker.agent.agent_parts import AgentParts, Kernel, agent_parts

CELL = CellId("c1")
RUN = wire.Run(cell=CELL, source="fit(x)", number=1, parcel=wire.Parcel())
LINE = b"x" * 10_000
COUNT = 5_000


async def hear_until(kernel: Kernel, last: int) -> list[wire.AgentToKernel]:
    """What the kernel hears until it was answered a ping: what was sent before it."""
    heard: list[wire.AgentToKernel] = []
    while not (heard and isinstance(heard[-1], wire.Output) and heard[-1].seq >= last):
        heard.append(await kernel.hear())
        if isinstance(heard[-1], wire.Pong):
            break
    return heard


def talkative(agent: AgentParts, folder: Path) -> Session:
    """A session whose cell has printed 50 MB and asks something, and whose kernel has seen none of it."""
    session = agent.session("l1")
    cell = AgentCell(RUN, "", DiskShare(folder), 10**8)
    session.cells.running = cell
    for _ in range(COUNT):
        cell.outputs.append(wire.Output(cell=CELL, type="stream"), [LINE])
    cell.ask(wire.Asked(cell=CELL, prompt="go on?"))
    return session


def numbers(heard: list[wire.AgentToKernel]) -> list[int]:
    return [message.seq for message in heard if isinstance(message, wire.Output)]


def test_what_was_missed_comes_as_it_is_taken_in_and_then_the_question(tmp_path: Path) -> None:
    async def main() -> list[wire.AgentToKernel]:
        async with agent_parts(tmp_path) as agent:
            session, kernel = talkative(agent, tmp_path), agent.kernel()
            assert isinstance(await kernel.attach(session, cell=CELL), wire.Attached)
            await kernel.say(wire.Ping())
            first = await hear_until(kernel, COUNT)
            assert isinstance(first[-1], wire.Pong), "a ping is answered before all outputs have come"
            assert 100 < len(numbers(first)) < COUNT / 2
            heard = first[:-1]
            while not isinstance(heard[-1], wire.Asked):
                assert isinstance(heard[-1], wire.Output)
                if heard[-1].seq % 64 == 0 or heard[-1].seq == numbers(heard)[-1]:
                    await kernel.say(wire.Seen(cell=CELL, seq=heard[-1].seq))
                heard.append(await kernel.hear())
            return heard

    heard = asyncio.run(main())
    assert numbers(heard) == list(range(1, COUNT + 1))


def test_what_is_printed_meanwhile_comes_in_its_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, kernel = talkative(agent, tmp_path), agent.kernel()
            await kernel.attach(session, cell=CELL)
            await session._delivery.pass_on(session.cells.running, wire.Output(cell=CELL, type="stream"), [b"new"])
            await kernel.say(wire.Ping())
            seen = 0
            while seen <= COUNT:
                message = await kernel.hear()
                if isinstance(message, wire.Output):
                    assert message.seq == seen + 1
                    seen = message.seq
                    await kernel.say(wire.Seen(cell=CELL, seq=seen))

    asyncio.run(main())


def test_a_kernel_that_attaches_anew_replaces_what_was_on_its_way_to_an_earlier_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, first, second = talkative(agent, tmp_path), agent.kernel(), agent.kernel()
            await first.attach(session, cell=CELL)
            await second.attach(session, cell=CELL, seen=COUNT - 1)
            last = await second.hear()
            assert isinstance(last, wire.Output)
            assert last.seq == COUNT
            assert isinstance(await second.hear(), wire.Asked)

    asyncio.run(main())


def test_a_ticket_that_is_shown_by_many_connections_has_what_waits_for_one_of_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, kernels = talkative(agent, tmp_path), [agent.kernel() for _ in range(8)]
            for kernel in kernels:
                assert isinstance(await kernel.attach(session, cell=CELL), wire.Attached)
            assert agent.server.ended_strangers == len(kernels) - 1, "each replaces the one before it"
            assert isinstance(await kernels[-1].hear(), wire.Output)

    asyncio.run(main())


def test_a_ticket_is_heard_so_often_by_whichever_connections_it_is_shown(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, kernels = agent.session("l1"), [agent.kernel() for _ in range(2)]
            attach = wire.Attach(protocol=wire.PROTOCOL, lease=session.prepare.lease, ticket=session.prepare.ticket)
            for number in range(300):
                await kernels[number % 2].say(attach)
            for _ in range(50):
                await agent.kernel().ask(wire.Ping())
            assert agent.server.dropped > 100

    asyncio.run(main())


def test_a_kernel_that_attaches_again_and_again_and_reads_nothing_is_forgotten(tmp_path: Path) -> None:
    async def main() -> int:
        async with agent_parts(tmp_path) as agent:
            session = talkative(agent, tmp_path)
            socket = agent.kernel().socket
            socket.disconnect(agent.address)
            socket.rcvhwm = 1  # what it does not read, it does not take from the network
            socket.connect(agent.address)
            assert session.cells.running is not None
            large = session.cells.running.outputs
            for _ in range(20):
                large.append(wire.Output(cell=CELL, type="display_data"), [bytes(4_000_000)])
            attach = wire.Attach(
                protocol=wire.PROTOCOL,
                lease=session.prepare.lease,
                ticket=session.prepare.ticket,
                cell=CELL,
                seen=COUNT,
            )
            for _ in range(20):
                for number in range(COUNT, COUNT + 20):
                    await socket.send_multipart(frames.pack(attach))
                    await socket.send_multipart(frames.pack(wire.Seen(cell=CELL, seq=number)))
            honest = agent.kernel()
            for _ in range(100):
                await honest.ask(wire.Ping())  # as a stranger it is answered; and all of the above was heard
            assert session.kernel.route is None
            return sum(queue.bytes for queue in agent.server._unsent._queues.values())

    assert asyncio.run(main()) < 210 * 2**20
