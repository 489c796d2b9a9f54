"""Which cells a session remembers, and which it runs."""

import asyncio
from pathlib import Path

from bulletin.codes import RefusalCode
from bulletin.ids import CellId
from bulletin.kept_time import make_kept_cell
from bulletin.wire import messages as wire
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.session_cells import SessionCells
from gpu_worker.agent.spool import DiskShare
from tests.unit.gpu_worker.agent.agent_parts import agent_parts


def run(cells: SessionCells, number: int, folder: Path) -> None:
    said = wire.Run(cell=CellId(f"c{number}"), source="", number=number, parcel=wire.Parcel())
    cell = AgentCell(said, "", DiskShare(folder), 0)
    cells.start(cell)
    cells.close(cell)
    cells.drop_last()


def test_a_session_of_many_cells_remembers_the_latest_and_a_bounded_number_of_them(tmp_path: Path) -> None:
    cells, count = SessionCells(), 5_000
    assert cells.is_unused
    for number in range(count):
        run(cells, number, tmp_path)
    known = [number for number in range(count) if cells.is_known(CellId(f"c{number}"))]
    assert known == list(range(count - 1_000, count))
    assert not cells.is_unused


def test_no_cell_of_a_notebook_passes_for_the_time_between_two_by_its_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, kernel = agent.session("l1"), agent.kernel()
            assert isinstance(await kernel.attach(session), wire.Attached)
            for name in (make_kept_cell(), CellId("kept-")):
                await session.from_kernel(wire.Run(cell=name, source="", number=1, parcel=wire.Parcel()), ())
                assert session.cells.running is None
                refused = await kernel.hear()
                assert isinstance(refused, wire.Gone)
                assert refused.code is RefusalCode.NOT_ALLOWED
            await session.from_kernel(wire.Run(cell=CellId("c"), source="", number=1, parcel=wire.Parcel()), ())
            assert session.cells.running is not None

    asyncio.run(main())
