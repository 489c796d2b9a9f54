"""Attempts, borrowed time and refunds of cells; leases and what they did; credits; changes of the configuration."""

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, PrimaryKeyConstraint, String, Text

from gpu_worker.broker.migrations import refuse_downgrade

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

#: What is written once.
_FINAL = ("events", "cells", "lease_spans", "credits", "config_changes")


def upgrade() -> None:
    """Widen the old tables, create the new ones, and forbid the database to change what was written."""
    op.add_column("events", Column("id", String(256), comment="who says an event twice gives it a name"))
    op.create_index("events_by_id", "events", ["id"], unique=True)
    _widen_cells()
    _create_leases()
    _create_credits_and_changes()
    # What ran before leases were recorded: at a stretch up to its end, and in quota, since nobody could borrow.
    op.execute("UPDATE cells SET in_quota_ms = held_ms")
    op.execute(
        "INSERT INTO lease_spans (lease, cell, attempt, started_at_ms, ended_at_ms, in_quota, slots, kind,"
        ' "user", project, qos) '
        "SELECT lease, cell, attempt, ended_at_ms - held_ms, ended_at_ms, true, slot_ms / held_ms, kind,"
        ' "user", project, qos FROM cells WHERE held_ms > 0'
    )
    _forbid_changes()


def downgrade() -> None:
    """There is no way back."""
    refuse_downgrade()


#: As long as a name of the wire may be: a cell whose names have no room in their columns would go unaccounted.
_NAMES = {"cell": 128, "lease": 128, "session": 128, "user": 255, "project": 255, "qos": 64, "node": 255}


def _new_columns() -> list[Column[Any]]:
    return [
        Column("attempt", Integer, nullable=False, server_default="1"),
        Column(
            "in_quota_ms", BigInteger, comment="of held_ms; the rest is borrowed", nullable=False, server_default="0"
        ),
        Column("borrowed_ms", BigInteger, nullable=False, server_default="0"),
        Column("refunded_ms", BigInteger, comment="of held_ms, lost by a reclaim", nullable=False, server_default="0"),
    ]


def _widen_cells() -> None:
    """Give cells their attempts, and names all the room that they may want."""
    if op.get_context().dialect.name == "postgresql":
        for name, length in _NAMES.items():
            op.alter_column("cells", name, type_=String(256), existing_type=String(length), existing_nullable=False)
        for column in _new_columns():
            op.add_column("cells", column)
        op.drop_constraint("cells_pkey", "cells")
        op.create_primary_key("cells_pkey", "cells", ["cell", "attempt"])
        return
    op.create_table(  # SQLite cannot change a key, nor a column
        "new_cells",
        *(Column(name, String(256), nullable=False) for name in _NAMES),
        Column("slots", Text, nullable=False),
        Column("kind", String(8), nullable=False),
        Column("gpus", Integer, nullable=False),
        *(Column(name, BigInteger, nullable=False) for name in ("started_at_ms", "ended_at_ms", "held_ms", "ran_ms")),
        Column("gpu_ms", BigInteger, nullable=False),
        Column("slot_ms", BigInteger, nullable=False),
        Column("outcome", String(32), nullable=False),
        Column("peak_memory_bytes", BigInteger),
        Column("mean_utilization", Float),
        Column("bytes_sent", BigInteger, nullable=False),
        Column("bytes_returned", BigInteger, nullable=False),
        Column("label", Text, nullable=False),
        *_new_columns(),
        PrimaryKeyConstraint("cell", "attempt"),
    )
    kept = (
        'cell, lease, session, "user", project, qos, node, slots, kind, gpus, started_at_ms, ended_at_ms, held_ms, '
        "ran_ms, gpu_ms, slot_ms, outcome, peak_memory_bytes, mean_utilization, bytes_sent, bytes_returned, label"
    )
    op.execute(f"INSERT INTO new_cells ({kept}) SELECT {kept} FROM cells")  # noqa: S608  # the names above
    op.drop_table("cells")
    op.rename_table("new_cells", "cells")
    op.create_index("cells_by_user", "cells", ["user", "ended_at_ms"])
    op.create_index("cells_by_end", "cells", ["ended_at_ms"])


