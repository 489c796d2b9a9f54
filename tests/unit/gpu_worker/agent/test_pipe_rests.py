"""Who holds a pipe of an executor that is gone holds up one thread of the agent, and costs nobody else anything.

A pipe that blocks, with a writer that says nothing, is as one whose lock is held: who reads it waits in the kernel.
"""

import asyncio
import os

import pytest

from bulletin.ids import UserName
from gpu_worker.agent.pipe_rests import PipeRests
from gpu_worker.agent.unsent_output import UnsentOutput
from tests import waiting

ADA, EVE = UserName("ada"), UserName("eve")


def filled(text: bytes) -> int:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.write(writer, text)
    os.close(writer)
    return reader


def test_what_is_left_is_read_and_all_is_closed() -> None:
    readers = {"stdout": filled(b"said"), "stderr": filled(b"\xff!")}
    ends = os.pipe()
    rests = PipeRests(ADA, readers, ends)
    assert asyncio.run(rests.read()) == [("stdout", "said"), ("stderr", "\ufffd!")]
    for reader in (*readers.values(), *ends):
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(reader)
    rests.close()


def words(user: UserName) -> list[tuple[str, str]]:
    """What an executor of this user leaves that writes once to its standard error, and ends."""

    async def main() -> list[tuple[str, str]]:
        unsent = UnsentOutput(user)
        os.write(unsent.descriptors[-1], b"why")
        unsent.close_unread()
        try:
            return await unsent.read()
        finally:
            unsent.close()

    return asyncio.run(main())


def test_who_holds_a_pipe_holds_up_nobody_but_the_reader_of_later_ones_of_the_same_user() -> None:
    reader, writer = os.pipe()
    rests = PipeRests(EVE, {"before": filled(b"said"), "held": reader}, ())
    try:
        assert asyncio.run(rests.read()) == [("before", "said")]
        assert PipeRests.is_held_up(EVE)
        assert not PipeRests.is_held_up(ADA)
        assert words(ADA) == [("stderr", "why")]
        assert words(EVE) == [], "or each of them could cost the agent one more thread"
    finally:
        os.close(writer)
    waiting.until(lambda: not PipeRests.is_held_up(EVE), "the reader goes on")
    assert words(EVE) == [("stderr", "why")]


def test_readers_of_what_nobody_wants_to_read_are_closed() -> None:
    reader, writer = os.pipe()
    PipeRests(ADA, {"stdout": reader}, ()).close()

    def is_closed() -> bool:
        try:
            os.write(writer, b"x")
        except BrokenPipeError:
            return True
        return False

    waiting.until(is_closed, "the reader is closed")
    os.close(writer)
