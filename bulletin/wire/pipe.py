"""Frames over a Unix stream socket: how an agent and its executor talk through an inherited descriptor.

Each packet is a count, the sizes, then the frames (little-endian, 4 and 8 bytes).
"""

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Protocol

from bulletin.errors import MalformedMessage
from bulletin.wire.frames import BLOB_COUNT_LIMIT, BLOB_LIMIT, MESSAGE_LIMIT, Blob

_COUNT = struct.Struct("<I")
#: As many pieces as one sendmsg call takes on Linux (IOV_MAX is 1024).
_PIECES = 512


def _head(frames: Sequence[Blob]) -> bytes:
    return struct.pack(f"<I{len(frames)}Q", len(frames), *(memoryview(frame).nbytes for frame in frames))


def _sizes(raw: bytes) -> tuple[int, ...]:
    sizes = struct.unpack(f"<{len(raw) // 8}Q", raw)
    if sum(sizes) > BLOB_LIMIT + MESSAGE_LIMIT:
        raise MalformedMessage(f"a packet of {sum(sizes)} bytes on a pipe, at most {BLOB_LIMIT} and a message allowed")
    return sizes


def _count(raw: bytes) -> int:
    (count,) = _COUNT.unpack(raw)
    if count > BLOB_COUNT_LIMIT + 2:
        raise MalformedMessage(f"{count} frames in one packet of a pipe")
    return int(count)


def send(sock: socket.socket, frames: Sequence[Blob]) -> None:
    """Send one packet, blocking. Raises OSError when the other end is gone."""
    pieces = [memoryview(_head(frames)), *(memoryview(frame).cast("B") for frame in frames)]
    while pieces:
        sent = sock.sendmsg(pieces[:_PIECES])
        while pieces and sent >= pieces[0].nbytes:
            sent -= pieces.pop(0).nbytes
        if sent:
            pieces[0] = pieces[0][sent:]


class Readable(Protocol):
    """What packets can be read from: a socket, or what waits for it in a way of its own."""

    def recv_into(self, view: memoryview) -> int:
        """Wait for bytes; return how many have come, 0 at the end."""


def receive(sock: Readable) -> list[Blob]:
    """Read the next packet, blocking. Raises EOFError when the other end is gone."""
    count = _count(bytes(_exactly(sock, 4)))
    return [_exactly(sock, size) for size in _sizes(bytes(_exactly(sock, 8 * count)))]


def _exactly(sock: Readable, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        got = sock.recv_into(view)
        if got == 0:
            raise EOFError
        view = view[got:]
    return data


async def read(reader: asyncio.StreamReader) -> list[Blob]:
    """Read the next packet, in an event loop. Raises EOFError (as IncompleteReadError) when the other end is gone."""
    count = _count(await reader.readexactly(4))
    return [await reader.readexactly(size) for size in _sizes(await reader.readexactly(8 * count))]


def write(writer: asyncio.StreamWriter, frames: Sequence[Blob]) -> None:
    """Send one packet, in an event loop. Await `writer.drain()` after it where much is written."""
    writer.writelines([_head(frames), *frames])
