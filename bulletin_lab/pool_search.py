"""Which pool the kernels of this server have, found out without starting any: a page that is open is no use of one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from bulletin.errors import BadConfig
from bulletin.own_pool_facts import can_start, name_folder
from bulletin.wire.keys import Connection, read_private


class FoundPool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool, as far as this server can tell."""

    connection: Connection
    #: It may have ended for want of work, and the next cell starts it again.
    is_own: bool = False


#: No pool: there is none to show, or the next %%gpu cell would start one of the user's own.
NoneHere = Literal["none", "startable"]


def search(environ: Mapping[str, str]) -> FoundPool | NoneHere:
    """Find the pool that kernels here use, by what they go by (`bulletin_magic.connection.discovery`).

    What a single notebook is told with `%gpu connect` is not known here.
    """
    if environ.get("BULLETIN", "").lower() == "off":
        return "none"
    address, public_key = environ.get("BULLETIN_ADDRESS"), environ.get("BULLETIN_PUBLIC_KEY", "")
    if address == "":  # the hub has a pool, which was not up when this server was started
        return "none"
    if address and public_key:
        token = environ.get("JUPYTERHUB_API_TOKEN", "")
        return FoundPool(connection=Connection(address=address, public_key=public_key, token=token))
    file = environ.get("BULLETIN_CONNECTION_FILE", "")
    path = Path(file).expanduser() if file else name_folder(environ) / "connection.json"
    try:
        return FoundPool(connection=read_private(path, Connection), is_own=not file)
    except (OSError, BadConfig):
        return "startable" if not file and can_start() else "none"
