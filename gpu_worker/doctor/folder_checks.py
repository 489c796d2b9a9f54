"""The pool's folder and the disks: who owns and may read what, whether there is room, whether time ran backwards."""

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bulletin.errors import BadConfig
from bulletin.wire import keys
from gpu_worker.config import account_name
from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.file_owners import is_closed, is_there, read_keys
from gpu_worker.doctor.pool_setup import PoolSetup

#: What keys and secrets lie in.
_PRIVATE = ("pool.json", "node.json", "nodes.json", "agent.json", "connection.json", "ledger.sqlite")
#: Less room than this, and results of cells that nobody has taken yet do not fit.
_DISK_BYTES = 2 * 10**9
#: Docker gives its containers 64 MB; variables of cells go through there.
_SHM_BYTES = 512 * 10**6
#: A file may be so much younger than the clock: some file servers have one of their own.
_AHEAD_S = 60.0
_SHM = Path("/dev/shm")  # noqa: S108  the kernel's own


def check_folder(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Look at the folder: that it can be made or is there, whose it is, who may change it, who may pass through."""
    folder = setup.settings.folder
    if is_closed(folder):
        yield Diagnosis(
            check="folder-closed",
            what=f"{account_name()!r} may not look into {folder}, or into what it lies in.",
            why="Nothing of the pool there can be looked at, and none can run there as this user.",
            remedy="Run this as root, or as the user who runs the pool: sudo -u USER bulletin doctor ...",
        )
        return
    if not is_there(folder):
        near = next(one for one in folder.parents if is_there(one))
        if not os.access(near, os.W_OK | os.X_OK):
            yield Diagnosis(
                check="folder-missing",
                what=f"There is no folder {folder}, and {account_name()!r} may not make one in {near}.",
                why="The pool keeps its keys, its ledger and its logs there.",
                remedy=f"As root: install -d -m 711 -o USER {folder}, with the user who runs the pool.",
            )
        return
    facts = folder.stat()
    mode = stat.S_IMODE(facts.st_mode)
    if not stat.S_ISDIR(facts.st_mode):
        yield Diagnosis(
            check="folder-file",
            what=f"{folder} is no folder.",
            why="The pool keeps its keys, its ledger and its logs there.",
            remedy="Name a folder with --folder.",
        )
        return
    if mode & 0o022:
        yield Diagnosis(
            check="folder-mode",
            what=f"Other users can change what is in {folder} (mode {mode:03o}).",
            why="The pool's keys and ledger rest there: who replaces them is the pool. It does not start so.",
            remedy=f"Run: chmod go-w {folder}",
        )
    if setup.serves_hub and not mode & 0o001 and not setup.is_node:
        yield Diagnosis(
            check="folder-shut",
            what=f"Other users cannot pass through {folder} (mode {mode:03o}).",
            why="Where the pool is, is said in public.json there: a hub or a kernel of another user does not find it.",
            remedy=f"Run: chmod 711 {folder}; its private files have modes of their own.",
            level="wrong" if setup.settings.isolation == "unix-user" else "advice",
        )
    if os.getuid() not in (0, facts.st_uid):
        yield Diagnosis(
            check="folder-owner",
            what=f"{folder} belongs to {account_name(facts.st_uid)!r}, and this is {account_name()!r}.",
            why="What is in it cannot be looked at, and no pool can run there as this user.",
            remedy=f"Run this as its owner: sudo -u {account_name(facts.st_uid)} bulletin doctor ...",
        )


def check_private_files(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Look at the files with keys: only their owner reads them, they are whole, and one user's."""
    owner = _owner_of(setup.settings.folder)
    for path in (setup.settings.folder / name for name in _PRIVATE):
        try:
            facts = path.stat()
        except OSError:
            continue
        mode = stat.S_IMODE(facts.st_mode)
        if mode & 0o077:
            yield Diagnosis(
                check="file-mode",
                what=f"Others can read or change {path} (mode {mode:03o}).",
                why="Who has what is in it is the pool, or sees who ran what; the pool does not use it so.",
                remedy=f"Run: chmod 600 {path}",
            )
        elif owner is not None and facts.st_uid != owner:
            yield Diagnosis(
                check="file-owner",
                what=f"{path} belongs to {account_name(facts.st_uid)!r}, and its folder to {account_name(owner)!r}.",
                why="Somebody ran a command as another user; the pool cannot read what it needs.",
                remedy=f"Run: chown {account_name(owner)} {path}",
            )
        elif os.getuid() in (0, facts.st_uid):
            yield from _read(path)


def _owner_of(folder: Path) -> int | None:
    try:
        return folder.stat().st_uid
    except OSError:
        return None


def _read(path: Path) -> Iterator[Diagnosis]:
    kinds: dict[str, Any] = {
        "pool.json": keys.PoolFile,
        "node.json": keys.NodeFile,
        "nodes.json": keys.NodesFile,
        "agent.json": keys.AgentFile,
        "connection.json": keys.Connection,
    }
    if path.name not in kinds:
        return
    try:
        read_keys(path, kinds[path.name])
    except BadConfig as error:
        yield Diagnosis(
            check="file-broken",
            what=str(error),
            why="The pool does not start with it.",
            remedy="Take it from a backup; or remove it and start the pool, after which all nodes need new files, and "
            "all servers are to be started again.",
        )


def check_clock(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Look for files of the pool that are from later than now: the clock was set back, or is wrong."""
    newest = max((_changed_at(setup.settings.folder / name) for name in _PRIVATE), default=0.0)
    ahead_s = newest - time.time()
    if ahead_s > _AHEAD_S:
        yield Diagnosis(
            check="clock",
            what=f"The pool's files were changed {ahead_s:.0f} s after what this computer's clock says is now.",
            why="Budgets, past use, class hours and the order of the ledger go by the clock.",
            remedy="Set it, and let it be kept: timedatectl set-ntp true (or chrony).",
        )


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def check_room(setup: PoolSetup, shm: Path = _SHM) -> Iterator[Diagnosis]:
    """Look whether the disk of the folder and shared memory have room."""
    folder = setup.settings.folder
    near = next(one for one in (folder, *folder.parents) if is_there(one))
    disk = shutil.disk_usage(near)
    facts = os.statvfs(near)
    if disk.free < _DISK_BYTES:
        yield Diagnosis(
            check="disk-full",
            what=f"The disk of {folder} has {disk.free / 10**9:.2f} GB left.",
            why="Ledger, outputs and results that no notebook has taken yet lie there: without room, cells are lost.",
            remedy="Make room, or name another folder with --folder.",
        )
    elif facts.f_files and facts.f_favail < 1000:
        yield Diagnosis(
            check="disk-inodes",
            what=f"The disk of {folder} has room for {facts.f_favail} more files.",
            why="The pool makes files for outputs and results.",
            remedy="Remove small files there, or name another folder with --folder.",
        )
    if is_there(shm) and (size := shutil.disk_usage(shm).total) < _SHM_BYTES:
        yield Diagnosis(
            check="shm-small",
            what=f"{shm} has {size / 10**6:.0f} MB in all.",
            why="Variables of cells, and workers of torch's DataLoader, go through there: large ones fail.",
            remedy="Give the container more (docker run --shm-size=8g), or mount it larger.",
        )
