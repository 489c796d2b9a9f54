"""What a zygote checks itself that is root for an agent which is not: whom it becomes, and what that one is to see."""

import os
import pwd
import stat
from pathlib import Path

import msgspec

from bulletin.wire.messages import Fork
from gpu_worker.executor.unix_users import find_unix_user

_DEVICES = Path("/dev")


class ForkGuard(msgspec.Struct, frozen=True, kw_only=True):
    """Who may run cells here, as the zygote was told at its start by who is root."""

    node: str
    min_uid: int
    unix_groups: tuple[str, ...] = ()
    has_user_namespaces: bool = False

    def admit(self, fork: Fork) -> Fork:
        """Check a fork, and fill in by this host's word what is its user's: group, groups, home, folder.

        Raises
        ------
        LookupError
            With a sentence, if it is for nobody who may run cells here, or for more than a cell may have.
        """
        if fork.uid is None or fork.namespaces is None:
            raise LookupError("a cell runs here as its user, and in namespaces of its own")
        if not fork.lease.isprintable():
            raise LookupError("this is no name of a lease")
        try:
            name = pwd.getpwuid(fork.uid).pw_name
        except KeyError:
            raise LookupError(f"there is no Unix user {fork.uid} on the node {self.node}") from None
        user = find_unix_user(name, self.node, min_uid=self.min_uid, unix_groups=self.unix_groups)
        if user.uid != fork.uid:
            raise LookupError(f"the Unix user {name!r} has two numbers on the node {self.node}")
        for device in fork.namespaces.devices:
            if not _is_device(Path(device)):
                raise LookupError(f"{device} is no device node that a cell may have")
        return msgspec.structs.replace(
            fork,
            gid=user.gid,
            groups=user.groups,
            folder=user.folder,
            environ=fork.environ | user.environ,
            namespaces=msgspec.structs.replace(
                fork.namespaces, has_own_tmp=True, has_user_namespaces=self.has_user_namespaces
            ),
        )


def _is_device(path: Path) -> bool:
    """Whether this is a character device below /dev, or a folder of such there: no disk, and nothing from elsewhere."""
    if ".." in path.parts or _DEVICES not in path.parents or path.resolve() != path:
        return False
    if not path.exists():
        return True  # and is not shown then
    return all(stat.S_ISCHR(one.lstat().st_mode) for one in ([path] if not path.is_dir() else path.iterdir()))


def read_guard(text: str) -> ForkGuard:
    """Read what `write_guard` wrote."""
    return msgspec.json.decode(text, type=ForkGuard)


def write_guard(min_uid: int, unix_groups: tuple[str, ...], *, has_user_namespaces: bool = False) -> str:
    """Write what a zygote is told of who may run cells on this host: nothing of it is a secret."""
    guard = ForkGuard(
        node=os.uname().nodename,
        min_uid=min_uid,
        unix_groups=unix_groups,
        has_user_namespaces=has_user_namespaces,
    )
    return msgspec.json.encode(guard).decode()
