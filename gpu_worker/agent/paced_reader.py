"""How an agent reads what user code may say in its executor's name, by either pipe: others have turns meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable

from bulletin.wire import pipe
from bulletin.wire.frames import Blob

#: So many messages of one executor are heard before others have their turn.
_TURN = 16
#: And after a message that is longer than this, blobs not counted, it is not heard for as long as so many bytes a
#: second allow: to read such a message takes long, and user code can say one after the other.
_LONG_BYTES, _LONG_PER_S = 64 * 1024, 8 * 2**20


class PacedReader:
    """Reads packets from an executor's pipe."""

    def __init__(self, reader: asyncio.StreamReader, rest: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Take `rest`, which lets others go on for so many seconds."""
        self._reader, self._rest = reader, rest
        #: How many packets.
        self._heard = 0

    async def read(self) -> list[Blob]:
        """Wait for the next packet. Raises as `pipe.read` does."""
        self._heard += 1
        if self._heard % _TURN == 0:
            await self._rest(0)  # what has come already is read without waiting
        packet = await pipe.read(self._reader)
        said_bytes = memoryview(packet[1]).nbytes if len(packet) > 1 else 0
        if said_bytes > _LONG_BYTES:
            await self._rest(said_bytes / _LONG_PER_S)
        return packet
