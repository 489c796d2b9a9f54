"""One agent at a time runs in a folder on a host: a second would end the cells of the first as left behind by it."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import structlog

from bulletin.errors import BadConfig
from gpu_worker.config import account_name
from gpu_worker.file_locks import lock


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other agents of this host out of a folder for as long as the block takes; wait until they have ended.

    Those of other hosts that see the folder too have their own locks: the broker lets in one of them. Where the file
    system has no locks, nobody is kept out.

    Raises
    ------
    BadConfig
        If the lock is another user's, or cannot be made.
    """
    handle = _open(folder / f"agent.{socket.gethostname()}.lock")
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


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError:
        owner = _find_owner(path)
        if owner:
            raise BadConfig(
                f"{path} belongs to {owner!r}, and this agent runs as {account_name()!r}: an "
                "agent of this folder ran as the other user. Run this one as that user, too; or see that the other "
                f"has ended, and remove the file: rm {path}"
            ) from None
        raise BadConfig(
            f"{account_name()!r}, as which this agent runs, cannot make a file in {path.parent}. Give that folder to "
            "this user, or name another --folder."
        ) from None


def _find_owner(path: Path) -> str:
    try:
        return account_name(path.stat().st_uid)
    except OSError:  # it is not there, or not to be seen
        return ""
