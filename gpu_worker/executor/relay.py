"""What leaves an executor: one queue, and one thread that writes it to the pipe, unless nothing is queued.

Whatever a cell emits stays in the order in which it was emitted. The first text goes out at once, more of the same
stream within 5 ms goes together. A writer that is a megabyte ahead waits, so memory is bounded.
"""

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from bulletin.ids import CellId
from bulletin.wire.frames import BLOB_LIMIT, Blob, pack
from bulletin.wire.messages import FromExecutor, Output
from gpu_worker.executor.agent_link import AgentLink, end_unheard
from gpu_worker.executor.cell_owners import CellOwners
from gpu_worker.executor.interrupts import Interrupts
from gpu_worker.executor.jupyter_json import encode_json
from gpu_worker.executor.unsent_text import PIECE, QUEUE_LIMIT, UnsentText

_TOGETHER_S = 0.005
#: `print` writes its newline by itself: worth waiting for.
_LINE_S = 0.0003
#: A flush does not wait for ever: nobody may be reading.
_FLUSH_S = 1.0
#: What a short text costs in memory beside its characters.
_ITEM = 160
#: How often at most a `print` looks whether a program has written something before it.
_DRAIN_EVERY_S = 0.0002


class _QueuedText(NamedTuple):
    """Text of a stream, which may go together with what follows."""

    cell: CellId
    name: str
    text: str
    number: int


class _Packet(NamedTuple):
    """A message, packed; `size` is what it counts while it is under way."""

    frames: list[Blob]
    size: int
    #: The number of the last text in it; 0 where there is none.
    text: int = 0


