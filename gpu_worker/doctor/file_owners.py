"""What an admin's program may look at: whether it is there, and keys of whoever runs the pool."""

import os
import stat
from pathlib import Path

import msgspec

from bulletin.errors import BadConfig
from bulletin.wire import keys

#: No file with keys is longer; that of a thousand nodes is a part of it.
_MOST_BYTES = 2**22


def read_keys(path: Path, kind: type[keys.File]) -> keys.File:
    """Read a file with keys as its owner does; root reads that of whoever runs the pool. Raises OSError, BadConfig."""
    if os.getuid() != 0:
        return keys.read_private(path, kind)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)  # it may be somebody's trap
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise BadConfig(f"{path} is not a file of Bulletin.")
        try:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=kind)
        except msgspec.MsgspecError as error:
            raise BadConfig(f"{path} is not a file of Bulletin ({error}).") from None


def is_there(path: Path) -> bool:
    """Whether something is at a path that this user can see; what lies in a closed folder is not."""
    try:
        path.stat()
    except OSError:
        return False
    return True


def is_closed(path: Path) -> bool:
    """Whether this user may not see if something is at a path."""
    try:
        path.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return path.is_dir() and not os.access(path, os.X_OK)
