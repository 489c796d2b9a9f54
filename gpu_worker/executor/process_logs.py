"""What executors write before and after their cells: lines for the pool's log, which they cannot reach themselves.

User code can write to every descriptor of its process. So an executor has the end of a pair, and a limited part of
what comes is copied, as lines that say whose they are and hold no control characters.
"""

import os
import select
from collections.abc import Callable

_READ_BYTES = 4096
#: So much of one executor reaches the log.
_MOST_BYTES = 65_536


class _Copied:
    """What one executor has written so far, and the line that it has not ended yet."""

    def __init__(self, pid: int, name: str) -> None:
        self.pid, self.name = pid, name
        self.left_bytes = _MOST_BYTES
        self.line = b""


class ProcessLogs:
    """The ends of all executors of a zygote, none of which blocks."""

    def __init__(self, waiting: select.poll, say: Callable[[str], None]) -> None:
        """Take the poll object that is to wake up for them, and `say`, which writes a line to the log."""
        self._waiting, self._say = waiting, say
        self._copied: dict[int, _Copied] = {}
        self._by_pid: dict[int, int] = {}

    def follow(self, pid: int, reader: int, name: str) -> None:
        """Copy from now on what the process writes, under this name."""
        self._copied[reader] = _Copied(pid, name)
        self._by_pid[pid] = reader
        self._waiting.register(reader, select.POLLIN)

    def copy(self, ready: set[int]) -> None:
        """Copy from those of these descriptors that are executors'."""
        for reader in ready & self._copied.keys():
            self._read(reader)

    def end(self, pid: int) -> None:
        """Copy the rest of a process that has ended, and close its end."""
        reader = self._by_pid.get(pid)
        if reader is not None:
            while reader in self._copied and self._read(reader):
                pass
            self._close(reader)

    def end_all(self) -> None:
        """Copy the rest of all there are, and close their ends."""
        for pid in list(self._by_pid):
            self.end(pid)

    def _read(self, reader: int) -> bool:
        """Copy once; False where there is nothing more."""
        copied = self._copied[reader]
        try:
            data = os.read(reader, _READ_BYTES)
        except BlockingIOError:
            return False
        except ConnectionError:  # as where the system has no better than a connection, and it was broken
            data = b""
        if not data:
            self._close(reader)
            return False
        *lines, copied.line = (copied.line + data[: copied.left_bytes]).split(b"\n")
        copied.left_bytes -= len(data)
        for line in lines:
            self._say(f"{copied.name}: {_printable(line)}")
        if copied.left_bytes <= 0:  # nobody reads it from here on: whoever writes more is told so by an error
            self._say(f"{copied.name}: writes more, which is not copied")
            copied.line = b""
            self._close(reader)
            return False
        return True

    def _close(self, reader: int) -> None:
        copied = self._copied.pop(reader, None)
        if copied is not None:
            if copied.line:
                self._say(f"{copied.name}: {_printable(copied.line)}")
            self._by_pid.pop(copied.pid, None)  # the descriptor's number may be another one's next
            self._waiting.unregister(reader)
            os.close(reader)


def _printable(line: bytes) -> str:
    """Write a line without what a terminal would obey."""
    return "".join(one if one.isprintable() else "?" for one in line.decode("utf-8", "replace"))
