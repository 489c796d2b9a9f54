"""The descriptors 1 and 2 of an executor, captured: what C code and subprocesses write there goes to the relay."""

import codecs
import contextlib
import ctypes
import os
import select
import threading
from collections.abc import Sequence

from gpu_worker.executor.relay import Relay
from gpu_worker.executor.unsent_text import STREAM_NAMES

_READ_BYTES = 2**16
#: Line-buffered, of stdio.h.
_IOLBF = 1
_libc = ctypes.CDLL(None)


class CapturedDescriptors:
    """Pipes in the place of both, of which a thread of ours reads."""

    def __init__(self, relay: Relay, pipe_ends: Sequence[int]) -> None:
        """Take a reader and a writer for each: the agent has them, too, and reads what is left if this process dies."""
        self._relay = relay
        self._lock = threading.Lock()
        self._names: dict[int, str] = {}
        self._decoders: dict[int, codecs.IncrementalDecoder] = {}
        # One poll object serves one thread at a time.
        self._watched, self._readable = select.poll(), select.poll()
        self._pipe_ends = pipe_ends  # the writers too: so that the pipes never end
        ends = zip(pipe_ends[::2], pipe_ends[1::2], strict=True)
        for (descriptor, name), (reader, writer) in zip(STREAM_NAMES.items(), ends, strict=True):
            os.dup2(writer, descriptor)
            self._names[reader] = name
            self._decoders[reader] = codecs.getincrementaldecoder("utf-8")("replace")
            for readable in (self._watched, self._readable):
                readable.register(reader, select.POLLIN)
            # A pipe makes C's stdio keep lines back.
            _libc.setvbuf(ctypes.c_void_p.in_dll(_libc, name), None, _IOLBF, 0)

    def start(self) -> None:
        """Start the thread that reads."""
        threading.Thread(target=self._watch, name="bulletin-descriptors", daemon=True).start()

    def drain(self) -> None:
        """Pass on what has been written so far, without waiting for what is being written."""
        if self._lock.acquire(timeout=0.05):
            try:
                for reader, _ in self._readable.poll(0):
                    self._pass_on(reader)
            finally:
                self._lock.release()

    def flush(self) -> None:
        """Pass on what C code keeps in its buffers too."""
        for name in STREAM_NAMES.values():
            _libc.fflush(ctypes.c_void_p.in_dll(_libc, name))
        self.drain()

    def become_child(self) -> None:
        """Close the pipes in a fork: only the parent reads."""
        self._lock = threading.Lock()
        for descriptor in self._pipe_ends:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _watch(self) -> None:
        while True:
            self._watched.poll()
            while not self._relay.has_room:
                self._relay.wait_briefly()
            self.drain()

    def _pass_on(self, reader: int) -> None:
        try:
            data = os.read(reader, _READ_BYTES)
        except BlockingIOError:
            return
        text = self._decoders[reader].decode(data)
        if text:
            self._relay.queue_text(self._names[reader], text)
