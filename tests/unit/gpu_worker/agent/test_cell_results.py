"""Results on their way through the agent: every loss of the connection begins them again, and none mixes two rounds."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bulletin.errors import MalformedMessage
from bulletin.ids import CellId
from bulletin.wire import messages as wire
from bulletin.wire.blobs import CHUNK, Receiver, Sender, describe
from bulletin.wire.frames import Blob
from gpu_worker.agent.cell_results import CellResults
from gpu_worker.agent.spool import DiskShare

CELL = CellId("c")
#: More chunks than a window has.
PARTS: tuple[Blob, ...] = (b"stream", bytes(range(256)) * (10 * CHUNK // 256), b"", b"end")


class Wire:
    """An executor that hands back PARTS, and a kernel that takes them; each hears what it was sent when it likes."""

    def __init__(self, folder: Path) -> None:
        self.to_kernel: list[tuple[wire.Message, Sequence[Blob]]] = []
        self.to_executor: list[wire.Message] = []
        ended = wire.Ended(cell=CELL, outcome="returned", parcel=describe(PARTS), ran_ms=1)
        rounds = count(1)
        share = DiskShare(folder)
        self.results = CellResults(ended, (), share, self.tell, self.to_executor.append, lambda: next(rounds))
        self.sender = Sender(CELL, PARTS, None)
        self.receiver: Receiver | None = None
        self.round = 0

    async def tell(self, message: wire.Message, blobs: Sequence[Blob]) -> None:
        self.to_kernel.append((message, blobs))

    async def executor_works(self, chunks: int = 10**6) -> None:
        """It hears all, and sends what its window allows, up to so many chunks."""
        while True:
            said, self.to_executor[:] = list(self.to_executor), []
            for message in said:
                if isinstance(message, wire.Return):
                    self.sender = Sender(CELL, PARTS, None, message.round)
                    self.results.check_round(self.results.ended)
                elif isinstance(message, wire.Took) and message.round == self.sender.round:
                    self.sender.took()
            for sent, (chunk, pieces) in enumerate(self.sender.ready(), start=1):
                await self.results.receive(chunk, [bytes(piece) for piece in pieces])
                if sent == chunks:
                    return
            if not self.to_executor:
                return

    async def kernel_works(self) -> None:
        """It hears all, and says what it took."""
        said, self.to_kernel[:] = list(self.to_kernel), []
        for message, blobs in said:
            if isinstance(message, wire.Ended) and (self.receiver is None or message.round > self.round):
                self.receiver, self.round = Receiver(message.parcel, blobs, None), message.round
            elif isinstance(message, wire.Chunk) and message.round == self.round and self.receiver is not None:
                self.receiver.take(message, [bytes(blob) for blob in blobs])
                await self.results.acknowledge(wire.Took(cell=CELL, round=message.round))

    async def finish(self) -> None:
        while self.receiver is None or not self.receiver.is_done:
            await self.executor_works()
            await self.kernel_works()
        assert [bytes(part) for part in self.receiver.parts] == list(PARTS)

    def lose_link(self) -> None:
        self.to_kernel.clear()


def played(story: Callable[[Wire], Coroutine[Any, Any, None]], folder: Path) -> None:
    asyncio.run(story(Wire(folder)))


def test_results_pass_through(tmp_path: Path) -> None:
    async def story(it: Wire) -> None:
        await it.results.tell()
        assert not it.results.is_safe
        await it.finish()
        assert it.results.is_out
        assert it.results.is_safe

    played(story, tmp_path)


@pytest.mark.parametrize("chunks", range(1, 9))
def test_results_begin_again_whenever_the_link_was_lost(tmp_path: Path, chunks: int) -> None:
    async def story(it: Wire) -> None:
        await it.results.tell()
        await it.kernel_works()
        await it.executor_works(chunks)
        it.lose_link()
        await it.results.send_again(has_rings=False)
        await it.finish()
        assert it.results.is_safe

    played(story, tmp_path)


def test_what_was_under_way_when_the_kernel_came_back_is_not_mixed_in(tmp_path: Path) -> None:
    """Nothing was lost, but both sides began again: chunks and answers of two rounds cross."""

    async def story(it: Wire) -> None:
        await it.results.tell()
        await it.executor_works(3)
        await it.results.send_again(has_rings=False)
        await it.kernel_works()
        await it.results.send_again(has_rings=False)
        await it.executor_works(2)
        await it.finish()

    played(story, tmp_path)


def test_pieces_and_answers_of_a_round_that_was_given_up_are_void(tmp_path: Path) -> None:
    """The executor sent them, and the kernel said them, before either heard that it all begins again."""

    async def story(it: Wire) -> None:
        await it.results.tell()
        await it.executor_works(2)
        old = [(chunk, [bytes(piece) for piece in pieces]) for chunk, pieces in it.sender.ready()]
        assert old
        await it.kernel_works()
        await it.results.send_again(has_rings=False)
        said = list(it.to_executor)
        told = list(it.to_kernel)
        for chunk, pieces in old:
            await it.results.receive(chunk, pieces)
        assert it.to_executor == said
        assert it.to_kernel == told
        await it.executor_works(2)
        said = list(it.to_executor)
        await it.results.acknowledge(wire.Took(cell=CELL, round=0))
        assert it.to_executor == said
        await it.finish()

    played(story, tmp_path)


def test_results_that_nobody_takes_are_kept_and_their_executor_is_free(tmp_path: Path) -> None:
    async def story(it: Wire) -> None:
        await it.results.tell()
        await it.executor_works()
        it.lose_link()
        it.results.keep()
        await it.executor_works()
        assert it.results.is_safe
        assert it.to_kernel == []
        for _ in range(2):  # and the link breaks once more
            await it.results.send_again(has_rings=False)
            await it.kernel_works()
            it.lose_link()
        await it.results.send_again(has_rings=False)
        await it.finish()

    played(story, tmp_path)


def test_a_kernel_that_comes_while_they_are_taken_in_has_them_afterwards(tmp_path: Path) -> None:
    async def story(it: Wire) -> None:
        await it.results.tell()
        await it.executor_works(2)
        it.lose_link()
        it.results.keep()
        await it.executor_works(2)
        await it.results.send_again(has_rings=True)
        await it.finish()

    played(story, tmp_path)


def test_an_executor_that_sends_more_than_it_said_is_found_out(tmp_path: Path) -> None:
    async def story(it: Wire) -> None:
        total = sum(it.results.ended.parcel.sizes)
        with pytest.raises(MalformedMessage):
            await it.results.receive(wire.Chunk(cell=CELL, size=total + 1), (b"",))

    played(story, tmp_path)
