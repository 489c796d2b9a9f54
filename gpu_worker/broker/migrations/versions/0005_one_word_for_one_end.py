"""How cells ended and why leases did has one word each, that of `bulletin.codes`; older rows are put into it.

A cell whose executor died by itself was "died" in one place and "session-over" in another, and a lease that its agent
no longer had was "unknown". Nothing else of a row changes.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from alembic import op
from sqlalchemy import text

from gpu_worker.broker.migrations import refuse_downgrade

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_OUTCOMES = {"died": "executor-died", "session-over": "executor-died", "unknown": "no-such-lease"}
#: A lease that ended, and nobody said why.
_WHYS = {**_OUTCOMES, "": "unrecognized"}


def upgrade() -> None:
    """Put the new words into cells, leases that have ended, and the events that tell of both."""
    with _rows_may_change():
        _replace("UPDATE cells SET outcome = :new WHERE outcome = :old", _OUTCOMES)
        _replace("UPDATE leases SET why = :new WHERE why = :old AND ended_at_ms IS NOT NULL", _WHYS)
        for kind, field, words in (("cell-recorded", "outcome", _OUTCOMES), ("lease-ended", "why", _WHYS)):
            parts = {f'"{field}":"{old}"': f'"{field}":"{new}"' for old, new in words.items()}
            statement = "UPDATE events SET payload = replace(payload, :old, :new)"
            _replace(f"{statement} WHERE kind = '{kind}' AND payload LIKE '%' || :old || '%'", parts)


def _replace(statement: str, words: Mapping[str, str]) -> None:
    for old, new in words.items():
        op.execute(text(statement).bindparams(old=old, new=new))


@contextmanager
def _rows_may_change() -> Iterator[None]:
    """Lift what forbids the database to change rows, for as long as this step needs."""
    if op.get_context().dialect.name == "postgresql":
        triggers = {"cells": "cells_is_final", "leases": "leases_end_once", "events": "events_is_final"}
        for table, name in triggers.items():
            op.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
        yield
        for table, name in triggers.items():
            op.execute(f"ALTER TABLE {table} ENABLE TRIGGER {name}")
        return
    triggers = {"cells": "cells_no_update", "leases": "leases_end_once", "events": "events_no_update"}
    moments = {
        "cells": "UPDATE ON cells",
        "leases": "UPDATE ON leases WHEN OLD.ended_at_ms IS NOT NULL",
        "events": "UPDATE ON events",
    }
    for name in triggers.values():
        op.execute(f"DROP TRIGGER {name}")
    yield
    for table, name in triggers.items():
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {moments[table]} "
            f"BEGIN SELECT RAISE(ABORT, 'the table {table} is only appended to'); END"
        )


def downgrade() -> None:
    """There is no way back."""
    refuse_downgrade()
