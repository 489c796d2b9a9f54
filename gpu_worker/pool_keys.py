"""A broker's `pool.json`, which it and `bulletin keys` change: neither undoes what the other has written meanwhile."""

from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from bulletin.wire import keys
from gpu_worker.file_locks import locked


def keep(path: Path, files: keys.PoolFile) -> None:
    """Write what a broker has to say. Keys that were made for its next start stay, unless it has them by now.

    Raises BadConfig where the file is not one of a pool.
    """
    with locked(_lock_of(path)):
        try:
            new = keys.read_private(path, keys.PoolFile).next
        except FileNotFoundError:
            new = None
        is_taken_up = new is not None and new.keys == files.keys
        keys.write_private(path, structs.replace(files, next=None if is_taken_up else new))


def plan(path: Path, make: Callable[[keys.PoolFile], keys.NextKeys]) -> keys.PoolFile:
    """Let a broker have other keys from its next start; return what is written of it now.

    `make` sees that first, when nobody else changes it any more, and may refuse. Raises FileNotFoundError and BadConfig
    as `read_private`, and what `make` raises.
    """
    with locked(_lock_of(path)):
        files = keys.read_private(path, keys.PoolFile)
        keys.write_private(path, structs.replace(files, next=make(files)))
    return files


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.stem}.lock")
