"""Users for tests that root runs: known to one program and what it starts, and to nobody else on the machine."""

import os
import pwd
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType


def with_readable_python(folder: Path) -> list[str]:
    """Commands of a shell, in a mount namespace, that let all users read this Python, also in root's own folder."""
    shut = [one for one in Path(os.__file__).resolve().parents if one.stat().st_mode & 0o005 != 0o005]
    if not shut:
        return []
    over, work = folder / "over", folder / "work"
    over.mkdir()
    over.chmod(0o711)  # what is in it is found by its name, and not listed
    work.mkdir()
    return [f"mount -t overlay overlay -o lowerdir={shut[-1]},upperdir={over},workdir={work} {shut[-1]}"]


def with_users(
    folder: Path,
    uids: Mapping[str, int],
    *,
    groups: Mapping[str, Sequence[str]] = MappingProxyType({}),
    shells: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Commands of a shell, in a mount namespace, that make users, each with a home of its own in the folder.

    With these groups, by their members, and these login shells where a user has another one than /bin/sh.
    """
    rows = [f"{name}:x:{uid}:{uid}::{folder / name}:{shells.get(name, '/bin/sh')}" for name, uid in uids.items()]
    group_rows = [f"{name}:x:{uid}:" for name, uid in uids.items()]
    first_gid = max(uids.values()) + 1000
    group_rows += [f"{name}:x:{first_gid + i}:{','.join(users)}" for i, (name, users) in enumerate(groups.items())]
    for name, uid in uids.items():
        (folder / name).mkdir(mode=0o700)
        os.chown(folder / name, uid, uid)
    commands = []
    for file, added in (("passwd", rows), ("group", group_rows)):
        new = folder / file
        new.write_text("\n".join([Path(f"/etc/{file}").read_text().rstrip("\n"), *added, ""]))
        new.chmod(0o644)
        commands.append(f"mount --bind {new} /etc/{file}")
    return commands


def in_mount_namespace(commands: Sequence[str]) -> list[str]:
    """Make the words before a program's own: it runs in a mount namespace, after these commands of a shell."""
    if not commands:
        return []
    return ["unshare", "-m", "sh", "-c", " && ".join([*commands, 'exec "$@"']), "sh"]


@contextmanager
def kept_mount_namespace(commands: Sequence[str]) -> Iterator[list[str]]:
    """Make the words before the programs that are to run in one mount namespace, after these commands of a shell."""
    words = [*in_mount_namespace([*commands, "echo ready"]), "sleep", "infinity"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as keeper:
        try:
            assert keeper.stdout is not None
            assert keeper.stdout.readline() == "ready\n", "the commands failed"
            yield ["nsenter", f"--mount=/proc/{keeper.pid}/ns/mnt"]
        finally:
            keeper.kill()


def free_uid(after: int) -> int:
    """Find the number of no user."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return next(uid for uid in range(after, after + 1000) if uid not in taken)
