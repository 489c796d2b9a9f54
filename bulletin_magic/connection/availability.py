"""Whether there is a pool, or could be one, found out without starting any."""

from collections.abc import Mapping

from bulletin.errors import BadConfig
from bulletin.own_pool_facts import can_start
from bulletin.wire.keys import Connection, read_private
from bulletin_magic.connection import own_pool


def is_pool_there(environ: Mapping[str, str]) -> bool:
    """Tell whether `find_pool` would start none: a pool is named, or the user's own answers."""
    if _is_named(environ):
        return True
    try:
        connection = read_private(own_pool.make_folder(environ) / "connection.json", Connection)
    except (OSError, BadConfig):
        return False
    return own_pool.is_answering(connection)


def pool_may_exist(environ: Mapping[str, str]) -> bool:
    """Tell whether `find_pool` could come to something: a pool is named, can be started here, or answers."""
    return _is_named(environ) or can_start() or is_pool_there(environ)


def _is_named(environ: Mapping[str, str]) -> bool:
    """Tell whether the environment names a pool; also a hub whose pool is not up: then the address is empty."""
    return "BULLETIN_ADDRESS" in environ or bool(environ.get("BULLETIN_CONNECTION_FILE"))
