"""Text that is printed and has not left this process yet, in memory that its agent reads when the process is dead.

Text waits some milliseconds for more to go with it, and a megabyte of it where the agent is behind. Who crashes, is
killed or calls os._exit leaves no time for that, and the last words are those that say why. They lie in a memfd: a
descriptor could be closed and be another file by then.
"""

import mmap
import os
import struct
from typing import NamedTuple

#: By descriptor.
STREAM_NAMES = {1: "stdout", 2: "stderr"}
#: How many characters may be under way before a writer waits, what each text costs beside its own counted in.
QUEUE_LIMIT = 2**20
#: Longer texts are cut.
PIECE = 2**17
#: As much as may be unsent: what made a writer wait, and what some others wrote who saw room at the same moment.
MOST_UNSENT = QUEUE_LIMIT + 4 * PIECE
#: So much of what was sent lies about, until what was not is moved to its place.
_SENT_BYTES = 2**18
#: Of UTF-8, with up to 4 bytes for each character. A process has as many pages of it as it needs.
AREA_BYTES = 4 * MOST_UNSENT + _SENT_BYTES
#: More records than that are not read: the shortest texts of a full queue, and of what was sent, are fewer.
_MOST_RECORDS = 2**15
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
    """The area, as who prints fills it: one at a time. Where there is no room, the oldest texts are not kept."""

    def __init__(self, memory: int) -> None:
        """Map the memory behind this descriptor, and close that. Raises OSError or ValueError where it cannot be."""
        self._area = mmap.mmap(memory, AREA_BYTES)
        os.close(memory)
        self._last = 0
        #: The number of the last text that was sent: nothing up to it is needed any more.
        self.sent = 0
        self._end = _END.size
        #: Beyond this end, what was sent makes room.
        self._limit = _SENT_BYTES

    def add(self, stream: str, text: str) -> int:
        """Keep a text, the last `PIECE` characters of it, until it is sent; return its number."""
        self._last += 1
        data = text[-PIECE:].encode("utf-8", "replace")
        if self.sent == self._last - 1:
            self._end, self._limit = _END.size, _SENT_BYTES
        elif self._end + _HEAD.size + len(data) > self._limit:
            self._compact(AREA_BYTES - _HEAD.size - len(data))
        begin = self._end + _HEAD.size
        _HEAD.pack_into(self._area, self._end, self._last, _DESCRIPTORS[stream], len(data))
        self._end = begin + len(data)
        self._area[begin : self._end] = data
        _END.pack_into(self._area, 0, self._end)
        return self._last

    def _compact(self, most: int) -> None:
        """Move what is not sent yet to the beginning, the last of it that ends before `most`."""
        at = _END.size
        while at < self._end:
            number, _, length = _HEAD.unpack_from(self._area, at)
            if number > self.sent and _END.size + self._end - at <= most:
                break
            at += _HEAD.size + length
        kept = self._area[at : self._end]
        self._end = _END.size + len(kept)
        self._area[_END.size : self._end] = kept
        _END.pack_into(self._area, 0, self._end)
        self._limit = min(self._end + _SENT_BYTES, AREA_BYTES)


def read_texts(area: bytes, received: int) -> list[Text]:
    """List the texts of an area that came after the one of this number. It may hold anything: a tenant writes it."""
    if len(area) < _END.size:
        return []
    (end,) = _END.unpack_from(area)
    found, at, before = list[Text](), _END.size, 0
    for _ in range(_MOST_RECORDS):
        if at + _HEAD.size > min(end, len(area)):
            break
        number, descriptor, length = _HEAD.unpack_from(area, at)
        if number < before:
            break  # killed while it was moving its texts: what was behind them is old
        at += _HEAD.size
        if number > received and descriptor in STREAM_NAMES:
            text = area[at : min(at + length, end)].decode("utf-8", "replace")
            found.append(Text(number, STREAM_NAMES[descriptor], text))
        at, before = at + length, number
    return found
