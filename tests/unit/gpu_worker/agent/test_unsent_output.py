"""What an executor left is read without waiting, whatever it did to its own ends, and as much as may be unsent."""

import asyncio
import os

from bulletin.ids import UserName
from gpu_worker.agent.unsent_output import UnsentOutput, join
from gpu_worker.executor.unsent_text import MOST_UNSENT, PIECE, Text, UnsentText

ADA = UserName("ada")


def test_a_tenant_that_makes_its_reader_wait_does_not_hold_up_its_agent() -> None:
    unsent = UnsentOutput(ADA)
    try:
        _, reader, writer, *_ = unsent.descriptors
        os.set_blocking(reader, True)
        os.write(writer, b"last words")
        assert asyncio.run(unsent.read()) == [("stdout", "last words")]
    finally:
        unsent.close()


def test_what_was_printed_comes_before_what_c_code_wrote_and_what_has_come_does_not() -> None:
    unsent = UnsentOutput(ADA)
    try:
        texts = UnsentText(os.dup(unsent.descriptors[0]))
        unsent.received = 1
        for text in ("has come", "one\n", "two\n"):
            texts.add("stdout", text)
        os.write(unsent.descriptors[4], b"assert triggered")
        assert asyncio.run(unsent.read()) == [("stdout", "one\ntwo\n"), ("stderr", "assert triggered")]
    finally:
        unsent.close()


def test_texts_go_together_as_far_as_they_are_of_one_stream_and_no_longer_than_one_may_be() -> None:
    texts = [Text(1, "stdout", "a"), Text(2, "stdout", "b"), Text(3, "stderr", "c"), Text(4, "stdout", "d" * PIECE)]
    texts.append(Text(5, "stdout", "e"))
    assert join(texts) == [("stdout", "ab"), ("stderr", "c"), ("stdout", "d" * PIECE), ("stdout", "e")]
    assert join([]) == []


def test_where_streams_take_many_turns_the_last_ones_are_in_their_order() -> None:
    streams = ("stdout", "stderr")
    texts = [Text(number, streams[number % 2], f"{number}\n") for number in range(1_000)]
    joined = join(texts)
    assert len(joined) < 300
    assert joined[-150:] == [(one.stream, one.text) for one in texts[-150:]]
    for stream in streams:
        expected = "".join(one.text for one in texts if one.stream == stream)
        assert "".join(text for name, text in joined if name == stream) == expected


def test_of_more_than_can_be_unsent_the_last_is_kept() -> None:
    """A tenant writes what it likes where its texts lie."""
    texts = [Text(number, "stdout", str(number % 10) * PIECE) for number in range(50)]
    joined = join(texts)
    assert sum(len(text) for _, text in joined) == MOST_UNSENT
    assert joined[-1] == ("stdout", "9" * PIECE)