def _create_leases() -> None:
    op.create_table(
        "leases",
        Column("lease", String(256), primary_key=True),
        Column("session", String(256), nullable=False),
        Column("user", String(256), nullable=False),
        Column("project", String(256), nullable=False),
        Column("qos", String(256), nullable=False),
        Column("node", String(256), nullable=False),
        Column("slots", Text, nullable=False, comment="JSON list of slot ids"),
        Column("kind", String(8), nullable=False, comment="gpu or cpu"),
        Column("granted_at_ms", BigInteger, nullable=False),
        Column("ended_at_ms", BigInteger, comment="NULL while it holds"),
        Column("why", String(256), nullable=False),
    )
    op.create_index("leases_by_end", "leases", ["ended_at_ms"])
    op.create_table(
        "lease_spans",
        Column("lease", String(256), primary_key=True),
        Column("cell", String(256), primary_key=True, comment="empty is hot time"),
        Column("attempt", Integer, primary_key=True, autoincrement=False),
        Column("started_at_ms", BigInteger, primary_key=True, autoincrement=False),
        Column("ended_at_ms", BigInteger, nullable=False),
        Column("in_quota", Boolean(create_constraint=False), nullable=False, comment="else borrowed; true of hot time"),
        Column("slots", Integer, nullable=False, comment="how many"),
        Column("kind", String(8), nullable=False, comment="gpu or cpu"),
        Column("user", String(256), nullable=False),
        Column("project", String(256), nullable=False),
        Column("qos", String(256), nullable=False),
    )
    op.create_index("lease_spans_by_end", "lease_spans", ["ended_at_ms", "started_at_ms"])


def _create_credits_and_changes() -> None:
    op.create_table(
        "credits",
        Column("credit", String(256), primary_key=True),
        Column("project", String(256), nullable=False),
        Column("gpu_ms", BigInteger, nullable=False, comment="GPU-milliseconds: earned above 0, spent below"),
        Column("at_ms", BigInteger, nullable=False),
        Column("cause", String(64), nullable=False),
        Column("counterpart", String(256), comment="project lent to or borrowed of"),
        Column("lease", String(256), comment="whose time it was"),
    )
    op.create_index("credits_by_project", "credits", ["project", "at_ms"])
    op.create_table(
        "config_changes",
        Column("change", String(256), primary_key=True),
        Column("at_ms", BigInteger, nullable=False),
        Column("who", String(256), nullable=False),
        Column("what", String(256), nullable=False, comment="whose field it is"),
        Column("field", String(256), nullable=False),
        Column("before", Text, nullable=False, comment="JSON"),
        Column("after", Text, nullable=False, comment="JSON"),
    )
    op.create_index("config_changes_by_time", "config_changes", ["at_ms"])


def _forbid_changes() -> None:
    """Rows stay as they were written, whoever is connected; only who owns the tables could take this away again."""
    if op.get_context().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION bulletin_is_final() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the table % is only appended to', TG_TABLE_NAME; END $$"
        )
        for table in _FINAL:
            op.execute(
                f"CREATE TRIGGER {table}_is_final BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION bulletin_is_final()"
            )
        op.execute(
            "CREATE TRIGGER leases_end_once BEFORE UPDATE ON leases FOR EACH ROW "
            "WHEN (OLD.ended_at_ms IS NOT NULL) EXECUTE FUNCTION bulletin_is_final()"
        )
        op.execute(
            "CREATE TRIGGER leases_stay BEFORE DELETE OR TRUNCATE ON leases "
            "FOR EACH STATEMENT EXECUTE FUNCTION bulletin_is_final()"
        )
        return
    for table in (*_FINAL, "leases"):
        moments = ("DELETE",) if table == "leases" else ("UPDATE", "DELETE")
        for moment in moments:
            op.execute(_sqlite_trigger(f"{table}_no_{moment.lower()}", f"{moment} ON {table}", table))
    op.execute(_sqlite_trigger("leases_end_once", "UPDATE ON leases WHEN OLD.ended_at_ms IS NOT NULL", "leases"))
    # REPLACE deletes without a trigger of DELETE.
    again = "INSERT ON events WHEN EXISTS (SELECT 1 FROM events WHERE seq = NEW.seq)"
    op.execute(_sqlite_trigger("events_no_replace", again, "events"))


def _sqlite_trigger(name: str, moment: str, table: str) -> str:
    return (
        f"CREATE TRIGGER {name} BEFORE {moment} BEGIN SELECT RAISE(ABORT, 'the table {table} is only appended to'); END"
    )
