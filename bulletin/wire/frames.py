"""A message and its blobs as frames, and back, within limits.

Frame 0 is the mark of this protocol, frame 1 the message (msgpack), the rest are blobs that nobody here looks into.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from bulletin.errors import MalformedMessage
from bulletin.wire.messages import PROTOCOL, Message

#: Anything with the buffer interface: bytes, memoryview, mmap, a ZeroMQ frame's buffer.
Blob = bytes | bytearray | memoryview

MARK = b"BLTN" + bytes([PROTOCOL])
#: A message itself is small; what is large travels as blobs.
MESSAGE_LIMIT = 4 * 2**20
#: One blob. Outputs (a figure, a table) are the largest single blobs; state is cut into chunks.
BLOB_LIMIT = 64 * 2**20
BLOB_COUNT_LIMIT = 4096
#: What decoding raises of bytes from elsewhere, whatever they are: also of texts that are not UTF-8, nested too deep.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_encoder = msgspec.msgpack.Encoder()
Union = TypeVar("Union")


def pack(message: Message, blobs: Sequence[Blob] = ()) -> list[Blob]:
    """Encode a message and its blobs as frames."""
    return [MARK, _encoder.encode(message), *blobs]


class Unpacker(Generic[Union]):
    """Reads the messages of one link and direction: everything else is a MalformedMessage."""

    def __init__(self, union: type[Union] | object) -> None:
        self._decoder: msgspec.msgpack.Decoder[Union] = msgspec.msgpack.Decoder(union)

    def unpack(self, frames: Sequence[Blob]) -> tuple[Union, list[Blob]]:
        """Decode frames into the message and its blobs.

        Raises
        ------
        MalformedMessage
            If frames are missing, too many, too large, of another protocol, or not a message of this link.
        """
        if len(frames) < 2:
            raise MalformedMessage(f"{len(frames)} frames, at least 2 expected")
        if len(frames) > BLOB_COUNT_LIMIT + 2:
            raise MalformedMessage(f"{len(frames) - 2} blobs, at most {BLOB_COUNT_LIMIT} allowed")
        mark = bytes(frames[0][:16])
        if mark != MARK:
            if mark[:4] == MARK[:4] and len(mark) == len(MARK):
                raise MalformedMessage(f"protocol {mark[4]}, this side speaks {PROTOCOL}", mark[4])
            raise MalformedMessage("not a frame of Bulletin")
        if len(frames[1]) > MESSAGE_LIMIT:
            raise MalformedMessage(f"a message of {len(frames[1])} bytes, at most {MESSAGE_LIMIT} allowed")
        for blob in frames[2:]:
            if len(blob) > BLOB_LIMIT:
                raise MalformedMessage(f"a blob of {len(blob)} bytes, at most {BLOB_LIMIT} allowed")
        try:
            message = self._decoder.decode(frames[1])
        except UNREADABLE as error:
            raise MalformedMessage(str(error)[:200]) from None
        return message, list(frames[2:])
