"""What a session passes on between its executor and its kernel."""

import asyncio
from pathlib import Path

from bulletin.ids import CellId
from bulletin.wire import blobs as bulk, messages as wire, pipe
from bulletin.wire.frames import Unpacker, pack
from gpu_worker.agent.agent_cell import AgentCell
from tests.unit.gpu_worker.agent.agent_parts import agent_parts

CELL = CellId("c")


def test_what_the_executor_took_in_of_its_state_is_told_to_its_kernel_which_sends_more_then(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, kernel = agent.session("l1"), agent.kernel()
            assert isinstance(await kernel.attach(session), wire.Attached)
            run = wire.Run(cell=CELL, source="", number=1, parcel=bulk.describe(()))
            session.cells.start(AgentCell(run, "", session._share, agent.settings.output_buffer_bytes))
            running = asyncio.create_task(session.run())
            await session.from_kernel(wire.Chunk(cell=CELL, size=1), [b"x"])
            with session.executor.child_socket as executor:
                for name in (CellId("another"), CELL):
                    await asyncio.to_thread(pipe.send, executor, pack(wire.Took(cell=name)))
                assert await kernel.hear() == wire.Took(cell=CELL), "and of no other cell"
            await running

    asyncio.run(main())


def test_a_next_cell_says_that_all_of_the_last_has_arrived_also_where_it_comes_too_late(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, kernel = agent.session("l1"), agent.kernel()
            assert isinstance(await kernel.attach(session), wire.Attached)
            first, second, third = (
                wire.Run(cell=CellId(name), source="", number=1, parcel=bulk.describe(())) for name in "abc"
            )
            session.cells.start(AgentCell(first, "", session._share, agent.settings.output_buffer_bytes))
            running = asyncio.create_task(session.run())
            with session.executor.child_socket as executor:
                await asyncio.to_thread(pipe.send, executor, pack(_ended(first)))
                assert isinstance(await kernel.hear(), wire.Ended)
                assert session.cells.last is not None
                await session.from_kernel(second, ())
                assert session.cells.last is None
                heard = Unpacker[wire.ToExecutor](wire.ToExecutor).unpack(
                    await asyncio.to_thread(pipe.receive, executor)
                )
                assert heard == (second, []), "and no word of the cell before"
                await asyncio.to_thread(pipe.send, executor, pack(_ended(second)))
                assert isinstance(await kernel.hear(), wire.Ended)
            await running
            await session.from_kernel(third, ())
            assert isinstance(await kernel.hear(), wire.Gone)
            assert session.cells.last is None, "nobody will ask for what it has left"

    asyncio.run(main())


def _ended(run: wire.Run) -> wire.Ended:
    return wire.Ended(cell=run.cell, outcome="returned", parcel=bulk.describe(()), ran_ms=0)
