"""What was decided of people's requests: each decision is told once, in a notebook of its user.

Notebooks that are connected hear it at once, and say it with their next cell. It is told when one is heard after that;
who has none open then reads it in the next.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice

import msgspec

from bulletin.allowance_words import describe_asked, describe_moment
from bulletin.ids import UserName
from bulletin.units import DAY_MS, show_duration
from bulletin.wire.messages.every_link import News
from bulletin.wire.messages.own_cells import OwnDecision
from gpu_worker.broker.allowance_note import AllowanceNote
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.ledger_notes import LedgerNotes

TOLD = "allowance-told"  # as the ledger calls it
#: Of a user so many requests are known, and so many decisions are listed, of the last day.
_MOST_KEPT, _MOST_LISTED, _RECENT_MS = 20, 5, DAY_MS


class ToldNote(msgspec.Struct, frozen=True):
    """What the ledger keeps of a decision that its user has been told."""

    id: str
    #: All that was decided until then counts as told; the first broker that tells decisions writes one.
    until_ms: int = 0


async def _is_told_to_nobody(_user: UserName, _news: tuple[News, ...]) -> None:
    pass


class DecisionNews:
    """The decisions that are yet to be told: one of each request at most, the last."""

    def __init__(
        self, ledger: Ledger, kept: LedgerNotes, now_ms: Callable[[], int], slot_word: Callable[[], str]
    ) -> None:
        self._ledger, self._kept, self._now_ms, self._slot_word = ledger, kept, now_ms, slot_word
        #: Says something in all notebooks of a user that are connected; set by the broker.
        self.tell_all: Callable[[UserName, tuple[News, ...]], Awaitable[None]] = _is_told_to_nobody
        self._latest: dict[UserName, dict[str, AllowanceNote]] = {}  #: what became last of each, the latest last
        self._untold: dict[UserName, dict[str, AllowanceNote]] = {}
        self._told: list[str] = []  #: and not written down yet

    async def recall(self, notes: Iterable[AllowanceNote]) -> None:
        """Take in what was decided before this broker was started, and not told."""
        payloads = await asyncio.to_thread(self._ledger.event_payloads, TOLD)
        marks = [msgspec.convert(one, ToldNote) for one in payloads]
        if not marks:  # a broker that told nobody may have decided a lot before: its users have read it elsewhere
            marks = [ToldNote("", self._now_ms())]
            await self._kept.keep(TOLD, marks[0])
        told, until_ms = {one.id for one in marks}, max(one.until_ms for one in marks)
        for note in sorted(notes, key=lambda one: one.decided_at_ms or one.asked_at_ms):
            self._note(note)
            if name_decision(note) in told or (note.decided_at_ms or 0) < until_ms:
                self._untold.get(note.user, {}).pop(note.id, None)

    async def note(self, note: AllowanceNote) -> None:
        """Take in what became of a request, and have it told."""
        self._note(note)
        if is_news(note):
            await self.tell_all(note.user, (self._news(note),))

    def list_recent(self, user: UserName, now_ms: int) -> tuple[OwnDecision, ...]:
        """List what others decided of late of what a user asked for, the latest first; looks at nobody else's."""
        mine = reversed(self._latest.get(user, {}).values())
        recent = (one for one in mine if is_news(one) and (one.decided_at_ms or 0) > now_ms - _RECENT_MS)
        return tuple(describe_decision(one, self._slot_word()) for one in islice(recent, _MOST_LISTED))

    def is_awaited(self, user: UserName) -> bool:
        """Tell whether something that a user asked for is still to be decided."""
        return any(one.state == "open" for one in self._latest.get(user, {}).values())

    def _note(self, note: AllowanceNote) -> None:
        latest = self._latest.setdefault(note.user, {})
        latest.pop(note.id, None)
        latest[note.id] = note
        if len(latest) > _MOST_KEPT:
            del latest[next((name for name, one in latest.items() if one.state != "open"), next(iter(latest)))]
        mine = self._untold.setdefault(note.user, {})
        mine.pop(note.id, None)
        if is_news(note):
            mine[note.id] = note
        if not mine:
            del self._untold[note.user]

    def take(self, user: UserName) -> tuple[News, ...]:
        """Return what is to be told to a user: it is not told again, once `keep_told` was called.

        What was granted and is over by now is of no use to them, and is left out.
        """
        notes = list(self._untold.pop(user, {}).values())
        self._told += [name_decision(note) for note in notes]
        return tuple(self._news(note) for note in notes if not self._is_past(note))

    def _is_past(self, note: AllowanceNote) -> bool:
        return note.state == "granted" and (note.until_ms or 0) <= self._now_ms()

    async def keep_told(self) -> None:
        """Write down what was told, for a broker that is started again."""
        told, self._told = self._told, []
        for name in told:
            await self._kept.keep(TOLD, ToldNote(name))

    def _news(self, note: AllowanceNote) -> News:
        decision = describe_decision(note, self._slot_word())
        return News(id=decision.id, sentence=f"{decision.title}: {decision.sentence}", about=note.id)


def name_decision(note: AllowanceNote) -> str:
    """Name a decision apart from others about the same request."""
    return f"{note.id}-{note.state}"


def is_news(note: AllowanceNote) -> bool:
    """Tell whether somebody else decided it: what a user does, or is granted at once, is read in the answer."""
    is_at_once = note.state == "granted" and note.was_granted_at_once
    return note.state != "open" and not is_at_once and note.by != note.user


def describe_decision(note: AllowanceNote, slot_word: str) -> OwnDecision:
    """Say what was decided, by whom, and until when it holds."""
    by = note.by or "An admin"
    sentence = describe_asked(note, note.project, slot_word)
    match note.state:
        case "granted":
            title = f"{by} granted what you asked for"
            sentence += f", until {describe_moment(note.until_ms or 0)}"
            granted_ms = (note.until_ms or 0) - (note.decided_at_ms or 0)
            if granted_ms != note.for_ms and note.budget_ms is None:  # that ends with its period anyway
                sentence += f" ({show_duration(granted_ms)}, where you asked for {show_duration(note.for_ms)})"
        case "over":
            title = f"{by} ended what you were granted"
        case "withdrawn":
            title = "What you asked for was taken back"
        case _:
            title = f"{by} declined what you asked for"
    said = note.sentence and (f" \u201c{note.sentence}\u201d" if note.by else f" {note.sentence}.")
    return OwnDecision(
        id=name_decision(note), title=title, sentence=f"{sentence}.{said}", is_granted=note.state == "granted"
    )
