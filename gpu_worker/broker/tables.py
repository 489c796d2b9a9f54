"""The ledger's tables as they are now. What leads from older databases to here is in `migrations`."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, String, Table, Text

metadata = MetaData()

#: Whole numbers that outgrow 32 bits; SQLite counts rows by themselves only in a plain INTEGER.
_Count = BigInteger().with_variant(Integer(), "sqlite")

#: All that happened, in order. Rows are only ever appended.
events = Table(
    "events",
    metadata,
    Column("seq", _Count, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False, comment="milliseconds since 1970, UTC"),
    Column("kind", String(64), nullable=False),
    Column("payload", Text, nullable=False, comment="JSON"),
)

#: One row for each cell that was given slots, written when it ended.
cells = Table(
    "cells",
    metadata,
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
    Index("cells_by_user", "user", "ended_at_ms"),
    Index("cells_by_end", "ended_at_ms"),
)
