"""Who else can change what an admin's program is about to run: nobody but root and whoever runs it may."""

import os
import stat
from pathlib import Path

from gpu_worker.config import account_name


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


def describe_changers(path: Path) -> str:
    """Say who else can change a file or the folders that it lies in; empty if nobody can, or it is not there."""
    for step in (path, *path.parents):
        try:
            facts = step.stat()
        except OSError:
            return ""
        mode = stat.S_IMODE(facts.st_mode)
        if facts.st_uid not in (0, os.geteuid()):
            return f"{step} belongs to {account_name(facts.st_uid)!r}"
        if mode & 0o022 and not (stat.S_ISDIR(facts.st_mode) and mode & stat.S_ISVTX):
            return f"others can change {step} (mode {mode:03o})"
    return ""
