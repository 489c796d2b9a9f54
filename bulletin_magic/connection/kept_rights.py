"""Who may open a file that takes the place of another one: whoever could open that, and nobody else.

A file that is made anew belongs to its maker's group, or its folder's, and has that folder's access list.
"""

import os
import stat
from collections.abc import Callable

_ACCESS_LIST = "system.posix_acl_access"
_OF_GROUP = 0o070


def set_rights(
    descriptor: int,
    mode: int,
    parent: int,
    name: str,
    is_expected: Callable[[os.stat_result | None], bool] = lambda _: True,
) -> None:
    """Give a new file this mode, and group and access list of the file of this name in `parent`, if there is one.

    Where it cannot have them, or what is there (None: nothing) is not what it was made of, neither its group nor
    anybody whom a list names may open it: whoever may write to the folder has put something else there.
    """
    try:
        before = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        may_have_rights = is_expected(None)
    else:
        try:
            may_have_rights = is_expected(os.fstat(before)) and _have_same_rights(descriptor, before)
        finally:
            os.close(before)
    os.fchmod(descriptor, mode if may_have_rights else mode & ~_OF_GROUP)


def _have_same_rights(descriptor: int, before: int) -> bool:
    facts = os.fstat(before)
    if not stat.S_ISREG(facts.st_mode):
        return True
    try:
        if os.fstat(descriptor).st_gid != facts.st_gid:
            os.fchown(descriptor, -1, facts.st_gid)
        if (listed := _access_list(before)) is not None:
            os.setxattr(descriptor, _ACCESS_LIST, listed)
        elif _access_list(descriptor) is not None:
            os.removexattr(descriptor, _ACCESS_LIST)
    except OSError:
        return False
    return True


def _access_list(descriptor: int) -> bytes | None:
    try:
        return os.getxattr(f"/proc/self/fd/{descriptor}", _ACCESS_LIST)  # as it is only open by its name
    except OSError:  # it has none, or its file system
        return None
