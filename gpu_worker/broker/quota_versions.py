"""The versions of the quota file that the ledger keeps: who made which, when and why, and what stood in it."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, delete, func, insert, select

from bulletin.ids import UserName
from gpu_worker.broker.database import Database
from gpu_worker.broker.tables import quota_versions

#: So many are kept, and so much of their texts; the last two in any case.
_MOST, _MOST_LETTERS, _LEAST = 200, 20_000_000, 2
#: Of what one changed, so many sentences.
_MOST_CHANGES = 100
_COLUMNS = [column for column in quota_versions.c if column.name != "content"]


class KeptVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of the file, made of the one that is kept before it. Its time is in milliseconds since 1970, UTC."""

    seq: int = 0  #: counted by the ledger
    version: str
    at_ms: int
    who: UserName
    why: str = ""
    changes: tuple[str, ...] = ()  #: sentences


class QuotaVersions:
    """Reads and writes them. Every call is one transaction; any thread may call, and meet `LedgerAway`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, version: KeptVersion, content: bytes) -> None:
        """Keep one more, the last of all; the oldest of many go."""
        more = len(version.changes) - _MOST_CHANGES
        changes = [*version.changes[:_MOST_CHANGES], *([f"and {more} more"] if more > 0 else [])]
        row = {
            "version": version.version,
            "at_ms": version.at_ms,
            "who": version.who,
            "why": version.why,
            "changes": msgspec.json.encode(changes).decode(),
            "content": content.decode().replace("\0", "\ufffd"),  # PostgreSQL has no room for it, nor has a quota file
        }
        with self._database.writing() as connection:
            connection.execute(insert(quota_versions).values(row))
            _forget_oldest(connection)

    def log(self, limit: int) -> list[KeptVersion]:
        """List them, the last one first."""
        query = select(*_COLUMNS).order_by(quota_versions.c.seq.desc()).limit(limit)
        with self._database.reading() as connection:
            found = [dict(row) for row in connection.execute(query).mappings()]
        return [
            msgspec.convert(
                {str(name): value for name, value in row.items()} | {"changes": msgspec.json.decode(row["changes"])},
                KeptVersion,
            )
            for row in found
        ]

    def content(self, version: str) -> bytes | None:
        """Return what stood in a version; None where it is not kept. The beginning of its name is not enough."""
        query = select(quota_versions.c.content).where(quota_versions.c.version == version)
        with self._database.reading() as connection:
            found: str | None = connection.scalar(query.order_by(quota_versions.c.seq.desc()).limit(1))
        return None if found is None else found.encode()


def before(versions: Sequence[KeptVersion], version: str) -> KeptVersion | None:
    """Find of versions, the last one first, the one that the file had before it became this one the last time."""
    at = next((number for number, one in enumerate(versions) if one.version == version), None)
    return None if at is None else next((one for one in versions[at + 1 :] if one.version != version), None)


def _forget_oldest(connection: Connection) -> None:
    rows = connection.execute(
        select(quota_versions.c.seq, func.length(quota_versions.c.content)).order_by(quota_versions.c.seq.desc())
    ).all()
    letters = 0
    for kept, (seq, length) in enumerate(rows):
        letters += length
        if kept >= _LEAST and (kept >= _MOST or letters > _MOST_LETTERS):
            connection.execute(delete(quota_versions).where(quota_versions.c.seq <= seq))
            return
