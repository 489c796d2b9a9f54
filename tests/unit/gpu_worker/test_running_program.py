"""A program that runs for as long as a block does, and is gone with it, whenever that ends."""

import asyncio
import os
import select
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from gpu_worker.running_program import running_program
from tests.processes import is_read
from tests.waiting import until


def count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("steps", range(12))
def test_who_is_cancelled_while_it_starts_or_runs_ends_and_leaves_nothing_of_it(steps: int, tmp_path: Path) -> None:
    """What it has started holds its pipes."""
    never = tmp_path / "never"
    os.mkfifo(never)

    async def run() -> None:
        async with running_program("sh", "-c", f"cat {never}; :", stdin=PIPE, stdout=PIPE, stderr=PIPE) as program:
            await program.communicate()

    async def main() -> bool:
        runs = asyncio.create_task(run())
        for _ in range(steps):
            await asyncio.sleep(0)
        runs.cancel()
        await asyncio.wait([runs])
        return runs.cancelled()

    assert asyncio.run(main())
    until(lambda: not is_read(never), "the end of what was killed")


def test_who_leaves_the_block_takes_what_the_program_has_started_along(tmp_path: Path) -> None:
    never, begun = tmp_path / "never", tmp_path / "begun"
    os.mkfifo(never)
    os.mkfifo(begun)

    async def main() -> int | None:
        async with running_program("sh", "-c", f"cat {never} & echo > {begun}; wait") as program:
            await asyncio.to_thread(begun.read_text)
        return program.returncode

    assert asyncio.run(main()) == -9
    until(lambda: not is_read(never), "the end of what was killed")


def test_what_a_program_says_that_leaves_something_behind_is_heard_and_nothing_of_it_stays(tmp_path: Path) -> None:
    """What it has left holds its pipes, and would for ever."""
    never = tmp_path / "never"
    os.mkfifo(never)
    gone, held = os.pipe()

    async def run() -> tuple[bytes, bytes]:
        script = f"exec 3<&0; cat {never} & echo said"
        async with running_program("sh", "-c", script, stdin=held, stdout=PIPE, stderr=PIPE) as program:
            async with asyncio.timeout(30):
                return await program.communicate()

    async def main() -> None:
        assert await run() == (b"said\n", b"")
        before = count_descriptors()
        await run()
        assert count_descriptors() == before, "no descriptor is left open"

    try:
        asyncio.run(main())
    finally:
        os.close(held)
    assert select.select([gone], [], [], 30)[0], "none of its processes is left that holds the other end"
    os.close(gone)


def test_what_cannot_be_started_says_why() -> None:
    async def main() -> None:
        async with running_program("/nowhere/program"):
            raise AssertionError

    with pytest.raises(FileNotFoundError, match="nowhere"):
        asyncio.run(main())
