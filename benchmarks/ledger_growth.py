"""How much disk short cells take in the ledger: each with rows of its own, and as a pool writes them.

    python benchmarks/ledger_growth.py [--minutes 2]

One hot session runs empty cells without a pause, 500 a second, for so many minutes of the ledger's clock. What is
counted is the database with its write-ahead log.
"""

import argparse
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bulletin.codes import CellOutcome
from bulletin.ids import CellId, LeaseId, ProjectId, SessionId, SlotId, UserName
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.meter import Meter
from gpu_worker.broker.records import CellRecord, LeaseRecord, Record
from gpu_worker.broker.short_cells import ShortCells

BEGAN_MS, EVERY_MS, HELD_MS = 1_800_000_000_000, 2, 1
#: So many cells come before the writer writes: a tenth of a second.
TOGETHER = 50


def told(minutes: int) -> Iterator[list[Record]]:
    """Yield what a pool is told of the session, cell by cell."""
    holder = {
        "lease": LeaseId("l-0123456789ab"),
        "session": SessionId("s-0123456789ab"),
        "user": UserName("student-17"),
        "project": ProjectId("machine-learning"),
        "qos": "interactive",
        "node": "node-1",
        "slots": (SlotId("gpu-0"),),
        "kind": "gpu",
        "milli": 1000,
    }
    lease = LeaseRecord(**holder, granted_at_ms=BEGAN_MS)  # type: ignore[arg-type]
    yield [lease]
    meter = Meter(lease)
    for number in range(minutes * 60_000 // EVERY_MS):
        at_ms = BEGAN_MS + number * EVERY_MS
        cell = CellId(f"{number:032x}")
        meter.begin(cell, is_in_quota=True, at_ms=at_ms)
        ended = CellRecord(
            **holder,  # type: ignore[arg-type]
            cell=cell,
            gpus=1,
            started_at_ms=0,
            ended_at_ms=0,
            held_ms=0,
            ran_ms=1,
            outcome=CellOutcome.RETURNED,
            bytes_sent=300,
            bytes_returned=200,
        )
        yield [*meter.end(ended, at_ms + HELD_MS)]


def as_written(minutes: int) -> Iterator[list[Record]]:
    """Yield what the pool writes of it."""
    short_cells = ShortCells()
    for number, records in enumerate(told(minutes)):
        now_ms = BEGAN_MS + number * EVERY_MS
        for one in (*short_cells.take(records, None, now_ms), *short_cells.take_old(now_ms)):
            yield [*one.records]
    for one in short_cells.close_all():
        yield [*one.records]


def size_bytes(folder: Path, writes: Iterator[list[Record]]) -> int:
    """Write them as a broker does, and return what the files of the ledger are then."""
    with Ledger.open(f"sqlite:///{folder / 'ledger.sqlite'}") as ledger:
        empty = sum(file.stat().st_size for file in folder.iterdir())
        while some := list(islice(writes, TOGETHER)):
            ledger.record([record for records in some for record in records], BEGAN_MS)
        assert not list(ledger.audit())
        return sum(file.stat().st_size for file in folder.iterdir()) - empty


def main() -> None:
    """Print both, as bytes for each cell and as gigabytes a day."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("--minutes", type=int, default=2)
    minutes = words.parse_args().minutes
    cells = minutes * 60_000 // EVERY_MS
    for name, writes in (("rows of their own", told(minutes)), ("as a pool writes", as_written(minutes))):
        with tempfile.TemporaryDirectory() as folder:
            found = size_bytes(Path(folder), writes)
        a_day = found / minutes * 24 * 60
        print(f"{name:18}  {cells} cells  {found / cells:8.1f} bytes a cell  {a_day / 1e9:7.2f} GB a day")


if __name__ == "__main__":
    main()
