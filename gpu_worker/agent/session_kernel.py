"""The kernel of a session, as its agent knows it: the connection that it is reached by, and when it was heard."""

from collections.abc import Awaitable, Callable, Sequence

from bulletin.wire import messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.agent.clock import now_ms

#: After so long, or `away_ms`, another kernel may join the cell of one that is silent: it has not even answered once.
_GONE_MS = 3_000

#: Sends a message to a connection. The kernel may be gone: what it is sent may be lost.
ToKernel = Callable[[bytes, wire.Message, Sequence[Blob]], Awaitable[None]]


class SessionKernel:
    """Whichever kernel has shown the session's ticket last."""

    def __init__(self, send: ToKernel, away_ms: int) -> None:
        self._send, self._away_ms = send, away_ms
        #: The connection that showed the ticket last.
        self.route: bytes | None = None
        self.heard_ms = now_ms()
        #: One has shown the ticket, whatever became of its connection since.
        self.has_come = False
        #: It has said that it ends.
        self.has_left = False
        #: Outputs of its cell wait until it has seen others: what comes after them it is told when it has them all.
        self.is_behind = False
        #: It is not the one that sent the cell.
        self.is_joined = False

    async def tell(self, message: wire.Message, blobs: Sequence[Blob] = ()) -> None:
        """Send it a message; drop the message if there is no connection."""
        if self.route is not None and not (self.is_behind and _is_after_outputs(message)):
            await self._send(self.route, message, blobs)

    def mark_heard(self) -> None:
        """Take note that it is there."""
        self.heard_ms = now_ms()

    def attach(self, route: bytes) -> None:
        """Reach it by this connection from now on."""
        self.route, self.has_come, self.has_left = route, True, False
        self.mark_heard()

    def leave(self) -> None:
        """Take note that it ends."""
        self.route, self.has_left = None, True

    def replace(self) -> None:
        """Wait for another kernel, which joins the cell, in place of this one."""
        self.route, self.is_joined, self.has_left = None, True, False
        self.mark_heard()

    @property
    def is_attended(self) -> bool:
        """Whether it is there, as far as one knows."""
        return not self.has_left and now_ms() - self.heard_ms < min(_GONE_MS, self._away_ms)

    def is_silent_for(self, times_away: int) -> bool:
        """Tell whether nothing was heard of it for so many times `away_ms`, or it has left: nothing will be."""
        return self.has_left or now_ms() - self.heard_ms >= times_away * self._away_ms


def _is_after_outputs(message: wire.Message) -> bool:
    """Whether a kernel is told this of its cell only when it has been sent all outputs of before."""
    is_lost = isinstance(message, wire.Lost) and message.cell is not None
    return is_lost or isinstance(message, wire.Asked | wire.Ended | wire.Chunk)
