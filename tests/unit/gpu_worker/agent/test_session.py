"""What a session passes on between its executor and its kernel."""

import asyncio
from pathlib import Path

from bulletin.ids import CellId
from bulletin.wire import blobs as bulk, messages as wire, pipe
from bulletin.wire.frames import pack
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
