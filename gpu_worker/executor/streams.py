"""What a cell writes to: `sys.stdout` and `sys.stderr`, and the descriptors 1 and 2 beneath them."""

import codecs
import contextlib
import ctypes
import io
import os
import select
import threading
from typing import Any

from gpu_worker.executor.relay import Relay

_NAMES = {1: "stdout", 2: "stderr"}
_READ = 2**16
_IOLBF = 1
_libc = ctypes.CDLL(None)


class Stream(io.TextIOBase):
    """`sys.stdout` or `sys.stderr` of a cell."""

    def __init__(self, relay: Relay, descriptor: int) -> None:
        self._relay, self._descriptor = relay, descriptor
        self.name = _NAMES[descriptor]
        self._buffer = _Bytes(self)
        #: In a fork: the line that is being written. Several processes write, and only whole lines stay apart.
        self._line = ""

    @property
    def buffer(self) -> "_Bytes":
        """Takes bytes."""
        return self._buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """What a notebook shows."""
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """Nothing that is printed fails because of a character."""
        return "replace"

    def write(self, text: str) -> int:
        """Send text; waits only when very much is under way."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._relay.is_child:
            whole, newline, self._line = (self._line + text).rpartition("\n")
            self._relay.text(self.name, whole + newline)
        else:
            self._relay.text(self.name, text)
        return len(text)

    def flush(self) -> None:
        """Send what forks keep back, and wait until it is on its way."""
        line, self._line = self._line, ""
        if line:
            self._relay.text(self.name, line)
        self._relay.flush()

    def writable(self) -> bool:
        """True."""
        return True

    def isatty(self) -> bool:
        """False, as in a notebook."""
        return False

    def fileno(self) -> int:
        """The descriptor that programs started by the cell write to."""
        return self._descriptor

    def close(self) -> None:
        """Stay open: the next cell prints too."""


class _Bytes(io.BufferedIOBase):
    """The binary side of a stream."""

    def __init__(self, stream: Stream) -> None:
        self.raw: Any = self
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: Any) -> int:
        data = memoryview(data).cast("B")
        self._stream.write(self._decoder.decode(data))
        return len(data)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def close(self) -> None:
        pass


class Descriptors:
    """Descriptors 1 and 2 as pipes of which a thread of ours reads: output of C code and of subprocesses."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._lock = threading.Lock()
        self._names: dict[int, str] = {}
        self._decoders: dict[int, codecs.IncrementalDecoder] = {}
        # One poll object serves one thread at a time.
        self._watched, self._readable = select.poll(), select.poll()
        self._kept: list[int] = []
        for descriptor, name in _NAMES.items():
            reader, writer = os.pipe()
            os.dup2(writer, descriptor)
            os.set_blocking(reader, False)
            self._kept += [reader, writer]  # the writer too: so that the pipe never ends
            self._names[reader] = name
            self._decoders[reader] = codecs.getincrementaldecoder("utf-8")("replace")
            for readable in (self._watched, self._readable):
                readable.register(reader, select.POLLIN)
            # A pipe makes C's stdio keep lines back.
            _libc.setvbuf(ctypes.c_void_p.in_dll(_libc, name), None, _IOLBF, 0)

    def start(self) -> None:
        """Start reading."""
        threading.Thread(target=self._watch, name="bulletin-descriptors", daemon=True).start()

    def drain(self) -> None:
        """Pass on what has been written so far. Does not wait for what is being written."""
        if self._lock.acquire(timeout=0.05):
            try:
                for reader, _ in self._readable.poll(0):
                    self._pass_on(reader)
            finally:
                self._lock.release()

    def flush(self) -> None:
        """Pass on what C code keeps in its buffers too."""
        for name in _NAMES.values():
            _libc.fflush(ctypes.c_void_p.in_dll(_libc, name))
        self.drain()

    def become_child(self) -> None:
        """In a fork: only the parent reads."""
        self._lock = threading.Lock()
        for descriptor in self._kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _watch(self) -> None:
        while True:
            self._watched.poll()
            while not self._relay.has_room:
                self._relay.wait()
            self.drain()

    def _pass_on(self, reader: int) -> None:
        try:
            data = os.read(reader, _READ)
        except BlockingIOError:
            return
        text = self._decoders[reader].decode(data)
        if text:
            self._relay.captured(self._names[reader], text)
