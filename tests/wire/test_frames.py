"""Frames: what one side packs the other reads, and nothing else is read."""

import msgspec
import pytest
from hypothesis import given, strategies as st

from bulletin.errors import MalformedMessage
from bulletin.ids import CellId, KernelId
from bulletin.wire import frames, messages as wire

RUN = wire.Run(cell=CellId("c"), source="x = 1", number=3, parcel=wire.Parcel(sizes=(3, 0)))
kernel_to_agent: frames.Unpacker[wire.KernelToAgent] = frames.Unpacker(wire.KernelToAgent)
from_kernel: frames.Unpacker[wire.FromKernel] = frames.Unpacker(wire.FromKernel)


def test_a_message_and_its_blobs_come_out_as_they_went_in() -> None:
    message, blobs = kernel_to_agent.unpack([bytes(frame) for frame in frames.pack(RUN, [b"abc", b""])])
    assert message == RUN
    assert [bytes(blob) for blob in blobs] == [b"abc", b""]


def test_a_link_cannot_name_another_links_message() -> None:
    hello = wire.Hello(protocol=1, version="0", token="t", kernel=KernelId("k"))
    with pytest.raises(MalformedMessage, match="hello"):
        kernel_to_agent.unpack(frames.pack(hello))


def test_another_protocol_is_told_apart_from_junk() -> None:
    _, body = frames.pack(wire.Ping())
    with pytest.raises(MalformedMessage, match="protocol 9, this side speaks 1"):
        from_kernel.unpack([b"BLTN\x09", body])
    with pytest.raises(MalformedMessage, match="not a frame of Bulletin"):
        from_kernel.unpack([b"GET / HTTP/1.1", body])


def test_a_field_of_a_newer_version_is_passed_over() -> None:
    newer = msgspec.msgpack.encode({"kind": "withdraw", "request": "r", "because": "of a later version"})
    message, _ = from_kernel.unpack([frames.MARK, newer])
    assert message == wire.Withdraw(request="r")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([], "0 frames"),
        ([frames.MARK], "1 frames"),
        ([frames.MARK, b"\x00" * (frames.MESSAGE_LIMIT + 1)], "at most"),
        ([frames.MARK, b"\xc1"], "malformed"),
        ([frames.MARK, msgspec.msgpack.encode({"kind": "submit", "request": 7})], "Expected `str`, got `int`"),
        ([frames.MARK, msgspec.msgpack.encode({"kind": "submit", "request": "r", "gpus": "many"})], "Expected `int`"),
        ([frames.MARK, frames.pack(wire.Ping())[1], *([b""] * (frames.BLOB_COUNT_LIMIT + 1))], "blobs"),
    ],
)
def test_what_breaks_a_rule_is_malformed_and_says_which(parts: list[bytes], problem: str) -> None:
    with pytest.raises(MalformedMessage, match=problem):
        from_kernel.unpack(parts)


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_junk_is_malformed_and_never_another_error(parts: list[bytes]) -> None:
    with pytest.raises(MalformedMessage):
        from_kernel.unpack(parts)


@given(st.binary(max_size=300))
def test_junk_behind_a_right_mark_is_malformed_or_a_message(body: bytes) -> None:
    try:
        message, _ = from_kernel.unpack([frames.MARK, body])
    except MalformedMessage:
        return
    assert isinstance(message, wire.Message)
