"""The journal of a pool: all that its scheduler is told, appended to a file that only its owner can read."""

import os
import stat
from pathlib import Path

import structlog

from bulletin.errors import BadConfig
from gpu_worker.scheduler.events import Event
from gpu_worker.scheduler.journal import LifeBegan, Line, Told, encode
from gpu_worker.scheduler.policy.projects import SchedulerSettings


class JournalFile:
    """Appends to one file. If it can no longer be written, that is logged, and the pool goes on without it."""

    def __init__(self, path: Path, settings: SchedulerSettings) -> None:
        """Begin a new life at the end of the file. Raises BadConfig if it cannot be written."""
        self._log = structlog.get_logger("journal")
        self._path = path
        try:
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._file = os.fdopen(handle, "r+b", buffering=0)
            facts = os.fstat(handle)
            if stat.S_ISREG(facts.st_mode):  # a device or a pipe is not ours to close to others
                os.fchmod(handle, 0o600)
            length = facts.st_size
            is_torn = length > 0 and os.pread(handle, 1, length - 1) != b"\n"
        except OSError as error:
            raise BadConfig(
                f"The journal {path} cannot be written: {error.strerror}. Correct Pool.journal_file, or leave it out."
            ) from None
        if is_torn:  # its writer was stopped in the middle of a line
            self._write(b"\n")
        self._append(LifeBegan(settings=settings))

    def note(self, event: Event, now_ms: int, *, decides: bool = True) -> None:
        """Write down what the scheduler is about to be told, and when, and whether it is to decide then."""
        self._append(Told(now_ms, event, decides))

    def close(self) -> None:
        """Close the file. Nothing is noted from now on."""
        self._file.close()

    def _append(self, line: Line) -> None:
        if not self._file.closed:
            self._write(encode(line))

    def _write(self, content: bytes) -> None:
        try:
            written = self._file.write(content)
            if written != len(content):  # the next life begins on a line of its own
                self._give_up("the device is full")
        except OSError as error:
            self._give_up(error.strerror or str(error))

    def _give_up(self, why: str) -> None:
        self._log.error(
            "the journal cannot be written any more; the pool goes on without", file=str(self._path), why=why
        )
        self._file.close()
