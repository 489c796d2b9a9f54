"""A fault ends what it belongs to, and is counted; one after which nothing can be believed goes on."""

import asyncio

import pytest

from gpu_worker.faults import FatalError, Faults


def test_a_fault_is_counted_and_ends_what_it_belongs_to() -> None:
    faults, ended = Faults("broker"), []
    with faults.contain(lambda: ended.append("session")):
        {}["nobody expected this"]
    with faults.contain(lambda: ended.append("another")):
        pass
    assert (faults.count, ended) == (1, ["session"])


def test_a_fatal_error_goes_on() -> None:
    faults, ended = Faults("broker"), []
    with pytest.raises(FatalError), faults.contain(lambda: ended.append("session")):
        raise FatalError("the state is wrong")
    assert (faults.count, ended) == (0, [])


def test_what_a_callback_of_the_loop_raises_is_counted() -> None:
    faults = Faults("agent")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        faults.watch(loop)
        loop.call_soon({}.__getitem__, "nobody expected this")
        await asyncio.sleep(0)

    asyncio.run(main())
    assert faults.count == 1
