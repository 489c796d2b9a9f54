"""What user code says in its executor's name, on the executor's own pipe: it changes its session, and no more."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bulletin.codes import LeaseEnd
from bulletin.ids import CellId
from bulletin.wire import blobs as bulk, messages as wire, pipe
from bulletin.wire.frames import pack
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.session import Session
from tests.unit.gpu_worker.agent.agent_parts import AgentParts, agent_parts

CELL = CellId("c")


def said_to_broker(agent: AgentParts, session: Session) -> list[wire.Message]:
    """What the broker is told from now on."""
    told: list[wire.Message] = []

    async def tell(message: wire.Message) -> None:
        told.append(message)

    session._to_broker = tell
    return told


def start_cell(agent: AgentParts, session: Session, parcel: wire.Parcel | None = None) -> None:
    run = wire.Run(cell=CELL, source="", number=1, parcel=parcel or bulk.describe(()))
    session.cells.start(AgentCell(run, "", session._share, agent.settings.output_buffer_bytes))


@asynccontextmanager
async def heard(folder: Path, frames: Sequence[bytes]) -> AsyncIterator[Session]:
    """A session whose executor has said this while its cell ran, and then no more."""
    async with agent_parts(folder) as agent:
        session = agent.session("l1")
        said_to_broker(agent, session)
        start_cell(agent, session)
        running = asyncio.create_task(session.run())
        with session.executor.child_socket as executor:
            await asyncio.to_thread(pipe.send, executor, frames)
        await running
        yield session


def test_an_executor_is_ready_once_however_often_it_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session = agent.session("l1")
            told = said_to_broker(agent, session)
            await session.executor.join_cgroup()
            with session.executor.child_socket as executor:
                for _ in range(100):
                    pipe.send(executor, pack(wire.Ready(pid=1)))
            await session.run()
            assert [message for message in told if isinstance(message, wire.Prepared)] == told[:1]

    asyncio.run(main())


@pytest.mark.parametrize("parcel", [wire.Parcel(), wire.Parcel(sizes=(10**7,), inline=False)])
def test_the_end_of_a_cell_brings_no_bytes_that_it_does_not_tell_of(tmp_path: Path, parcel: wire.Parcel) -> None:
    async def main() -> None:
        ended = wire.Ended(cell=CELL, outcome="returned", parcel=parcel, ran_ms=1)
        async with heard(tmp_path, pack(ended, [bytes(10**7)])) as session:
            assert session.shutdown.lease_end is LeaseEnd.EXECUTOR_DIED
            assert session.memory_bytes < 10**6

    asyncio.run(main())


def test_many_short_texts_count_as_what_they_take(tmp_path: Path) -> None:
    async def main() -> None:
        error = wire.ErrorText(name="", value="", traceback=("ab",) * 1_000_000)
        ended = wire.Ended(cell=CELL, outcome="raised", parcel=wire.Parcel(), ran_ms=1, error=error)
        async with heard(tmp_path, pack(ended)) as session:
            assert session.memory_bytes > 50 * 10**6, "a text of two letters is an object as any other"

    asyncio.run(main())


def test_what_kind_of_output_it_is_takes_no_more_than_a_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with heard(tmp_path, pack(wire.Output(cell=CELL, type="x" * 10**6), [b"{}"])) as session:
            assert session.shutdown.lease_end is LeaseEnd.EXECUTOR_DIED
            assert session.cells.last is not None
            assert session.cells.last.outputs.last == 0, "it is not kept"

    asyncio.run(main())


def test_an_executor_that_says_much_lets_others_have_their_turn(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session = agent.session("l1")
            said_to_broker(agent, session)
            start_cell(agent, session)
            with session.executor.child_socket as executor:
                for _ in range(200):  # as many as wait in a pipe
                    pipe.send(executor, pack(wire.Noticed(cell=CELL)))
            running, turns = asyncio.create_task(session.run()), 0
            while not running.done():
                turns += 1
                await asyncio.sleep(0)
            assert turns > 200 // 20

    asyncio.run(main())


def test_what_an_executor_took_in_is_told_as_often_as_there_was_something(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, kernel = agent.session("l1"), agent.kernel()
            said_to_broker(agent, session)
            assert isinstance(await kernel.attach(session), wire.Attached)
            start_cell(agent, session, wire.Parcel(sizes=(2,), inline=False))
            running = asyncio.create_task(session.run())
            for _ in range(2):
                await session.from_kernel(wire.Chunk(cell=CELL, size=1), [b"x"])
            with session.executor.child_socket as executor:
                for _ in range(100):
                    pipe.send(executor, pack(wire.Took(cell=CELL)))
            await running
            heard: list[wire.AgentToKernel] = []
            while not isinstance(message := await kernel.hear(), wire.Lost):
                heard.append(message)
            assert heard == [wire.Took(cell=CELL)] * 2

    asyncio.run(main())
