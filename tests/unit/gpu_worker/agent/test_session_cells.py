"""Which cells a session remembers."""

from pathlib import Path

from bulletin.ids import CellId
from bulletin.wire import messages as wire
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.session_cells import SessionCells
from gpu_worker.agent.spool import DiskShare


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
