"""Whose processes are slow to look at, with as many sessions as are looked at at once."""

import asyncio
import threading

from gpu_worker.agent.look_turns import LookTurns


def test_looks_that_do_not_come_to_their_end_keep_nobody_elses_from_beginning() -> None:
    may_end = threading.Event()

    async def main() -> tuple[str, list[bool]]:
        turns = LookTurns(at_once=2, turn_s=0.0)
        try:
            async with asyncio.timeout(60):
                slow = [asyncio.create_task(turns.run(may_end.wait)) for _ in range(5)]
                found = await turns.run(lambda: "of somebody else")
                assert not any(one.done() for one in slow)
                may_end.set()
                return found, await asyncio.gather(*slow)
        finally:
            may_end.set()
            turns.close()

    assert asyncio.run(main()) == ("of somebody else", [True] * 5)


def test_no_more_are_begun_at_once_than_may_be() -> None:
    may_end, begun = threading.Event(), threading.Semaphore(0)

    def look() -> None:
        begun.release()
        may_end.wait()

    async def main() -> bool:
        turns = LookTurns(at_once=2, turn_s=3600.0)
        looks = [asyncio.create_task(turns.run(look)) for _ in range(5)]
        async with asyncio.timeout(60):
            for _ in range(2):
                await asyncio.to_thread(begun.acquire)
        is_one_more = begun.acquire(blocking=False)
        may_end.set()
        await asyncio.gather(*looks)
        turns.close()
        return is_one_more

    assert not asyncio.run(main())
