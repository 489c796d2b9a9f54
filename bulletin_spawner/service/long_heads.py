"""Long heads of requests: they are parsed one after the other, and others' requests are answered in between.

Nobody is known before that. A head of thousands of lines, or of cookies, takes milliseconds, and a crowd's all come at
once; what a browser sends is short.
"""

from re import Pattern

from tornado import web
from tornado.iostream import IOStream, StreamClosedError

from bulletin_spawner.service.stranger_turns import StrangerTurns

#: What is longer waits for its turn, after which others have so long.
LONG_BYTES, _PAUSE_S = 4096, 0.01


class LongHeads:
    """The turns of all connections whose requests have long heads."""

    def __init__(self, pause_s: float = _PAUSE_S) -> None:
        """Take how long a pause there is after each."""
        self._turns = StrangerTurns(pause_s)

    def watch(self, stream: IOStream) -> None:
        """Have the long heads that come by a connection wait for their turns."""
        read = stream.read_until_regex

        async def read_in_turn(regex: bytes | str | Pattern[bytes], max_bytes: int | None = None) -> bytes:
            head = await read(regex, max_bytes)  # type: ignore[arg-type]  # as Tornado's own: it takes what `re` does
            if len(head) > LONG_BYTES:
                try:
                    await self._turns.take(stream)
                except web.Finish:
                    raise StreamClosedError from None
            return head

        stream.read_until_regex = read_in_turn  # type: ignore[method-assign]  # awaited, and no more
