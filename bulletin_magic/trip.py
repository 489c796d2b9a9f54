"""One cell's way to its node and back: its parcels, the outputs seen, the notes given. Owned by the session."""

import mmap
from collections.abc import Sequence

from bulletin.ids import RequestId
from bulletin.wire.blobs import Receiver, Sender, describe
from bulletin.wire.frames import Blob
from bulletin.wire.messages import Chunk, Ended, Output, Run
from bulletin_magic.facts import CellAsked

#: Outputs are acknowledged after so many, or after so long.
SEEN_COUNT, SEEN_MS = 64, 100


class Trip:
    """A cell under way. Everything here ends with the cell."""

    def __init__(self, asked: CellAsked, now_ms: int) -> None:
        self.asked, self.cell = asked, asked.cell
        self.tries, self.request = 1, asked.request
        self.asked_ms = now_ms
        self.shipped_ms: int | None = None
        #: The agent is known to have taken the Run in.
        self.is_taken = False
        self.sender: Sender | None = None
        #: Chunks that were sent and not yet taken in.
        self.outstanding = 0
        self.ended: Ended | None = None
        self.receiver: Receiver | None = None
        self.returned_bytes = 0
        self.seen = self._acknowledged = 0
        self.seen_due_ms: int | None = None
        self.is_asking = False
        self.stops = 0
        self.stop_note_ms: int | None = None
        self.give_up_ms: int | None = None
        self.greet_by_ms: int | None = None
        self.ping_ms = now_ms
        #: When a Submit was sent or a Queued came.
        self.queue_heard_ms = now_ms
        self.heard_broker = self.broker_restarted = False
        #: Why the lease is over, if the broker said so while results were coming in.
        self.revoked = ""
        self._said: set[str] = set()

    @property
    def is_shipped(self) -> bool:
        """The Run has been sent to the lease of now."""
        return self.shipped_ms is not None

    @property
    def sent_bytes(self) -> int:
        """The size of the state that went out."""
        return sum(memoryview(part).nbytes for part in self.asked.parts)

    def again(self) -> None:
        """The lease came to nothing before the cell ran: ask for another."""
        self.tries += 1
        self.request = RequestId(f"{self.asked.request}-{self.tries}")
        self.shipped_ms, self.sender, self.outstanding, self.is_taken = None, None, 0, False

    def ship(self, ring_out: mmap.mmap | None, now_ms: int) -> tuple[Run, tuple[Blob, ...]]:
        """The message that starts the cell, and its blobs. What does not fit into it comes from `chunks`."""
        parcel = describe(self.asked.parts)
        self.sender = None if parcel.inline else Sender(self.cell, self.asked.parts, ring_out)
        self.shipped_ms, self.outstanding, self.is_taken = now_ms, 0, False
        run = Run(
            cell=self.cell,
            source=self.asked.source,
            number=self.asked.number,
            parcel=parcel,
            has_rings=ring_out is not None,
        )
        return run, self.asked.parts if parcel.inline else ()

    def chunks(self) -> list[tuple[Chunk, list[Blob]]]:
        """The chunks that may be sent now."""
        ready = list(self.sender.ready()) if self.sender else []
        self.outstanding += len(ready)
        return ready

    @property
    def is_out(self) -> bool:
        """All of the parcel has been sent."""
        return self.sender is None or self.sender.is_done

    def took(self) -> None:
        """The other side took a chunk in. One too many is dropped: it would widen the window."""
        if self.sender is not None and self.outstanding:
            self.outstanding -= 1
            self.sender.took()

    def is_news(self, output: Output, now_ms: int) -> bool:
        """Whether this output has not come before; it counts as seen from now on."""
        if output.seq <= self.seen:
            return False
        self.seen = output.seq
        if self.seen_due_ms is None:
            self.seen_due_ms = now_ms + SEEN_MS
        if self.seen - self._acknowledged >= SEEN_COUNT:
            self.seen_due_ms = now_ms
        return True

    def acknowledged(self) -> None:
        """A Seen was sent."""
        self._acknowledged, self.seen_due_ms = self.seen, None

    def end(self, ended: Ended, blobs: Sequence[Blob], ring_in: mmap.mmap | None) -> None:
        """The cell is over; take its parcel in. Raises MalformedMessage or MemoryError."""
        self.receiver = Receiver(ended.parcel, blobs, ring_in)
        self.ended, self.returned_bytes = ended, sum(ended.parcel.sizes)

    def forget_end(self) -> None:
        """The link broke while results came in: the agent says Ended again, and sends them from their start."""
        self.ended = self.receiver = None

    def first(self, note: str) -> bool:
        """Whether this note has not been given in this cell."""
        is_first = note not in self._said
        self._said.add(note)
        return is_first
