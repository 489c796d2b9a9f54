"""What SIGINT means at the edges of a cell's life."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from gpu_worker.executor.interrupts import Interrupts


@pytest.fixture
def running() -> Iterator[tuple[Interrupts, asyncio.AbstractEventLoop, list[str]]]:
    """Interrupts of a cell that is about to begin, and what was noticed."""
    loop, noticed = asyncio.new_event_loop(), list[str]()
    interrupts = Interrupts(loop, lambda: noticed.append("noticed"))
    before = signal.signal(signal.SIGINT, interrupts._handle)
    interrupts.expect()
    interrupts.begin()
    yield interrupts, loop, noticed
    signal.signal(signal.SIGINT, before)
    loop.close()


async def _cell(steps: list[str]) -> str:
    steps.append("begun")
    await asyncio.sleep(0)
    return "done"


def test_a_cell_that_is_stopped_before_its_first_step_is_interrupted_as_any_other(
    running: tuple[Interrupts, asyncio.AbstractEventLoop, list[str]],
) -> None:
    interrupts, loop, noticed = running
    steps: list[str] = []
    loop.call_soon(os.kill, os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupts.drive(_cell(steps), loop.create_task)
    assert (steps, noticed) == ([], ["noticed"])


def test_a_cell_that_cancels_itself_is_told_so(
    running: tuple[Interrupts, asyncio.AbstractEventLoop, list[str]],
) -> None:
    interrupts, loop, noticed = running

    async def cell() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        interrupts.drive(cell(), loop.create_task)
    assert noticed == []
