"""The journal: numbered, kept from the first on, within its limit, with room for so much unseen and no more."""

import asyncio
import json
from pathlib import Path

import pytest

from bulletin.ids import CellId
from bulletin.wire.messages import Output
from gpu_worker.agent.outputs import ROOM_BYTES, Journal

CELL = CellId("c")
OUTPUT = Output(cell=CELL, type="stream")
LIMIT = 4 * ROOM_BYTES


def contents(journal: Journal, seen: int) -> list[tuple[int, bytes]]:
    return [(output.seq, bytes(blobs[0])) for output, blobs in journal.after(seen)]


def test_a_journal_of_ended_cells_keeps_whose_each_output_is(tmp_path: Path) -> None:
    journal = Journal(None, tmp_path, LIMIT)
    kept = [journal.append(Output(cell=CellId(name), type="stream"), []) for name in ("a", "b")]
    assert [(output.cell, output.seq, output.late) for output in kept] == [("a", 1, True), ("b", 2, True)]
    assert [output for output, _ in journal.after(0)] == kept


@pytest.mark.parametrize("size", [1, 100_000], ids=["in memory", "in a file"])
def test_outputs_are_numbered_and_sent_again_after_any_that_was_seen_or_all(tmp_path: Path, size: int) -> None:
    journal = Journal(CELL, tmp_path, LIMIT)
    texts = [bytes([65 + number]) * size for number in range(3)]
    assert [journal.append(OUTPUT, [text]).seq for text in texts] == [1, 2, 3]
    journal.seen(2)
    assert contents(journal, 2) == [(3, texts[2])]
    assert contents(journal, 0) == [(1, texts[0]), (2, texts[1]), (3, texts[2])]


def test_what_is_kept_is_a_file_without_a_name(tmp_path: Path) -> None:
    journal = Journal(CELL, tmp_path, LIMIT)
    journal.append(OUTPUT, [bytes(100_000)])
    assert list(tmp_path.iterdir()) == []
    assert contents(journal, 0) == [(1, bytes(100_000))]


def test_beyond_the_limit_the_oldest_go_and_one_line_stands_for_them(tmp_path: Path) -> None:
    """The file is written round: entries that lie across its end come back whole."""
    journal = Journal(CELL, tmp_path, 1_000_000)
    texts = [f"{number:05}".encode() * (6_000 + 7 * number) for number in range(300)]
    for text in texts:
        journal.append(OUTPUT, [text])
        journal.seen(journal.last)
    (gap, stand_in), *kept = contents(journal, 0)
    assert json.loads(stand_in) == {
        "name": "stderr",
        "text": f"bulletin: {gap} outputs before this were not kept: nobody read them.\n",
    }
    assert kept == [(number + 1, texts[number]) for number in range(gap, 300)]
    assert 900_000 < sum(len(text) for _, text in kept) <= 1_000_000


def test_a_full_journal_lets_its_reader_wait_until_the_kernel_has_seen_enough(tmp_path: Path) -> None:
    async def story() -> list[str]:
        journal, steps = Journal(CELL, tmp_path, LIMIT), []
        journal.append(OUTPUT, [bytes(ROOM_BYTES)])
        waiting = asyncio.create_task(journal.room())
        await asyncio.sleep(0)
        steps.append("waits" if not waiting.done() else "goes on")
        journal.seen(1)
        await waiting
        steps.append("goes on")
        return steps

    assert asyncio.run(story()) == ["waits", "goes on"]


def test_a_cell_that_nobody_reads_waits_for_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        journal = Journal(CELL, tmp_path, LIMIT)
        journal.append(OUTPUT, [bytes(ROOM_BYTES)])
        journal.read(is_read=False)
        await asyncio.wait_for(journal.room(), timeout=30)

    asyncio.run(story())


def test_an_ending_executor_waits_for_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        journal = Journal(CELL, tmp_path, LIMIT)
        journal.append(OUTPUT, [bytes(ROOM_BYTES)])
        journal.release()
        await asyncio.wait_for(journal.room(), timeout=30)

    asyncio.run(story())
