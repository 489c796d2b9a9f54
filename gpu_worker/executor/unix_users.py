"""Which Unix user a hub's user is on a node, and who is none whose cells may run there."""

import grp
import os
import pwd
from collections.abc import Collection
from pathlib import Path

import msgspec

#: Login shells of who is not to log in, wherever they lie.
_SHUT = ("nologin", "false")


class UnixUser(msgspec.Struct, frozen=True, kw_only=True):
    """The Unix user that an executor becomes, and where it starts; None and empty where it stays the agent's."""

    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    folder: str | None = None
    #: The variables that are this user's own.
    environ: dict[str, str] = msgspec.field(default_factory=dict)


def find_unix_user(name: str, node: str, *, min_uid: int, unix_groups: Collection[str]) -> UnixUser:
    """Find the Unix user of a hub user's name, numbered `min_uid` or more, in one of these groups if any are given.

    Raises LookupError, with a sentence that names the node, where there is no such user, or none that may run cells.
    """
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise LookupError(f"there is no Unix user {name!r} on the node {node}") from None
    if entry.pw_uid == 0 or entry.pw_uid < min_uid:
        raise LookupError(f"{name!r} is an account of the system on the node {node}, and cells never run as one")
    if Path(entry.pw_shell).name in _SHUT:
        raise LookupError(
            f"the Unix user {name!r} may not log in on the node {node} (its shell is {entry.pw_shell}), so cells never "
            "run as it"
        )
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    if unix_groups and not _is_in_one(groups, unix_groups):
        raise LookupError(
            f"the Unix user {name!r} is in none of the groups on the node {node} whose users may run cells there "
            f"(Pool.unix_groups: {', '.join(unix_groups)})"
        )
    environ = {
        "HOME": entry.pw_dir,
        "USER": entry.pw_name,
        "LOGNAME": entry.pw_name,
        "SHELL": entry.pw_shell or "/bin/sh",
    }
    return UnixUser(uid=entry.pw_uid, gid=entry.pw_gid, groups=groups, folder=entry.pw_dir, environ=environ)


def _is_in_one(groups: Collection[int], names: Collection[str]) -> bool:
    """Whether one of these groups has one of the names. A name that the node does not know is no group of anybody's."""
    return any(_has_name(number, names) for number in groups)


def _has_name(number: int, names: Collection[str]) -> bool:
    try:
        return grp.getgrgid(number).gr_name in names
    except KeyError:
        return False