class Relay:
    """The only writer of the pipe. In a fork of the executor it writes to the descriptors 1 and 2 instead.

    The sender sleeps on `_wake` while there is nothing to do, and naps while more text may come. Whoever adds something
    wakes it only if it sleeps, or if what was added cannot wait: so most writes cost no switch of threads. What the
    notebook waits for is written by the thread that has it, where nothing else is on its way.
    """

    def __init__(self, link: AgentLink, interrupts: Interrupts, owners: CellOwners, unsent: UnsentText) -> None:
        """Write to `link`. Lines that must be done whole hold `interrupts`; `owners` says whose an output is.

        `unsent` keeps text until it is sent, whatever becomes of this process.
        """
        self._link, self._interrupts, self.owners, self._unsent = link, interrupts, owners, unsent
        #: Held while a text gets its number and its place in the queue; a signal handler may print, too.
        self._order = threading.RLock()
        self._items: deque[_QueuedText | _Packet] = deque()
        self._wake: SimpleQueue[None] = SimpleQueue()
        #: Held while something is taken out of the queue and written.
        self._writing = threading.Lock()
        #: The sender waits on `_wake`; somebody waits for it in `flush`.
        self._sleeps = False
        self._hurries = False
        self._count_lock = threading.Lock()
        self._queued_bytes = 0
        self._sent_bytes = 0
        #: Held until a message has left since it was last taken. No `Event`: a second interrupt in its Python code
        #: would become a RuntimeError of a lock that is not held, where the cell is to see KeyboardInterrupt.
        self._has_sent = threading.Lock()
        self._has_sent.acquire()
        self._drained_s = 0.0
        self._at_line_start = True
        #: Passes on what has come through the descriptors by now: it was written earlier than what comes next.
        self.drain_descriptors: Callable[[], None] = lambda: None
        self.is_child = False

    def start(self) -> None:
        """Start the thread that writes."""
        threading.Thread(target=self._write_all, name="bulletin-relay", daemon=True).start()

    def send(self, message: FromExecutor, blobs: Sequence[Blob] = ()) -> None:
        """Queue a message. Safe in a signal handler: it takes no lock that the interrupted code may hold."""
        self._items.append(_Packet(pack(message, blobs), 0))
        self._wake.put(None)

    def send_at_once(self, message: FromExecutor, blobs: Sequence[Blob] = ()) -> None:
        """Send a message without a switch of threads, behind all that is queued; queue it where it would have to wait.

        Not for signal handlers, nor for code that an interrupt may cut off.
        """
        frames = pack(message, blobs)
        if self._writing.acquire(blocking=False):  # first: else the sender's thread may take the room that was seen
            try:
                if not self._items and self._link.can_take(sum(map(_size, frames))):
                    self._write(frames)
                    return
            finally:
                self._writing.release()
        self._items.append(_Packet(frames, 0))
        self._wake.put(None)

    def publish(self, kind: str, content: dict[str, Any], buffers: Sequence[Blob] = ()) -> None:
        """Queue a Jupyter message of the cell; one of a comm with its buffers."""
        if self.is_child:
            plain = content.get("data", {}).get("text/plain")
            if plain is not None:
                self.write_text("stdout", f"{plain}\n")
            return
        blobs = [encode_json(content), *buffers]
        largest, whole = max(map(_size, blobs)), sum(map(_size, blobs))
        if largest > BLOB_LIMIT:
            size = f"{largest / 2**20:.0f} MiB"
            self.note_to_user(f"an output of {size} is not shown: at most {BLOB_LIMIT // 2**20} MiB can be.")
            return
        self._wait_for_room()
        with self._interrupts:
            self.drain_descriptors()
        self._items.append(_Packet(pack(Output(cell=self.owners.current, type=kind), blobs), whole))
        self._wake.put(None)
        self._account(whole)

    def write_text(self, name: str, text: str) -> None:
        """Queue text of a stream; wait while much is under way."""
        if len(text) > PIECE:
            for start in range(0, len(text), PIECE):
                self.write_text(name, text[start : start + PIECE])
            return
        if self.is_child:
            _write_whole(2 if name == "stderr" else 1, text.encode("utf-8", "replace"))
            return
        self._wait_for_room()
        now = time.monotonic()
        if self._at_line_start and now - self._drained_s > _DRAIN_EVERY_S:  # `print` writes its newline by itself
            self._drained_s = now
            with self._interrupts:
                self.drain_descriptors()
        self._at_line_start = text.endswith("\n")
        self.queue_text(name, text, self.owners.current)

    def queue_text(self, name: str, text: str, cell: CellId | None = None) -> None:
        """Queue text without waiting; see `has_room`. Without a cell it is the running one's."""
        cell = cell or self.owners.cell
        if not cell:
            return  # before the first cell nobody reads
        # An interrupt between these leaves too much room, never too little.
        with self._order:
            number = self._unsent.add(name, text)
            self._items.append(_QueuedText(cell, name, text, number))
        if self._sleeps:
            self._sleeps = False
            self._wake.put(None)
        self._account(len(text) + _ITEM)

    def note_to_user(self, sentence: str) -> None:
        """Queue a sentence of Bulletin's own for the cell's user."""
        self.queue_text("stderr", f"bulletin: {sentence}\n")

    @property
    def has_room(self) -> bool:
        """Whether fewer bytes are under way than the limit."""
        return self._queued_bytes - self._sent_bytes < QUEUE_LIMIT

    def wait_briefly(self) -> None:
        """Wait a little for room."""
        self._has_sent.acquire(blocking=False)
        if not self.has_room:
            self._wake.put(None)
            self._has_sent.acquire(timeout=0.05)

    def flush(self) -> None:
        """Wait until everything is on its way: C code that keeps the interpreter may come next."""
        deadline = time.monotonic() + _FLUSH_S
        while self._queued_bytes > self._sent_bytes and not self.is_child and time.monotonic() < deadline:
            self._hurries = True
            self._has_sent.acquire(blocking=False)
            if self._queued_bytes > self._sent_bytes:
                self._wake.put(None)
                self._has_sent.acquire(timeout=_TOGETHER_S)
        self._hurries = False

    def become_child(self) -> None:
        """Write, in a fork, to the descriptors: the pipe is the parent's, and so is the thread that writes to it."""
        self.is_child = True

    def _wait_for_room(self) -> None:
        while self._queued_bytes - self._sent_bytes >= QUEUE_LIMIT:
            self.wait_briefly()

    def _account(self, size: int) -> None:
        with self._count_lock:
            self._queued_bytes += size

    def _write_all(self) -> None:
        last = 0.0
        while True:
            self._wait_for_items()
            with self._writing:
                item = self._items.popleft()
                if isinstance(item, _QueuedText):
                    ends_line = item.text.endswith("\n")
                    self._nap(max(last + _TOGETHER_S - time.monotonic(), 0.0 if ends_line else _LINE_S))
                    packet = self._gather(item)
                    last = time.monotonic()
                else:
                    packet = item
                self._write(packet.frames)
            self._unsent.sent = packet.text or self._unsent.sent
            self._sent_bytes += packet.size
            if self._has_sent.locked():
                self._has_sent.release()

    def _write(self, frames: Sequence[Blob]) -> None:
        try:
            self._link.send(frames)
        except OSError:
            end_unheard()

    def _wait_for_items(self) -> None:
        while not self._items:
            self._sleeps = True
            if not self._items:  # asked again: whoever added before that line has not woken us
                self._wake.get()
            self._sleeps = False

    def _nap(self, duration_s: float) -> None:
        """Wait for more text, but not where something else waits to be sent."""
        if duration_s <= 0:
            return
        while not self._wake.empty():
            self._wake.get()
        if self._hurries or (self._items and not isinstance(self._items[-1], _QueuedText)):
            return
        with contextlib.suppress(Empty):
            self._wake.get(timeout=duration_s)

    def _gather(self, first: _QueuedText) -> _Packet:
        """Make one output of this text and of what follows at once in the same stream."""
        pieces, size, number = [first.text], len(first.text), first.number
        while self._items and size < PIECE:
            item = self._items[0]
            if not isinstance(item, _QueuedText) or item[:2] != first[:2]:
                break
            pieces.append(item.text)
            size, number = size + len(item.text), item.number
            self._items.popleft()
        content = {"name": first.name, "text": "".join(pieces)}
        frames = pack(Output(cell=first.cell, type="stream", text=number), [encode_json(content)])
        return _Packet(frames, size + _ITEM * len(pieces), number)


def _size(blob: Blob) -> int:
    return memoryview(blob).nbytes


def _write_whole(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
