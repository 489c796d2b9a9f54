"""The first tables: events and cells."""

from alembic import op
from sqlalchemy import BigInteger, Column, Float, Integer, String, Text

from gpu_worker.broker.migrations import refuse_downgrade

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "events",
        Column("seq", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
        Column("at", BigInteger, nullable=False, comment="milliseconds since 1970, UTC"),
        Column("kind", String(64), nullable=False),
        Column("payload", Text, nullable=False, comment="JSON"),
    )
    op.create_table(
        "cells",
        Column("cell", String(128), primary_key=True),
        Column("lease", String(128), nullable=False),
        Column("session", String(128), nullable=False),
        Column("user", String(255), nullable=False),
        Column("project", String(255), nullable=False),
        Column("qos", String(64), nullable=False),
        Column("node", String(255), nullable=False),
        Column("slots", Text, nullable=False, comment="JSON list of slot ids"),
        Column("kind", String(8), nullable=False, comment="gpu or cpu"),
        Column("gpus", Integer, nullable=False),
        Column("started_at_ms", BigInteger, nullable=False),
        Column("ended_at_ms", BigInteger, nullable=False),
        Column("held_ms", BigInteger, nullable=False),
        Column("ran_ms", BigInteger, nullable=False),
        Column("gpu_ms", BigInteger, nullable=False, comment="GPUs held times held_ms; 0 on CPU slots"),
        Column("slot_ms", BigInteger, nullable=False, comment="slots held times held_ms"),
        Column("outcome", String(32), nullable=False),
        Column("peak_memory_bytes", BigInteger),
        Column("mean_utilization", Float, comment="0 to 1"),
        Column("bytes_sent", BigInteger, nullable=False),
        Column("bytes_returned", BigInteger, nullable=False),
        Column("label", Text, nullable=False),
    )
    op.create_index("cells_by_user", "cells", ["user", "ended_at_ms"])
    op.create_index("cells_by_end", "cells", ["ended_at_ms"])


def downgrade() -> None:
    """There is no way back."""
    refuse_downgrade()
