"""Notes that the ledger is to have and does not answer for, in a file: a broker that is killed leaves them to the next.

What was changed by hand holds at once, and a later broker is to know it. It may begin when the ledger is back.
"""

import os
import stat
from pathlib import Path

import msgspec

from bulletin.wire.frames import UNREADABLE
from gpu_worker.broker.records import LedgerEvent

#: No file of notes is longer: people make few of them.
_MOST_BYTES = 2**24


class LateNotes:
    """One file, a note on each line, the first one first. Nothing is in it as long as the ledger answers."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._path.exists()

    def add(self, note: LedgerEvent) -> bool:
        """Write a note behind the others; False, and nothing is written, where there is no room for it."""
        line = msgspec.json.encode(note) + b"\n"
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size + len(line) >= _MOST_BYTES:
                return False
            os.fchmod(handle, 0o600)
            return _append(handle, line, facts.st_size)
        except OSError:
            return False
        finally:
            os.close(handle)

    def read(self) -> list[LedgerEvent]:
        """Return all of them; a line that its writer did not come to the end of is none."""
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [note for line in lines if (note := _parse(line)) is not None]

    def clear(self) -> None:
        """Forget all of them: the ledger has them."""
        self._path.unlink(missing_ok=True)


def _append(handle: int, line: bytes, size_bytes: int) -> bool:
    """Write a line behind the others, or nothing: part of one would take the next with it."""
    if size_bytes and os.pread(handle, 1, size_bytes - 1) != b"\n":
        line = b"\n" + line  # who wrote the last one was killed
    try:
        is_whole = os.write(handle, line) == len(line)
        os.fsync(handle)
    except OSError:
        is_whole = False
    if not is_whole:
        os.ftruncate(handle, size_bytes)
    return is_whole


def _parse(line: bytes) -> LedgerEvent | None:
    try:
        return msgspec.json.decode(line, type=LedgerEvent)
    except UNREADABLE:
        return None
