"""The journal: numbered, kept until seen, with room for so much and no more."""

import asyncio

from bulletin.ids import CellId
from bulletin.wire.messages import Output
from gpu_worker.agent.outputs import ROOM_BYTES, Journal

CELL = CellId("c")
OUTPUT = Output(cell=CELL, type="stream")


def test_outputs_are_numbered_and_those_not_seen_are_sent_again() -> None:
    journal = Journal(CELL)
    assert [journal.append(OUTPUT, [b"x"]).seq for _ in range(3)] == [1, 2, 3]
    journal.seen(1)
    assert [output.seq for output, _ in journal.after(0)] == [2, 3]
    assert [output.seq for output, _ in journal.after(2)] == [3]


def test_a_journal_of_ended_cells_keeps_whose_each_output_is() -> None:
    journal = Journal(None)
    kept = [journal.append(Output(cell=CellId(name), type="stream"), []) for name in ("a", "b")]
    assert [(output.cell, output.seq, output.late) for output in kept] == [("a", 1, True), ("b", 2, True)]


def test_a_full_journal_lets_its_reader_wait_until_the_kernel_has_seen_enough() -> None:
    async def story() -> list[str]:
        journal, steps = Journal(CELL), []
        journal.append(OUTPUT, [bytes(ROOM_BYTES)])
        waiting = asyncio.create_task(journal.room())
        await asyncio.sleep(0)
        steps.append("waits" if not waiting.done() else "goes on")
        journal.seen(1)
        await waiting
        steps.append("goes on")
        return steps

    assert asyncio.run(story()) == ["waits", "goes on"]


def test_an_ending_executor_waits_for_nobody() -> None:
    async def story() -> None:
        journal = Journal(CELL)
        journal.append(OUTPUT, [bytes(ROOM_BYTES)])
        journal.release()
        await asyncio.wait_for(journal.room(), timeout=30)

    asyncio.run(story())
