"""What was printed and not sent is found by whoever holds the memory, once and in order, and nothing that was sent."""

import os
from collections.abc import Iterator

import pytest

from gpu_worker.executor.unsent_text import AREA_BYTES, Text, UnsentText, read_texts


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


def test_what_finds_no_room_is_left_out_and_what_follows_once_there_is_room_is_not(
    unsent: UnsentText, memory: int
) -> None:
    unsent.add("stdout", "first")
    unsent.add("stdout", "x" * AREA_BYTES)
    unsent.add("stdout", "third")
    assert [one.text for one in found(memory)] == ["first", "third"]


@pytest.mark.parametrize("size", [0, 7, 8, 30, AREA_BYTES])
def test_whatever_a_tenant_writes_there_can_be_read(size: int) -> None:
    for filling in (b"\0", b"\1", b"\xff", b"\x08\0\0\0\xff\xff\0\0"):
        for one in read_texts((filling * AREA_BYTES)[:size], 0):
            assert len(one.text) <= AREA_BYTES
