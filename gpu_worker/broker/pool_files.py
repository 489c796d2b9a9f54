"""The pool's keys and secrets, which it has from its first start on."""

from bulletin.wire import keys
from gpu_worker.config import PoolSettings


def open_files(settings: PoolSettings) -> keys.PoolFile:
    """Read the pool's keys and secrets of last time, or draw and keep new ones."""
    keys.make_folder(settings.folder)
    try:
        return keys.read_private(settings.pool_file, keys.PoolFile)
    except FileNotFoundError:
        files = keys.PoolFile(
            keys=keys.make_keys(),
            agent_secret=keys.make_secret(),
            token=keys.make_secret(),
            kernel_address="",
            agent_address="",
        )
        keys.write_private(settings.pool_file, files)
        return files
