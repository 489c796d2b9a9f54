"""Where the pool is: named by hand, by the hub, by a file, or a pool of the user's own."""

import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from bulletin.errors import BadConfig, NoPool
from bulletin.ids import KernelId
from bulletin.wire.keys import Connection, read_private
from bulletin_magic.connection import own_pool


class PoolAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pool is, the key that it should have, and how to say which one it is."""

    connection: Connection
    #: Completes "The GPU pool … does not answer."
    description: str
    #: A pool of the user's own: it may have ended for want of work, and is then started again.
    is_own: bool = False


def read_pool_file(path: Path) -> PoolAddress:
    """Return the pool of a connection file. Raises NoPool if there is no such file or it cannot be used."""
    try:
        return PoolAddress(connection=read_private(path, Connection), description=f"of {path}")
    except OSError as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise NoPool(
            f"The connection file {path} {reason}.", "Start the pool, or name another file with `%gpu connect PATH`."
        ) from None
    except BadConfig as error:
        raise NoPool(str(error), "`%gpu connect PATH` names another file.") from None


def find_pool(environ: Mapping[str, str], say: Callable[[str], None]) -> PoolAddress:
    """Return the pool that this kernel should use; a pool of the user's own is started if there is no other.

    Raises
    ------
    NoPool
        If the one that is named cannot be used, or none could be started.
    """
    address, public_key = environ.get("BULLETIN_ADDRESS"), environ.get("BULLETIN_PUBLIC_KEY", "")
    if address == "":  # the hub has a pool, which was not up when this server was started
        raise NoPool(
            "This hub's GPU pool was not running when your server was started.",
            "Restart your server from the hub's control panel; if it happens again, tell the hub's administrators.",
        )
    if address and public_key:
        token = environ.get("JUPYTERHUB_API_TOKEN", "")
        return PoolAddress(
            connection=Connection(address=address, public_key=public_key, token=token), description="of this hub"
        )
    if file := environ.get("BULLETIN_CONNECTION_FILE", ""):
        return read_pool_file(Path(file).expanduser())
    return PoolAddress(connection=own_pool.find_or_start(environ, say), description="of your own", is_own=True)


def kernel_id(connection_file: str | None) -> KernelId:
    """Return the name of this kernel: Jupyter's own where there is one, so that people can match the two."""
    if connection_file:
        name = Path(connection_file).stem.removeprefix("kernel-")
        if name:
            return KernelId(f"{name}-{os.getpid()}")
    return KernelId(uuid.uuid4().hex)
