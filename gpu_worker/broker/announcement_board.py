"""What admins announce to everybody: who may, for how long, and in the ledger who did it."""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from bulletin.codes import RefusalCode
from bulletin.units import DAY_MS
from bulletin.wire.messages.announcements import (
    Announce,
    Announcement,
    AnnouncementQuestion,
    AnnouncementReport,
    AskAnnouncement,
)
from gpu_worker.broker.announcement_note import AnnouncementNote
from gpu_worker.broker.identity import Person
from gpu_worker.broker.known_ids import CannotTell, check_admin
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.ledger_notes import LedgerNotes, printable
from gpu_worker.broker.queue_teller import QueueTeller

ANNOUNCED = "announced"  # as the ledger calls it
#: What is there for longer is read by nobody.
_LONGEST_MS = 31 * DAY_MS


class AnnouncementBoard:
    """The one thing that is announced: a new one takes the place of the last."""

    def __init__(self, teller: QueueTeller, ledger: Ledger, notes: LedgerNotes, now_ms: Callable[[], int]) -> None:
        """Take who tells those that wait."""
        self._teller, self._ledger, self._notes, self._now_ms = teller, ledger, notes, now_ms
        self._log = structlog.get_logger("broker")

    async def recall(self) -> None:
        """Announce what was announced before this broker was started, for as long as it holds."""
        payloads = await asyncio.to_thread(self._ledger.event_payloads, ANNOUNCED)
        if payloads:
            self._teller.announcement = msgspec.convert(payloads[-1], AnnouncementNote)

    async def answer(self, person: Person, asked: AnnouncementQuestion) -> AnnouncementReport:
        """Tell what is announced, once what is asked for is done. Raises CannotTell."""
        match asked:
            case Announce():
                await self._change(person, asked)
            case AskAnnouncement():
                pass
        return AnnouncementReport(announcement=find_announcement(self._teller, self._now_ms()))

    async def _change(self, person: Person, asked: Announce) -> None:
        check_admin(person, "announce something to everybody")
        sentence, until_ms = printable(asked.sentence), 0
        if asked.is_undone:
            if find_announcement(self._teller, self._now_ms()) is None:
                return  # as is wanted
            sentence = ""
        elif not sentence:
            raise CannotTell(RefusalCode.OVER_LIMIT, "Say what is to be announced, in a sentence.")
        elif asked.for_ms is None or asked.for_ms > _LONGEST_MS:
            raise CannotTell(RefusalCode.OVER_LIMIT, "An announcement has an end, within 31 days: write --until.")
        else:
            until_ms = self._now_ms() + asked.for_ms
        note = AnnouncementNote(sentence, person.user, until_ms)
        self._log.info("announced", sentence=sentence, until_ms=until_ms, by=note.by)
        self._teller.announcement = note
        self._teller.note_news()
        await self._notes.keep(ANNOUNCED, note)


def find_announcement(teller: QueueTeller, now_ms: int) -> Announcement | None:
    """Find what is announced now."""
    note = teller.announcement
    if now_ms >= note.until_ms:
        return None
    return Announcement(sentence=note.sentence, by=note.by, left_ms=note.until_ms - now_ms)
