"""What leaves an executor: one queue, and one thread that writes it to the pipe.

Whatever a cell emits stays in the order in which it was emitted. The first text goes out at once, more of the same
stream within 5 ms goes together. A writer that is a megabyte ahead waits, so memory is bounded.
"""

import base64
import json
import math
import numbers
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from bulletin.ids import CellId
from bulletin.wire import pipe
from bulletin.wire.frames import BLOB_LIMIT, Blob, pack
from bulletin.wire.messages import FromExecutor, Output
from gpu_worker.executor.interrupts import Interrupts

_TOGETHER_S = 0.005
_AHEAD_LIMIT = 2**20
_PIECE = 2**17


class _Text(NamedTuple):
    cell: CellId
    name: str
    text: str


def encode(content: object) -> bytes:
    """Content of a Jupyter message as JSON, as a kernel would send it: bytes in base64, never NaN."""
    try:
        text = json.dumps(content, default=_plain, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):
        text = json.dumps(_clean(content), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _plain(value: object) -> object:
    match value:
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case date():
            return value.isoformat()
        case numbers.Integral():
            return int(value)
        case numbers.Real():
            return float(value)
        case Iterable():
            return list(value)
        case _:
            return repr(value)


def _clean(value: object) -> object:
    """The same with nothing in it that JSON does not have."""
    if isinstance(value, dict):
        return {str(key): _clean(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if value is None or isinstance(value, str | int | float) else _clean(_plain(value))


class Relay:
    """The only writer of the pipe. In a fork of the executor it writes to the descriptors 1 and 2 instead."""

    def __init__(self, link: socket.socket, interrupts: Interrupts) -> None:
        self._link, self._interrupts = link, interrupts
        self._queue: SimpleQueue[_Text | list[Blob]] = SimpleQueue()
        self._count = threading.Lock()
        self._put = self._gone = 0
        self._has_room = threading.Event()
        #: Called before anything is queued: what came another way, and came earlier, goes first.
        self.before: Callable[[], None] = lambda: None
        #: The cell that outputs belong to: the one that runs, or ran last.
        self.cell = CellId("")
        self.is_child = False

    def start(self) -> None:
        """Start writing."""
        threading.Thread(target=self._write_all, name="bulletin-relay", daemon=True).start()

    def send(self, message: FromExecutor, blobs: Sequence[Blob] = ()) -> None:
        """Queue a message. Safe in a signal handler."""
        self._queue.put(pack(message, blobs))

    def output(self, kind: str, content: dict[str, Any]) -> None:
        """Queue a Jupyter message of the cell."""
        if self.is_child:
            plain = content.get("data", {}).get("text/plain")
            if plain is not None:
                self.text("stdout", f"{plain}\n")
            return
        blob = encode(content)
        if len(blob) > BLOB_LIMIT:
            note = f"An output of {len(blob) / 2**20:.0f} MiB was left out: at most {BLOB_LIMIT // 2**20} MiB can be shown.\n"
            self.text("stderr", note)
            return
        self._wait_for_room()
        with self._interrupts:
            self.before()
            self._account(len(blob))
            self._queue.put(pack(Output(cell=self.cell, type=kind), [blob]))

    def text(self, name: str, text: str) -> None:
        """Queue text of a stream."""
        for start in range(0, len(text), _PIECE):
            piece = text[start : start + _PIECE]
            if self.is_child:
                _write_whole(2 if name == "stderr" else 1, piece.encode("utf-8", "replace"))
                continue
            self._wait_for_room()
            with self._interrupts:
                self.before()
                self.captured(name, piece)

    def captured(self, name: str, text: str) -> None:
        """Queue text that came through a descriptor. Does not wait: see `has_room`."""
        self._account(len(text))
        self._queue.put(_Text(self.cell, name, text))

    def note(self, sentence: str) -> None:
        """Say something of our own to the cell's user."""
        self._queue.put(_Text(self.cell, "stderr", f"bulletin: {sentence}\n"))

    @property
    def has_room(self) -> bool:
        """Fewer bytes are under way than the limit."""
        return self._put - self._gone < _AHEAD_LIMIT

    def wait(self) -> None:
        """Wait a little for room."""
        self._has_room.clear()
        if not self.has_room:
            self._has_room.wait(0.05)

    def become_child(self) -> None:
        """In a fork: the pipe is the parent's alone, and so is the thread that writes to it."""
        self.is_child = True
        self._count = threading.Lock()

    def _wait_for_room(self) -> None:
        while not self.has_room:
            self.wait()

    def _account(self, size: int) -> None:
        with self._count:
            self._put += size

    def _write_all(self) -> None:
        last = 0.0
        item: _Text | list[Blob] | None = None
        while True:
            item = item if item is not None else self._queue.get()
            following: _Text | list[Blob] | None = None
            if isinstance(item, _Text):
                text, following = self._gather(item, last + _TOGETHER_S)
                blob = encode({"name": item.name, "text": text})
                frames, size = pack(Output(cell=item.cell, type="stream"), [blob]), len(text)
            else:
                frames, size = item, len(item[2]) if len(item) > 2 else 0
            try:
                pipe.send(self._link, frames)
            except OSError:
                return  # the agent is gone; the reader of the pipe ends the process
            if isinstance(item, _Text):
                last = time.monotonic()
            self._gone += size
            self._has_room.set()
            item = following

    def _gather(self, first: _Text, until: float) -> tuple[str, _Text | list[Blob] | None]:
        """The text of this and of what follows at once in the same stream; and what came next."""
        pieces, size = [first.text], len(first.text)
        while size < _PIECE:
            try:
                item = self._queue.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                break
            if not isinstance(item, _Text) or item[:2] != first[:2]:
                return "".join(pieces), item
            pieces.append(item.text)
            size += len(item.text)
        return "".join(pieces), None


def _write_whole(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
