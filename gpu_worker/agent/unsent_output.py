"""What an executor has written and not sent when it dies: the agent has the other ends of where that lies.

What is printed lies in memory (`UnsentText`); what C code and programs write lies in pipes in the place of the
descriptors 1 and 2, of which the executor reads while it lives.
"""

import asyncio
import fcntl
import itertools
import os
from collections.abc import Sequence
from operator import attrgetter

from bulletin.ids import UserName
from gpu_worker.agent.pipe_rests import PipeRests
from gpu_worker.executor.unsent_text import AREA_BYTES, MOST_UNSENT, PIECE, STREAM_NAMES, Text, read_texts

#: So many turns of the streams are told one by one.
_MOST_TURNS = 200
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class UnsentOutput:
    """Made for one executor, and passed to it; read once, when no process of it is left."""

    def __init__(self, user: UserName) -> None:
        """Take whose executor it is: where a pipe of the same user holds up its reader, these are not read."""
        self._memory = os.memfd_create("bulletin-unsent", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._memory, AREA_BYTES)
        fcntl.fcntl(self._memory, fcntl.F_ADD_SEALS, _SEALS)
        readers: dict[str, int] = {}
        ends: list[int] = []
        is_read = not PipeRests.is_held_up(user)
        for name in STREAM_NAMES.values():
            reader, writer = os.pipe()
            os.set_blocking(reader, False)
            ends += reader, writer
            if is_read:
                # One of its own: a tenant can make that which the executor gets one that waits for ever.
                readers[name] = os.open(f"/proc/self/fd/{reader}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        #: What the executor gets: the memory, and of each pipe both ends.
        self.descriptors = (self._memory, *ends)
        # The executor, which ends, is not to be the last one that closes its ends.
        self._rests = PipeRests(user, readers, ends if is_read else ())
        self._unread = [] if is_read else ends
        #: The number of the last text that has come.
        self.received = 0

    def close_unread(self) -> None:
        """Close pipes that are not read, once the executor has them: later on, a tenant may hold up who closes them."""
        ends, self._unread = self._unread, []
        for end in ends:
            os.close(end)

    async def read(self) -> list[tuple[str, str]]:
        """Read what has not come, as names of streams with their texts; what was printed before what C code wrote."""
        printed = await asyncio.to_thread(self._read_printed)
        return printed + await self._rests.read()

    def _read_printed(self) -> list[tuple[str, str]]:
        return join(read_texts(os.pread(self._memory, AREA_BYTES, 0), self.received))

    def close(self) -> None:
        """Give all of it back."""
        self.close_unread()
        self._rests.close()
        memory, self._memory = self._memory, -1
        if memory >= 0:
            os.close(memory)


def join(texts: Sequence[Text]) -> list[tuple[str, str]]:
    """Join texts into few, of which none is too long: those of a stream that follow one another.

    The last of what is too much are kept, and where streams take too many turns, the last ones are.
    """
    size, first = 0, len(texts)
    while first and (size := size + len(texts[first - 1].text)) <= MOST_UNSENT:
        first -= 1
    by_stream = attrgetter("stream")
    runs = [list(run) for _, run in itertools.groupby(texts[first:], by_stream)]
    early = sorted(itertools.chain.from_iterable(runs[:-_MOST_TURNS]), key=by_stream)
    runs[:-_MOST_TURNS] = [list(run) for _, run in itertools.groupby(early, by_stream)]
    joined: list[tuple[str, str]] = []
    for run in runs:
        text = "".join(one.text for one in run)
        joined += [(run[0].stream, text[at : at + PIECE]) for at in range(0, len(text), PIECE)]
    return joined
