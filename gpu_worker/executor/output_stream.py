"""`sys.stdout` and `sys.stderr` of a cell."""

import codecs
import io
from typing import Any

from gpu_worker.executor.relay import Relay
from gpu_worker.executor.unsent_text import STREAM_NAMES


class OutputStream(io.TextIOBase):
    """`sys.stdout` or `sys.stderr` of the cells. What is written goes to the relay."""

    def __init__(self, relay: Relay, descriptor: int) -> None:
        self._relay, self._descriptor = relay, descriptor
        self.name = STREAM_NAMES[descriptor]
        self._buffer = _ByteStream(self)
        #: In a fork: the line that is being written. Several processes write, and only whole lines stay apart.
        self._line = ""

    @property
    def buffer(self) -> "_ByteStream":
        """The stream that takes bytes, decoded as UTF-8."""
        return self._buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """UTF-8, which a notebook shows."""
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """'replace': nothing that is printed fails because of a character."""
        return "replace"

    def write(self, text: str) -> int:
        """Send text; wait only when very much is under way."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._relay.is_child:
            whole, newline, self._line = (self._line + text).rpartition("\n")
            self._relay.write_text(self.name, whole + newline)
        else:
            self._relay.write_text(self.name, text)
        return len(text)

    def flush(self) -> None:
        """Send what forks keep back, and wait until it is on its way."""
        line, self._line = self._line, ""
        if line:
            self._relay.write_text(self.name, line)
        self._relay.flush()

    def writable(self) -> bool:
        """Return True: it always takes text."""
        return True

    def isatty(self) -> bool:
        """Return False: it is no terminal, as in a notebook."""
        return False

    def fileno(self) -> int:
        """Return the descriptor that programs started by the cell write to."""
        return self._descriptor

    def close(self) -> None:
        """Stay open: the next cell prints too."""


class _ByteStream(io.BufferedIOBase):
    """The binary side of a stream."""

    def __init__(self, stream: OutputStream) -> None:
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
