"""Which cells run, noted in the ledger: should broker and agent both be lost, the cell is not lost with them. Pure.

A cell is noted once, when it has run for a second; a shorter one costs nothing. Once a minute, while one of them runs,
the broker notes that it is there: until then, at least, they ran.
"""

from collections.abc import Iterable
from typing import NamedTuple

from bulletin.ids import CellId, LeaseId
from gpu_worker.broker.records import LedgerEvent

_AFTER_MS, _ALIVE_EVERY_MS = 1_000, 60_000
#: Ids of such events begin so; those of cells go on with the lease's name. The rest is a time, of fixed length.
RUNS, ALIVE = "cell-runs/", "broker-alive/"


class Running(NamedTuple):
    """A cell that runs, as far as the broker has heard."""

    lease: LeaseId  #: as the ledger names it
    cell: CellId
    began_ms: int
    charged_milli: int | None = None  #: what was agreed that it is charged


class RunNotes:
    """Remembers what is noted."""

    def __init__(self) -> None:
        self._noted: dict[LeaseId, CellId] = {}
        self._alive_ms = 0

    def take(self, running: Iterable[Running], now_ms: int, *, is_last: bool = False) -> list[LedgerEvent]:
        """Return what is to be noted now. `is_last`: this broker ends."""
        long = {one.lease: one for one in running if now_ms - one.began_ms >= _AFTER_MS}
        told = [_note(one) for one in long.values() if self._noted.get(one.lease) != one.cell]
        self._noted = {one.lease: one.cell for one in long.values()}
        if long and (is_last or now_ms - self._alive_ms >= _ALIVE_EVERY_MS):
            self._alive_ms = now_ms
            told.append(LedgerEvent(id=f"{ALIVE}{now_ms:015}", kind="broker-alive", payload={}, at_ms=now_ms))
        return told


def _note(one: Running) -> LedgerEvent:
    name = f"{RUNS}{one.lease}/{one.began_ms:015}"
    payload = {"cell": one.cell, "charged_milli": one.charged_milli}
    return LedgerEvent(id=name, kind="cell-runs", payload=payload, at_ms=one.began_ms)
