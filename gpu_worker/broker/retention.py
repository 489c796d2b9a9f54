"""What the ledger no longer keeps: leases that ended long ago, with all that they did. What people decided stays.

What hub groups had before they had something else goes, too. The database refuses to delete rows. For the length of
one transaction its owner, the broker, lifts that.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy import Connection, Select, Table, delete, func, select, text

from bulletin.errors import LedgerAway
from gpu_worker.broker.database import Database
from gpu_worker.broker.seen_groups import SEEN, SEEN_GROUP_AT
from gpu_worker.broker.tables import cells, config_changes, events, lease_spans, leases

#: So much goes in one transaction, so that writers wait for little.
_AT_ONCE = 500
_EVERY_S = 3600.0
_PAUSE_S = 0.05
#: Events that repeat what other tables have. Those of quotas, drains and changes by hand stay.
_REPEATED = (
    "cell-recorded",
    "hot-recorded",
    "lease-granted",
    "lease-ended",
    "cell-runs",
    "broker-alive",
    "nodes-there",
)


def forget_some(database: Database, before_ms: int) -> int:
    """Delete some of what ended before a time (milliseconds since 1970), whole leases; return how many rows went."""
    with database.writing() as connection:
        old = select(leases.c.lease).where(leases.c.ended_at_ms < before_ms).order_by(leases.c.ended_at_ms)
        names = list(connection.scalars(old.limit(_AT_ONCE)))
        young = select(events.c.seq).where(events.c.at >= before_ms).order_by(events.c.seq).limit(1)
        first_young = connection.scalar(young)
        is_old = events.c.at < before_ms if first_young is None else events.c.seq < first_young
        repeated = select(events.c.seq).where(is_old, events.c.kind.in_(_REPEATED)).order_by(events.c.seq)
        numbers = list(connection.scalars(repeated.limit(10 * _AT_ONCE)))
        outdated = {row.seq: row.id for row in connection.execute(_outdated_groups(before_ms).limit(_AT_ONCE))}
        numbers += outdated
        if not names and not numbers:
            return 0
        gone = 0
        with _may_delete(connection, (cells, lease_spans, leases, events, config_changes)):
            for wanted in (
                delete(cells).where(cells.c.ended_at_ms < before_ms, cells.c.lease.in_(names)),
                delete(lease_spans).where(lease_spans.c.lease.in_(names)),
                delete(leases).where(leases.c.lease.in_(names)),
                delete(events).where(events.c.seq.in_(numbers)),
                delete(config_changes).where(config_changes.c.change.in_(list(outdated.values()))),
            ):
                gone += connection.execute(wanted).rowcount
        return gone


def forget_earlier(database: Database) -> int:
    """Delete some of what was said of a pool's nodes before it was said anew; return how many rows went.

    Of it the last is read alone, and where nodes come and go it is said every second.
    """
    with database.writing() as connection:
        said = select(events.c.seq).where(events.c.kind == "nodes-there").order_by(events.c.id.desc())
        numbers = list(connection.scalars(said.offset(1).limit(10 * _AT_ONCE)))
        if not numbers:
            return 0
        with _may_delete(connection, (events,)):
            return connection.execute(delete(events).where(events.c.seq.in_(numbers))).rowcount


def _outdated_groups(before_ms: int) -> Select[tuple[int, str]]:
    """Select what was new of hub groups before a time, and is no more: the last thing said of each group stays."""
    of_group = func.substr(events.c.id, SEEN_GROUP_AT)
    last = select(func.max(events.c.seq)).where(events.c.kind == SEEN).group_by(of_group)
    query = select(events.c.seq, events.c.id).where(events.c.kind == SEEN, events.c.at < before_ms)
    return query.where(events.c.seq.not_in(last)).order_by(events.c.seq)


@contextmanager
def _may_delete(connection: Connection, tables: tuple[Table, ...]) -> Iterator[None]:
    """Lift what forbids the database to delete, inside the transaction that is open."""
    if connection.dialect.name == "postgresql":
        triggers = [(table, "leases_stay" if table is leases else f"{table.name}_is_final") for table in tables]
        for table, trigger in triggers:
            connection.execute(text(f"ALTER TABLE {table.name} DISABLE TRIGGER {trigger}"))
        yield
        for table, trigger in triggers:
            connection.execute(text(f"ALTER TABLE {table.name} ENABLE TRIGGER {trigger}"))
        return
    found = {table: _sqlite_trigger(connection, table) for table in tables}
    for table in tables:
        connection.execute(text(f"DROP TRIGGER {table.name}_no_delete"))
    yield
    for made in found.values():
        connection.execute(text(made))


def _sqlite_trigger(connection: Connection, table: Table) -> str:
    """Return the statement that made a table's trigger."""
    query = text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = :name")
    made: str = connection.execute(query, {"name": f"{table.name}_no_delete"}).scalar_one()
    return made


class Retention:
    """Has the ledger forget, once an hour, what ended longer ago than it is to be kept."""

    def __init__(self, database: Database, keep_ms: int | None, now_ms: Callable[[], int]) -> None:
        """Keep everything where `keep_ms` is None."""
        self._database, self._keep_ms, self._now_ms = database, keep_ms, now_ms
        self._log = structlog.get_logger("broker")

    async def run(self) -> None:
        """Forget until cancelled."""
        while True:
            try:
                gone = await self.forget_old()
            except LedgerAway as error:
                self._log.warning("what is old waits for the ledger", problem=str(error))
            else:
                if gone:
                    self._log.info("old rows of the ledger are gone", rows=gone)
            await asyncio.sleep(_EVERY_S)

    async def forget_old(self) -> int:
        """Forget what is too old now, a little at a time, and return how many rows went. Raises LedgerAway.

        What nobody reads any more goes, however long the rest is kept.
        """
        total = 0
        while some := await asyncio.to_thread(forget_earlier, self._database):
            total += some
            await asyncio.sleep(_PAUSE_S)
        if self._keep_ms is not None:
            before_ms = self._now_ms() - self._keep_ms
            while some := await asyncio.to_thread(forget_some, self._database, before_ms):
                total += some
                await asyncio.sleep(_PAUSE_S)  # whoever writes comes in between
        return total
