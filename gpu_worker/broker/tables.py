"""The ledger's tables as they are now. What leads from older databases to here is in `migrations`.

All times are milliseconds since 1970, UTC. Rows are only ever added, in every table but `leases`, where the end comes
later, and `quota_versions`, whose oldest go; triggers see to it in the database itself.
"""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text, false

metadata = MetaData()

#: Whole numbers that outgrow 32 bits; SQLite counts rows by themselves only in a plain INTEGER.
_Count = BigInteger().with_variant(Integer(), "sqlite")

_ALONE = "nobody else was on the node"

#: All that happened, in order: every record of the other tables, and what has no table of its own.
events = Table(
    "events",
    metadata,
    Column("seq", _Count, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False, comment="milliseconds since 1970, UTC"),
    Column("kind", String(64), nullable=False),
    Column("payload", Text, nullable=False, comment="JSON"),
    Column("id", String(256), comment="who says an event twice gives it a name"),
    Index("events_by_id", "id", unique=True),
)

#: One row for each run of a cell that was given slots, written when it ended.
cells = Table(
    "cells",
    metadata,
    Column("cell", String(256), primary_key=True),
    Column("lease", String(256), nullable=False),
    Column("session", String(256), nullable=False),
    Column("user", String(256), nullable=False),
    Column("project", String(256), nullable=False),
    Column("qos", String(256), nullable=False),
    Column("node", String(256), nullable=False),
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
    Column("attempt", Integer, primary_key=True, autoincrement=False, server_default="1"),
    Column("in_quota_ms", BigInteger, nullable=False, server_default="0", comment="of held_ms; the rest is borrowed"),
    Column("borrowed_ms", BigInteger, nullable=False, server_default="0"),
    Column("refunded_ms", BigInteger, nullable=False, server_default="0", comment="of held_ms, lost by a reclaim"),
    Column("milli", Integer, comment="thousandths of a slot, all together; NULL: all are whole"),
    Column("charged_milli", Integer, comment="the same at the price of the GPUs; NULL: as milli"),
    Column("runs", Integer, nullable=False, server_default="1", comment="how many short cells it is"),
    Column("marks", Text, comment="eight letters of each of them but the first; NULL where it is one"),
    Column("waited_ms", BigInteger, comment="in line, before its slots were granted; NULL: not known"),
    Column("is_exclusive", Boolean(create_constraint=False), nullable=False, server_default=false(), comment=_ALONE),
    Index("cells_by_user", "user", "ended_at_ms"),
    Index("cells_by_end", "ended_at_ms"),
)

#: One row for each lease, written when it is granted; its end is added once.
leases = Table(
    "leases",
    metadata,
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
    Column("milli", Integer, comment="thousandths of a slot, all together; NULL: all are whole"),
    Column("is_exclusive", Boolean(create_constraint=False), nullable=False, server_default=false(), comment=_ALONE),
    Index("leases_by_end", "ended_at_ms"),
)

#: What leases did, without a gap from grant to end: a cell, or nothing (hot time, which nobody pays).
lease_spans = Table(
    "lease_spans",
    metadata,
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
    Column("milli", Integer, comment="thousandths of a slot, all together; NULL: all are whole"),
    Index("lease_spans_by_end", "ended_at_ms", "started_at_ms"),
)

#: What projects earned and spent. A balance is a sum.
credit_entries = Table(
    "credits",
    metadata,
    Column("credit", String(256), primary_key=True),
    Column("project", String(256), nullable=False),
    Column("gpu_ms", BigInteger, nullable=False, comment="GPU-milliseconds: earned above 0, spent below"),
    Column("at_ms", BigInteger, nullable=False),
    Column("cause", String(64), nullable=False),
    Column("counterpart", String(256), comment="project lent to or borrowed of"),
    Column("lease", String(256), comment="whose time it was"),
    Column(
        "own_users",
        Boolean(create_constraint=False),
        nullable=False,
        server_default=false(),
        comment="of its own users among the projects inside it",
    ),
    Index("credits_by_project", "project", "at_ms"),
)

#: Who changed which field of the configuration, and from what to what.
config_changes = Table(
    "config_changes",
    metadata,
    Column("change", String(256), primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("who", String(256), nullable=False),
    Column("what", String(256), nullable=False, comment="whose field it is"),
    Column("field", String(256), nullable=False),
    Column("before", Text, nullable=False, comment="JSON"),
    Column("after", Text, nullable=False, comment="JSON"),
    Index("config_changes_by_time", "at_ms"),
)

#: The texts that the quota file has had, the oldest of many left out.
quota_versions = Table(
    "quota_versions",
    metadata,
    Column("seq", _Count, primary_key=True, autoincrement=True),
    Column("version", String(64), nullable=False, comment="what its text is called"),
    Column("at_ms", BigInteger, nullable=False),
    Column("who", String(256), nullable=False),
    Column("why", Text, nullable=False),
    Column("changes", Text, nullable=False, comment="JSON list of sentences"),
    Column("content", Text, nullable=False, comment="of the file"),
)
