"""What was printed and not sent is found by whoever holds the memory, once and in order, and nothing that was sent."""

import os
import struct
from collections.abc import Iterator

import pytest

from gpu_worker.executor.relay import _ITEM
from gpu_worker.executor.unsent_text import AREA_BYTES, PIECE, QUEUE_LIMIT, Text, UnsentText, read_texts


@pytest.fixture
def memory() -> Iterator[int]:
    descriptor = os.memfd_create("unsent")
    os.ftruncate(descriptor, AREA_BYTES)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def unsent(memory: int) -> UnsentText:
    return UnsentText(os.dup(memory))


def found(memory: int, received: int = 0) -> list[Text]:
    return read_texts(os.pread(memory, AREA_BYTES, 0), received)


def test_what_was_printed_is_found_by_its_stream_and_its_order(unsent: UnsentText, memory: int) -> None:
    for stream, text in (("stdout", "one\n"), ("stderr", "é"), ("stdout", "")):
        unsent.add(stream, text)
    assert found(memory) == [Text(1, "stdout", "one\n"), Text(2, "stderr", "é"), Text(3, "stdout", "")]


def test_what_has_come_is_not_told_again(unsent: UnsentText, memory: int) -> None:
    for text in "abc":
        unsent.add("stdout", text)
    assert [one.text for one in found(memory, received=2)] == ["c"]
    unsent.sent = 3
    unsent.add("stdout", "d")
    assert [one.text for one in found(memory, received=3)] == ["d"]


def test_what_is_printed_for_ever_finds_room_as_what_was_sent_goes(unsent: UnsentText, memory: int) -> None:
    for number in range(1, 5_000):
        assert unsent.add("stdout", "x" * 100 + str(number)) == number
        unsent.sent = number - 3  # never all of it
    assert [one.text[100:] for one in found(memory, received=4_996)] == ["4997", "4998", "4999"]


@pytest.mark.parametrize("text", ["x", "x" * 70, "\N{SNOWMAN}" * 1_000, "\U0001f600" * PIECE])
def test_all_that_may_be_under_way_is_kept(text: str, unsent: UnsentText, memory: int) -> None:
    """What each text costs beside its characters, `relay` says; what was sent before lies about."""
    for _ in range(20_000):
        unsent.sent = unsent.add("stdout", "sent") - 1
    first, cost = unsent._last + 1, len(text) + _ITEM
    count = QUEUE_LIMIT // cost + 1
    for _ in range(count):
        unsent.add("stderr", text)
    unsent.add("stdout", "why")
    kept = found(memory, received=first - 1)
    assert [one.number for one in kept] == list(range(first, first + count + 1))
    assert {one.text for one in kept[:-1]} == {text}
    assert kept[-1].text == "why"


def test_where_there_is_no_room_the_last_words_are_kept(unsent: UnsentText, memory: int) -> None:
    for number in range(20):
        unsent.add("stdout", chr(0x1F600 + number) * PIECE)
    unsent.add("stdout", "why")
    kept = found(memory)
    assert kept[-1] == Text(21, "stdout", "why")
    assert [one.number for one in kept] == list(range(kept[0].number, 22))
    assert sum(len(one.text) for one in kept) >= QUEUE_LIMIT


def test_of_a_text_that_is_too_long_the_end_is_kept(unsent: UnsentText, memory: int) -> None:
    unsent.add("stdout", "x" * AREA_BYTES + "why")
    assert found(memory)[0].text[-4:] == "xwhy"


def test_what_lies_behind_texts_that_were_being_moved_is_not_told(memory: int) -> None:
    area = b"".join(struct.pack("=QBI", number, 1, 1) + b"." for number in (5, 6, 2, 7))
    assert [one.number for one in read_texts(struct.pack("=I", 4 + len(area)) + area, 0)] == [5, 6]


@pytest.mark.parametrize("size", [0, 7, 8, 30, AREA_BYTES])
def test_whatever_a_tenant_writes_there_can_be_read(size: int) -> None:
    for filling in (b"\0", b"\1", b"\xff", b"\x08\0\0\0\xff\xff\0\0"):
        for one in read_texts((filling * AREA_BYTES)[:size], 0):
            assert len(one.text) <= AREA_BYTES
