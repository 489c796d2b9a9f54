"""The replay buffer: outputs are numbered, kept within its limit, and wait while too many are unseen."""

import asyncio
import json
from pathlib import Path

import pytest

from bulletin.ids import CellId
from bulletin.wire.messages import Output
from gpu_worker.agent.output_buffer import UNSEEN_LIMIT_BYTES, OutputBuffer
from gpu_worker.agent.spool import DiskShare

CELL = CellId("c")
OUTPUT = Output(cell=CELL, type="stream")
LIMIT = 4 * UNSEEN_LIMIT_BYTES


def contents(buffer: OutputBuffer, seen: int) -> list[tuple[int, bytes]]:
    return [(output.seq, bytes(blobs[0])) for output, blobs in buffer.after(seen)]


def test_a_buffer_of_ended_cells_keeps_whose_each_output_is(tmp_path: Path) -> None:
    buffer = OutputBuffer(None, DiskShare(tmp_path), LIMIT)
    kept = [buffer.append(Output(cell=CellId(name), type="stream"), []) for name in ("a", "b")]
    assert [(output.cell, output.seq, output.late) for output in kept] == [("a", 1, True), ("b", 2, True)]
    assert [output for output, _ in buffer.after(0)] == kept


@pytest.mark.parametrize("size", [1, 100_000], ids=["in memory", "in a file"])
def test_outputs_are_numbered_and_sent_again_after_any_that_was_seen_or_all(tmp_path: Path, size: int) -> None:
    buffer = OutputBuffer(CELL, DiskShare(tmp_path), LIMIT)
    texts = [bytes([65 + number]) * size for number in range(3)]
    assert [buffer.append(OUTPUT, [text]).seq for text in texts] == [1, 2, 3]
    buffer.mark_seen(2)
    assert contents(buffer, 2) == [(3, texts[2])]
    assert contents(buffer, 0) == [(1, texts[0]), (2, texts[1]), (3, texts[2])]


@pytest.mark.parametrize("size", [0, 10, 100_000], ids=["empty", "in memory", "in a file"])
def test_a_widgets_buffers_are_sent_again_as_they_were(tmp_path: Path, size: int) -> None:
    """An output may have any number of blobs: its content, then the binary buffers of a comm's message."""
    buffer = OutputBuffer(CELL, DiskShare(tmp_path), LIMIT)
    figure = [b'{"comm_id": "figure"}', b"x" * size, b"", b"y" * (2 * size)]
    buffer.append(Output(cell=CELL, type="comm_open"), figure)
    buffer.append(OUTPUT, [b"text"])
    assert [[bytes(blob) for blob in blobs] for _, blobs in buffer.after(0)] == [figure, [b"text"]]


@pytest.mark.parametrize("cell", [CELL, None], ids=["of one cell", "of ended cells"])
def test_what_is_larger_than_the_limit_is_not_kept_and_the_next_is(tmp_path: Path, cell: CellId | None) -> None:
    buffer = OutputBuffer(cell, DiskShare(tmp_path), 200_000)
    buffer.append(OUTPUT, [bytes(100_000)])
    assert buffer.append(OUTPUT, [b"{}", bytes(100_000), bytes(150_000)]).seq == 2
    assert [(output.cell, output.seq) for output, _ in buffer.after(0)] == [(CELL, 2)]
    buffer.append(OUTPUT, [b"next"])
    assert contents(buffer, 2) == [(3, b"next")]


def test_what_is_kept_is_a_file_without_a_name(tmp_path: Path) -> None:
    buffer = OutputBuffer(CELL, DiskShare(tmp_path), LIMIT)
    buffer.append(OUTPUT, [bytes(100_000)])
    assert list(tmp_path.iterdir()) == []
    assert contents(buffer, 0) == [(1, bytes(100_000))]


def test_beyond_the_limit_the_oldest_go_and_one_line_stands_for_them(tmp_path: Path) -> None:
    """The file is written round: entries that lie across its end come back whole."""
    buffer = OutputBuffer(CELL, DiskShare(tmp_path), 1_000_000)
    texts = [f"{number:05}".encode() * (6_000 + 7 * number) for number in range(300)]
    for text in texts:
        buffer.append(OUTPUT, [text])
        buffer.mark_seen(buffer.last)
    (gap, stand_in), *kept = contents(buffer, 0)
    assert json.loads(stand_in) == {
        "name": "stderr",
        "text": f"bulletin: {gap} outputs before this were not kept: nobody read them.\n",
    }
    assert kept == [(number + 1, texts[number]) for number in range(gap, 300)]
    assert 900_000 < sum(len(text) for _, text in kept) <= 1_000_000


def test_a_full_buffer_lets_its_reader_wait_until_the_kernel_has_seen_enough(tmp_path: Path) -> None:
    async def story() -> list[str]:
        buffer, steps = OutputBuffer(CELL, DiskShare(tmp_path), LIMIT), []
        buffer.append(OUTPUT, [bytes(UNSEEN_LIMIT_BYTES)])
        waiting = asyncio.create_task(buffer.wait_for_room())
        await asyncio.sleep(0)
        steps.append("waits" if not waiting.done() else "goes on")
        buffer.mark_seen(1)
        await waiting
        steps.append("goes on")
        return steps

    assert asyncio.run(story()) == ["waits", "goes on"]


def test_a_cell_that_nobody_reads_waits_for_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        buffer = OutputBuffer(CELL, DiskShare(tmp_path), LIMIT)
        buffer.append(OUTPUT, [bytes(UNSEEN_LIMIT_BYTES)])
        buffer.set_has_reader(has_reader=False)
        await asyncio.wait_for(buffer.wait_for_room(), timeout=30)

    asyncio.run(story())


def test_an_ending_executor_waits_for_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        buffer = OutputBuffer(CELL, DiskShare(tmp_path), LIMIT)
        buffer.append(OUTPUT, [bytes(UNSEEN_LIMIT_BYTES)])
        buffer.release()
        await asyncio.wait_for(buffer.wait_for_room(), timeout=30)

    asyncio.run(story())
