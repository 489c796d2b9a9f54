"""Locks on files and folders, which the kernel gives back when their holder ends, however it does."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

#: How a file system says that it has no locks: some that nodes share have none.
_NONE_THERE = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}


def lock(handle: int, how: int) -> bool:
    """Take a lock of `fcntl.flock`; False where the file system has none. Raises OSError, as where it is taken."""
    try:
        fcntl.flock(handle, how)
    except OSError as error:
        if error.errno in _NONE_THERE:
            return False
        raise
    return True


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let nobody else change what this file stands for, for as long as the block takes; it is made where it is not."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        lock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
