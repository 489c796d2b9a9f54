"""Bulk bytes: parcels through blobs and through a ring, whole, in order, within a window."""

import os

import pytest
from hypothesis import given, strategies as st

from bulletin.errors import MalformedMessage
from bulletin.ids import CellId
from bulletin.wire import blobs
from bulletin.wire.messages import Chunk, Parcel

CELL = CellId("c")


def carry(parts: list[bytes], *, through_ring: bool) -> tuple[list[bytes], int]:
    """Send parts through a window that is kept full; the parts as they arrive, and the most chunks under way."""
    handle = blobs.make_ring() if through_ring else None
    ends = (blobs.map_ring(handle), blobs.map_ring(handle)) if handle is not None else (None, None)
    parcel = Parcel(sizes=tuple(map(len, parts)), inline=False)
    sender, receiver = blobs.Sender(CELL, parts, ends[0]), blobs.Receiver(parcel, [], ends[1])
    most = 0
    while not receiver.is_done:
        under_way = list(sender.ready())
        most = max(most, len(under_way))
        assert under_way, "the window is open and nothing is sent"
        for chunk, pieces in under_way:
            receiver.take(chunk, pieces)
            sender.took()
    assert sender.is_done
    if handle is not None:
        os.close(handle)
    return [bytes(part) for part in receiver.parts], most


@pytest.mark.parametrize("through_ring", [False, True])
def test_a_parcel_larger_than_the_ring_arrives_whole_within_the_window(*, through_ring: bool) -> None:
    parts = [b"head", bytes(range(256)) * 4096 * 20, b"", os.urandom(5_000_001), b"tail"]
    arrived, most = carry(parts, through_ring=through_ring)
    assert arrived == parts
    assert most == blobs.WINDOW


@given(st.lists(st.binary(max_size=2000), max_size=30), st.booleans())
def test_any_parts_arrive_as_they_were(parts: list[bytes], through_ring: bool) -> None:
    arrived, _ = carry(parts, through_ring=through_ring)
    assert arrived == parts


def test_small_parcels_travel_in_their_message() -> None:
    parts = [b"abc", bytes(1000)]
    parcel = blobs.describe(parts)
    assert parcel.inline
    assert [bytes(part) for part in blobs.Receiver(parcel, parts, None).parts] == parts
    assert not blobs.describe([bytes(blobs.INLINE_LIMIT + 1)]).inline


@pytest.mark.parametrize(
    ("parcel", "given_blobs"),
    [
        (Parcel(sizes=(2**60,), inline=False), []),
        (Parcel(sizes=(-1, 2), inline=False), []),
        (Parcel(sizes=(2**20,), inline=True), [b""]),
        (Parcel(sizes=(3,), inline=True), [b"four"]),
        (Parcel(sizes=(3, 3), inline=True), [b"abc"]),
    ],
)
def test_absurd_sizes_are_refused_before_any_memory_is_asked_for(parcel: Parcel, given_blobs: list[bytes]) -> None:
    with pytest.raises(MalformedMessage):
        blobs.Receiver(parcel, given_blobs, None)


def test_chunks_that_do_not_fit_are_refused() -> None:
    handle = blobs.make_ring()
    ring = blobs.map_ring(handle)
    for chunk, pieces in [
        (Chunk(cell=CELL, size=5), [b"more than said"]),
        (Chunk(cell=CELL, size=20), [b"x" * 20]),
        (Chunk(cell=CELL, size=4, at=blobs.RING), []),
        (Chunk(cell=CELL, size=4, at=-4), []),
        (Chunk(cell=CELL, size=blobs.RING, at=0), []),
        (Chunk(cell=CELL, size=-4, at=0), []),
    ]:
        receiver = blobs.Receiver(Parcel(sizes=(10,), inline=False), [], ring)
        with pytest.raises(MalformedMessage):
            receiver.take(chunk, pieces)
    os.close(handle)


def test_only_a_sealed_ring_of_the_right_size_is_mapped() -> None:
    handle = os.memfd_create("not-a-ring")
    os.ftruncate(handle, blobs.RING)
    with pytest.raises((ValueError, OSError)):
        blobs.map_ring(handle)
    os.close(handle)
    ring = blobs.make_ring()
    with pytest.raises(OSError, match="Operation not permitted"):
        os.ftruncate(ring, 1)
    os.close(ring)
