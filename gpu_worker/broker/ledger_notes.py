"""What the ledger keeps of what people changed by hand: for those who ask later, and for later brokers."""

import asyncio
import time
from pathlib import Path

import msgspec
import structlog

from bulletin.errors import LedgerAway
from bulletin.joiners import joins
from bulletin.wire import keys
from gpu_worker.broker.late_notes import LateNotes
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.records import LedgerEvent

#: How long to wait before a ledger that did not answer is asked again.
_AWAY_S = 1.0


class LedgerNotes:
    """Writes notes in the order in which they are made; while the ledger is away, into a file, and then from there."""

    def __init__(self, ledger: Ledger, late: Path) -> None:
        """Take where notes wait."""
        self._ledger, self._late = ledger, LateNotes(late)
        self._one_by_one = asyncio.Lock()
        self._is_late = asyncio.Event()
        self._log = structlog.get_logger("broker")

    async def keep(self, kind: str, note: msgspec.Struct) -> None:
        """Write a note as an event of the ledger. What was changed holds in any case, also for a later broker."""
        event = LedgerEvent(
            id=f"{kind} {keys.make_id()}",
            kind=kind,
            payload=msgspec.to_builtins(note),
            at_ms=time.time_ns() // 1_000_000,
        )
        async with self._one_by_one:
            problem = "notes from before wait, too"
            if self._late.is_empty:
                try:
                    await asyncio.to_thread(self._ledger.record, [event], event.at_ms)
                except LedgerAway as error:
                    problem = str(error)
                else:
                    return
            if await asyncio.to_thread(self._late.add, event):
                self._log.warning("what was changed by hand waits for the ledger", kind=kind, problem=problem)
            else:
                self._log.error("what was changed by hand is lost with this broker", kind=kind, problem=problem)
            self._is_late.set()

    async def hand_on(self) -> None:
        """Write what waits. Raises LedgerAway, and it waits on."""
        async with self._one_by_one:
            if not self._late.is_empty:
                await asyncio.to_thread(self._write_late)

    async def run(self) -> None:
        """Write what waits as soon as the ledger answers, until cancelled."""
        while True:
            await self._is_late.wait()
            await asyncio.sleep(_AWAY_S)
            try:
                await self.hand_on()
            except LedgerAway:
                continue
            self._is_late.clear()

    def _write_late(self) -> None:
        for event in self._late.read():  # one by one: a call sorts what it is told, and later ones replace earlier ones
            self._ledger.record([event], event.at_ms)
        self._late.clear()


def printable(words: str) -> str:
    """Make one line of a person's words, with nothing in it that moves a cursor or turns letters round.

    Pages, notebooks and terminals show it to others: whatever a person writes for them comes through here.
    """
    seen = (letter if letter.isprintable() or joins(words, at) else " " for at, letter in enumerate(words))
    return " ".join("".join(seen).split())
