"""One service for a pool folder: the newest. The hub that started an older one was killed, or it would be gone.

Not filelock: who waits must read in the locked file which process holds it, and the library hides the descriptor of its
lock and may take the file away.
"""

import fcntl
import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bulletin.errors import BadConfig

log = logging.getLogger("bulletin.service")

#: An older service gets this long to end its pool.
_PATIENCE_S = 20.0


@contextmanager
def take_over(path: Path, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Hold the lock of this file, with our process id in it; ask whoever holds it to end.

    Raises
    ------
    BadConfig
        If the holder does not end.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if not _try_lock(descriptor):
            _ask_to_end(descriptor)
            deadline = time.monotonic() + patience_s
            while not _try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise BadConfig(f"Another Bulletin service holds {path} and does not end. End it by hand.")
                time.sleep(0.05)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)  # lets go of the lock


def _try_lock(descriptor: int) -> bool:
    """Lock the file unless another process has; whether that was possible."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _ask_to_end(descriptor: int) -> None:
    """Send SIGTERM to the holder. The lock is held, so the process of that id is still the one that wrote it."""
    holder = os.pread(descriptor, 20, 0).decode(errors="replace")
    if holder.isdigit():
        log.warning("ending the service of an earlier hub, process %s", holder)
        os.kill(int(holder), signal.SIGTERM)
