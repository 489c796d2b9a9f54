"""What one user's cells leave on the agent's disk is bounded, told, and given back; others have theirs."""

import asyncio
import errno
import gc
from pathlib import Path

import pytest
import structlog

from bulletin.ids import CellId, UserName
from bulletin.wire import messages as wire
from bulletin.wire.blobs import describe
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.cell_results import CellResults
from gpu_worker.agent.output_buffer import OutputBuffer
from gpu_worker.agent.session_outputs import SessionOutputs
from gpu_worker.agent.spool import DiskShare, DiskShares
from gpu_worker.config import Pool

CELL, MB = CellId("c"), 2**20
LONG = b"x" * (MB // 2)


def output() -> wire.Output:
    return wire.Output(cell=CELL, type="stream")


def fill(share: DiskShare) -> list[OutputBuffer]:
    """Cells of a user who prints until nothing more is kept."""
    cells = []
    for _ in range(100):
        cells.append(OutputBuffer(CELL, share, 2 * MB))
        try:
            for _ in range(5):
                cells[-1].append(output(), [LONG])
        except OSError:
            return cells
    raise AssertionError("nothing held them")


def test_a_user_has_a_share_whatever_the_number_of_cells_and_others_have_theirs(tmp_path: Path) -> None:
    shares = DiskShares(tmp_path, 8 * MB)
    eve, ann = shares.find_or_add(UserName("eve")), shares.find_or_add(UserName("ann"))
    cells = fill(eve)
    assert eve.used_bytes <= 8 * MB
    assert shares.find_or_add(UserName("eve")) is eve
    kept = OutputBuffer(CELL, ann, 2 * MB)
    kept.append(output(), [LONG])
    assert [blobs for _, blobs in kept.after(0)] == [[LONG]]
    for cell in cells:
        cell.close()
    assert eve.used_bytes == 0


def test_who_comes_back_reads_why_outputs_were_not_kept(tmp_path: Path) -> None:
    share = DiskShare(tmp_path, 8 * MB)
    last = fill(share)[-1]
    last.append(output(), [b"more"])
    (_, (told,)), (_, (more,)) = last.after(0)
    assert b"were not kept: what is kept of your cells there has 8.39 MB of its disk, needs" in bytes(told)
    assert bytes(more) == b"more"


def test_what_nobody_knows_any_more_is_given_back(tmp_path: Path) -> None:
    share = DiskShare(tmp_path, 8 * MB)
    fill(share)
    gc.collect()
    assert share.used_bytes == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("has_room", [True, False])
def test_results_are_taken_in_as_far_as_the_share_reaches(tmp_path: Path, has_room: bool) -> None:
    async def nobody(*_: object) -> None:
        pass

    parts = (LONG * 6,)  # 3 MB
    share = DiskShare(tmp_path, 4 * MB if has_room else 2 * MB)
    ended = wire.Ended(cell=CELL, outcome="returned", parcel=describe(parts), ran_ms=1)
    results = CellResults(ended, (), share, nobody, lambda _: None, lambda: 2)
    if not has_room:
        with pytest.raises(OSError, match="and may have"):
            results.keep()
        assert share.used_bytes == 0
        return
    results.keep()
    asyncio.run(results.receive(wire.Chunk(cell=CELL, size=len(parts[0]), round=2), parts))
    assert results.is_safe
    assert share.used_bytes == 3 * MB
    results.close()
    assert share.used_bytes == 0


def test_who_comes_back_reads_once_that_results_stayed_in_the_process(tmp_path: Path) -> None:
    settings = Pool(folder=str(tmp_path)).settings()
    share, outputs = DiskShare(tmp_path), SessionOutputs(settings, DiskShare(tmp_path), structlog.get_logger())
    cell = AgentCell(wire.Run(cell=CELL, source="1", number=1, parcel=describe(())), "", share, MB)
    for _ in range(2):  # as it is tried once a second
        outputs.note_unkept(cell, OSError(errno.EDQUOT, "your part is full"))
    ((told, (content,)),) = cell.outputs.after(0)
    assert (told.cell, told.type) == (CELL, "stream")
    assert b"could not be kept on the node: your part is full. They stayed in its process" in bytes(content)


def test_without_a_setting_it_is_a_part_of_the_disk(tmp_path: Path) -> None:
    share = DiskShare(tmp_path)
    share.check_room(MB)
    with pytest.raises(OSError, match="may have"):
        share.check_room(10**18)
