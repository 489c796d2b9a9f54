"""What the ledger keeps of what people changed by hand: for those who ask later, and for later brokers."""

import asyncio
import time

import msgspec
import structlog

from bulletin.errors import LedgerAway
from bulletin.joiners import joins
from gpu_worker.broker.ledger import Ledger


async def keep(ledger: Ledger, kind: str, note: msgspec.Struct) -> None:
    """Append a note to the ledger's events. Where the ledger is away that is logged, and what was changed holds."""
    try:
        payload, at_ms = msgspec.to_builtins(note), time.time_ns() // 1_000_000
        await asyncio.to_thread(ledger.append, kind, payload, at_ms)
    except LedgerAway as error:
        log = structlog.get_logger("broker")
        log.warning("the ledger lacks what was changed by hand; a restart forgets it", kind=kind, problem=str(error))


def printable(words: str) -> str:
    """Make one line of a person's words, with nothing in it that moves a cursor or turns letters round.

    Pages, notebooks and terminals show it to others: whatever a person writes for them comes through here.
    """
    seen = (letter if letter.isprintable() or joins(words, at) else " " for at, letter in enumerate(words))
    return " ".join("".join(seen).split())
