"""Text that is printed and has not left this process yet, in memory that its agent reads when the process is dead.

Text waits some milliseconds for more to go with it. Who crashes, is killed or calls os._exit leaves no such time, and
the last words are those that say why. They lie in a memfd: a descriptor could be closed and be another file by then.
"""

import mmap
import os
import struct
from typing import NamedTuple

#: By descriptor.
STREAM_NAMES = {1: "stdout", 2: "stderr"}
AREA_BYTES = 2**16
#: Where the records end, which follow one another from here on.
_END = struct.Struct("=I")
_DESCRIPTORS = {name: descriptor for descriptor, name in STREAM_NAMES.items()}
#: Of a record: the number of the text, its descriptor, its length.
_HEAD = struct.Struct("=QBI")


class Text(NamedTuple):
    """A text of a stream, as it was printed; the numbers of an executor's texts go up."""

    number: int
    stream: str
    text: str


class UnsentText:
    """The area, as who prints fills it: one at a time. What finds no room is not kept."""

    def __init__(self, memory: int) -> None:
        """Map the memory behind this descriptor, and close that. Raises OSError or ValueError where it cannot be."""
        self._area = mmap.mmap(memory, AREA_BYTES)
        os.close(memory)
        self._last = 0
        #: The number of the last text that was sent: nothing up to it is needed any more.
        self.sent = 0
        self._end = _END.size

    def add(self, stream: str, text: str) -> int:
        """Keep a text until it is sent; return its number."""
        self._last += 1
        data = text.encode("utf-8", "replace")
        if self.sent == self._last - 1:
            self._end = _END.size
        elif self._end + _HEAD.size + len(data) > AREA_BYTES:
            self._compact()
        begin = self._end + _HEAD.size
        if begin + len(data) <= AREA_BYTES:
            _HEAD.pack_into(self._area, self._end, self._last, _DESCRIPTORS[stream], len(data))
            self._end = begin + len(data)
            self._area[begin : self._end] = data
            _END.pack_into(self._area, 0, self._end)
        return self._last

    def _compact(self) -> None:
        """Move what is not sent yet to the beginning."""
        at = _END.size
        while at < self._end:
            number, _, length = _HEAD.unpack_from(self._area, at)
            if number > self.sent:
                break
            at += _HEAD.size + length
        kept = self._area[at : self._end]
        self._end = _END.size + len(kept)
        self._area[_END.size : self._end] = kept
        _END.pack_into(self._area, 0, self._end)


def read_texts(area: bytes, received: int) -> list[Text]:
    """List the texts of an area that came after the one of this number. It may hold anything: a tenant writes it."""
    if len(area) < _END.size:
        return []
    (end,) = _END.unpack_from(area)
    found, at = list[Text](), _END.size
    while at + _HEAD.size <= min(end, len(area)):
        number, descriptor, length = _HEAD.unpack_from(area, at)
        at += _HEAD.size
        if number > received and descriptor in STREAM_NAMES:
            text = area[at : min(at + length, end)].decode("utf-8", "replace")
            found.append(Text(number, STREAM_NAMES[descriptor], text))
        at += length
    return found
