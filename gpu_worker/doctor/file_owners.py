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


def find_closed(path: Path) -> Path | None:
    """Find what keeps others than its owner and group from running a program: a folder, link targets' too, or itself.

    None where nothing does, and where something on the way is not there.
    """
    steps, looked_at = [path.absolute()], set[Path]()
    while steps:
        step = steps.pop()
        if step in looked_at:
            continue
        looked_at.add(step)
        try:
            mode = step.lstat().st_mode
        except OSError:
            return None
        if stat.S_ISLNK(mode):
            steps.append(step.parent / step.readlink())
        elif not mode & stat.S_IXOTH or (stat.S_ISREG(mode) and not mode & stat.S_IROTH):
            return step
        if step.parent != step:
            steps.append(step.parent)
    return None
