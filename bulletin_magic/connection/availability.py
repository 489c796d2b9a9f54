"""Is there a pool that can be asked, or could there be one, without starting any."""

from collections.abc import Mapping

from bulletin.errors import BadConfig
from bulletin.wire.keys import Connection, read_private
from bulletin_magic.connection import own_pool


def starts_none(environ: Mapping[str, str]) -> bool:
    """Whether looking for this kernel's pool would start none: one is named, or the user's own runs already."""
    if _is_named(environ):
        return True
    try:
        connection = read_private(own_pool.folder(environ) / "connection.json", Connection)
    except (OSError, BadConfig):
        return False
    return own_pool.is_answering(connection)


def may_be(environ: Mapping[str, str]) -> bool:
    """Whether there may be a pool: one is named, or one can be started here, or the user's own runs."""
    return _is_named(environ) or own_pool.can_start() or starts_none(environ)


def _is_named(environ: Mapping[str, str]) -> bool:
    """Also by a hub whose pool is not up: then the address is empty."""
    return "BULLETIN_ADDRESS" in environ or bool(environ.get("BULLETIN_CONNECTION_FILE"))
