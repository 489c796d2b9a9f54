"""Is there a pool that can be asked, without starting one."""

from collections.abc import Mapping

from bulletin.errors import BadConfig
from bulletin.wire.keys import Connection, read_private
from bulletin_magic import embedded


def starts_none(environ: Mapping[str, str]) -> bool:
    """Whether looking for this kernel's pool would start none: one is named, or the user's own runs already."""
    if any(environ.get(name) for name in ("BULLETIN_ADDRESS", "BULLETIN_CONNECTION_FILE")):
        return True
    if environ.get("BULLETIN_ADDRESS") == "":  # a hub's, which is not up
        return True
    try:
        connection = read_private(embedded.folder(environ) / "connection.json", Connection)
    except (OSError, BadConfig):
        return False
    return embedded.is_answering(connection)
