"""Records as the ledger keeps them, and what its tables say."""

import msgspec
from sqlalchemy import create_engine, text

from bulletin.codes import CellOutcome
from gpu_worker.broker.records import (
    CellRecord,
    LeaseRecord,
)


def record(cell: str, **changes: object) -> CellRecord:
    plain = CellRecord(
        cell=cell, lease="l", session="s", user="ann", project="ml", qos="interactive", node="n1",
        slots=("gpu-0", "gpu-1"), kind="gpu", gpus=2, started_at_ms=1_000, ended_at_ms=4_000,
        held_ms=2_990, ran_ms=2_900, outcome=CellOutcome.RETURNED,
    )  # type: ignore[arg-type]  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


HOLDER = {
    "lease": "l", "session": "s", "user": "ann", "project": "ml", "qos": "interactive", "node": "n1",
    "slots": ("gpu-0", "gpu-1"), "kind": "gpu",
}  # fmt: skip
LEASE = LeaseRecord(**HOLDER, granted_at_ms=1_000)  # type: ignore[arg-type]


def rows(url: str, query: str) -> list[tuple]:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            found = connection.execute(text(query))
            return [tuple(row) for row in found] if found.returns_rows else []
    finally:
        engine.dispose()
