"""What an executor's process says, which may be user code that speaks for it."""

import asyncio
import socket

import pytest

from bulletin.errors import MalformedMessage
from bulletin.wire import messages as wire, pipe
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.messages.folder import MOST_KNOWN
from gpu_worker.agent.paced_reader import PacedReader


def rests_after(*said: wire.Message) -> list[float]:
    """For how long others go on, each time, while these are read, the blobs of the first MB of each counted."""
    rests: list[float] = []

    async def rest(for_s: float) -> None:
        rests.append(for_s)

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            reader, writer = await asyncio.open_connection(sock=ours)
            paced = PacedReader(reader, rest)
            for message in said:
                sending = asyncio.to_thread(pipe.send, theirs, pack(message, [bytes(2**20)]))
                await asyncio.gather(sending, paced.read())
            writer.close()

    asyncio.run(main())
    return rests


def test_after_a_long_word_others_go_on_for_as_long_as_it_is_and_blobs_are_not_words() -> None:
    short, long = wire.ListFolder(number=1, root="/here"), wire.EnvironmentFound(sentences=("x" * 2**20,))
    assert rests_after(short, short) == []
    (once,) = rests_after(long)
    (first, second) = rests_after(long, short, wire.EnvironmentFound(sentences=("x" * 2**21,)))
    assert first == once > 0.1
    assert second > 1.9 * first


def test_who_says_many_lets_others_have_their_turn() -> None:
    assert rests_after(*[wire.ListFolder(number=1, root="/here")] * 100) == [0] * 6


def test_a_request_for_a_file_is_not_longer_than_an_honest_one() -> None:
    unpacker: Unpacker[wire.FromFolder] = Unpacker(wire.FromFolder)
    honest = wire.FetchFile(number=1, root="/here", path="a", offset=0, size=1, known=("0" * 32,) * MOST_KNOWN)
    assert unpacker.unpack(pack(honest))[0] == honest
    with pytest.raises(MalformedMessage):
        unpacker.unpack(pack(wire.FetchFile(number=1, root="/here", path="a", offset=0, size=1, known=("",) * 10**6)))
