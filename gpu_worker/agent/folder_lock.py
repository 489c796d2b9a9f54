"""One agent at a time runs in a folder on a host: a second would end the cells of the first as left behind by it."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import structlog

from gpu_worker.file_locks import lock


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other agents of this host out of a folder for as long as the block takes; wait until they have ended.

    Those of other hosts that see the folder too have their own locks: the broker lets in one of them. Where the file
    system has no locks, nobody is kept out.
    """
    handle = os.open(folder / f"agent.{socket.gethostname()}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            structlog.get_logger("agent").warning(
                "another agent runs in this folder on this host: this one waits until that has ended",
                folder=str(folder),
                process=os.pread(handle, 20, 0).decode("ascii", "replace"),
                remedy="end one of them; for two nodes on one host, give each a name, a file and a folder of its own",
            )
            lock(handle, fcntl.LOCK_EX)
        os.truncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)
