"""The results of the last cell as the executor sends them: again on request, until they have arrived."""

import threading
from collections.abc import Mapping, Sequence
from mmap import mmap
from typing import NamedTuple

from msgspec import structs

from bulletin.ids import CellId
from bulletin.wire import blobs
from bulletin.wire.frames import Blob
from bulletin.wire.messages import Ended, Return, Took
from gpu_worker.executor.relay import Relay


class FinishedCell(NamedTuple):
    """What a cell hands back: how it ended, the parcel of what it changed, and what another notebook needs of it."""

    ended: Ended
    parts: Sequence[Blob]
    touched: Sequence[str]
    extra: Mapping[str, object]


class ResultSender:
    """Sends chunks, as many at once as the receiver's window allows. Used by the reader's and the main thread."""

    def __init__(self, relay: Relay, ring: mmap) -> None:
        """Send through the relay, and the bytes through the ring where the receiver has it mapped."""
        self._relay, self._ring = relay, ring
        self._lock = threading.Lock()
        self._finished: FinishedCell | None = None
        self._sender: blobs.Sender | None = None
        self._sender_cell = CellId("")

    def of(self, cell: CellId) -> FinishedCell | None:
        """Return the results of this cell, if it is the last one that ended; earlier ones are not kept."""
        finished = self._finished
        return finished if finished is not None and finished.ended.cell == cell else None

    def forget(self, cell: CellId | None = None) -> None:
        """Forget the results: they have arrived, or a new cell comes. With a cell, only if they are its."""
        with self._lock:
            if cell is None or self.of(cell) is not None:
                self._finished = self._sender = None

    def send(self, finished: FinishedCell, round_number: int, *, has_rings: bool, keep: bool = True) -> None:
        """Begin to send results as this round, and keep them for the next, if there is one."""
        with self._lock:
            if keep:
                self._finished = finished
            self._begin(finished, round_number, has_rings=has_rings)

    def send_again(self, wanted: Return) -> None:
        """Begin to send the results anew, as the round that is asked for."""
        with self._lock:
            finished = self.of(wanted.cell)
            if finished is not None:
                self._begin(finished, wanted.round, has_rings=wanted.has_rings)

    def acknowledge(self, took: Took) -> None:
        """Send more, since a chunk has been taken in."""
        with self._lock:
            if self._sender is None or self._sender_cell != took.cell or self._sender.round != took.round:
                return  # of a cell, or a round, before this one
            self._sender.took()
            self._send_ready(self._sender)

    def _begin(self, finished: FinishedCell, round_number: int, *, has_rings: bool) -> None:
        ended = structs.replace(finished.ended, round=round_number)
        if ended.parcel.inline:
            self._relay.send_at_once(ended, finished.parts)
            return
        self._sender = blobs.Sender(ended.cell, finished.parts, self._ring if has_rings else None, round_number)
        self._sender_cell = ended.cell
        self._relay.send_at_once(ended)
        self._send_ready(self._sender)

    def _send_ready(self, sender: blobs.Sender) -> None:
        for chunk, pieces in sender.ready():
            self._relay.send_at_once(chunk, pieces)
        if sender.is_done:
            self._sender = None
