"""Folders that jobs make for their agents: each is its agent's while that lives, and then the next one clears it away.

An agent that is killed leaves its folder. Whose agent is gone is known by a lock that nobody holds, and by no process
that names the folder. Which host's it is a file in it says: where nodes share the folder of all of these, neither
locks nor processes of the others are seen. A folder without that file stays: no agent came to it, or an earlier one's.
"""

import contextlib
import fcntl
import os
import re
import shutil
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from bulletin.boot_id import read_boot_id
from gpu_worker.file_locks import lock

#: As the scripts of jobs call them.
_NAME = re.compile(r"bulletin-agent\.\w{6,}")
_YOUNG_S = 3600.0
_PROCESSES = Path("/proc")
#: The file that says so.
_HOST = ".host"


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[bool]:
    """Show other agents that this folder is in use, for as long as the block takes; yields whether that can be seen.

    Where the file system has no locks, it cannot, and nothing is to be removed.
    """
    handle = _open(folder)
    try:
        is_seen = lock(handle, fcntl.LOCK_SH)
        with contextlib.suppress(OSError):  # it is the next agent that reads it, and leaves the folder where it is not
            if is_seen:
                folder.joinpath(_HOST).write_text(_host())
        yield is_seen
    finally:
        os.close(handle)


def remove_left(own: Path) -> list[Path]:
    """Remove the folders beside one's own that agents of the same user have left, and return which."""
    if not _NAME.fullmatch(own.name):
        return []
    removed: list[Path] = []
    for folder in sorted(own.parent.iterdir()):
        if _NAME.fullmatch(folder.name) and folder != own:
            with contextlib.suppress(OSError):  # somebody else's, or gone meanwhile
                _remove_if_left(folder, removed)
    return removed


def _remove_if_left(folder: Path, removed: list[Path]) -> None:
    """Remove a folder that nobody uses. Raises OSError if it is somebody else's, or is in use."""
    handle = _open(folder)
    try:
        facts = os.fstat(handle)
        is_own = facts.st_uid == os.geteuid() and stat.S_IMODE(facts.st_mode) & 0o077 == 0
        if not is_own or time.time() - facts.st_mtime < _YOUNG_S:
            return
        if not _is_of_this_host(handle) or not lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return
        # In a folder that all may write to, such as /tmp, nobody else exchanges it: it is this user's.
        if not _is_named_by_a_process(folder):
            shutil.rmtree(folder)
            removed.append(folder)
    finally:
        os.close(handle)


def _host() -> str:
    return f"{socket.gethostname()} {read_boot_id()}\n"


def _is_of_this_host(folder: int) -> bool:
    """Whether an agent of this host has held the folder since the host was started. Raises OSError."""
    handle = os.open(_HOST, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(handle, 1_000) == _host().encode()
    finally:
        os.close(handle)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _is_named_by_a_process(folder: Path) -> bool:
    """Whether a process was started with the folder among its arguments."""
    word = os.fsencode(folder)
    for arguments in _PROCESSES.glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            if word in arguments.read_bytes().split(b"\0"):
                return True
    return False
