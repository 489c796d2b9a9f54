"""Users whose requests an admin wants before those of their project's other users: who may say so, and until when."""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from bulletin.codes import RefusalCode
from bulletin.ids import ProjectId, UserName
from bulletin.units import DAY_MS
from bulletin.wire import console
from gpu_worker.broker.identity import Person
from gpu_worker.broker.known_ids import CannotTell, check_admin, check_lead, leads_any, may_change
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.ledger_notes import LedgerNotes, printable
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler import events

BOOSTED = "user-boosted"  # as the ledger calls it
#: So many at once, and for so long: who is before everybody else is before nobody.
_MOST, _LONGEST_MS = 100, 366 * DAY_MS
#: How many projects are named where one is not known.
_MOST_NAMED = 20


class BoostNote(msgspec.Struct, frozen=True):
    """What the ledger keeps of a boost, or of its end: then `until_ms` is 0. In milliseconds since 1970, UTC."""

    user: UserName
    project: ProjectId
    until_ms: int
    by: UserName
    why: str


class UserBoosts:
    """The boosts of a pool. Only admins see and change them, and leads those in their projects."""

    def __init__(self, shell: SchedulerShell, ledger: Ledger, kept: LedgerNotes, now_ms: Callable[[], int]) -> None:
        self._shell, self._ledger, self._kept, self._now_ms = shell, ledger, kept, now_ms
        self._notes: dict[tuple[ProjectId, UserName], BoostNote] = {}
        self._log = structlog.get_logger("broker")

    async def recall(self) -> None:
        """Boost who was boosted before this broker was started."""
        payloads = await asyncio.to_thread(self._ledger.event_payloads, BOOSTED)
        latest = {(note.project, note.user): note for note in (msgspec.convert(one, BoostNote) for one in payloads)}
        for note in latest.values():
            if note.until_ms > self._now_ms():
                await self._note(note)

    def report(self, person: Person) -> console.BoostReport:
        """Tell who is boosted. Raises CannotTell."""
        if not leads_any(self._shell.scheduler.state, person):
            check_admin(person, "see and change who is boosted")
        now_ms = self._now_ms()
        rows = [
            console.BoostRow(
                user=note.user, project=note.project, for_ms=note.until_ms - now_ms, by=note.by, why=note.why
            )
            for note in self._in_force()
            if may_change(self._shell.scheduler.state, person, note.project)
        ]
        return console.BoostReport(boosts=tuple(sorted(rows, key=lambda row: (row.for_ms, row.project, row.user))))

    async def change(self, person: Person, asked: console.Boost) -> console.BoostReport:
        """Boost a user, or no longer, and tell who is boosted then. Raises CannotTell."""
        check_lead(self._shell.scheduler.state, person, asked.project, "see and change who is boosted")
        owner = asked.project, asked.user
        is_known = owner in {(note.project, note.user) for note in self._in_force()}
        if asked.is_undone and not is_known:
            raise CannotTell(
                RefusalCode.UNKNOWN_ID,
                f"{asked.user!r} is not boosted in project {asked.project!r}. Who is: bulletin boost",
            )
        if not asked.is_undone:
            self._check(asked, is_known=is_known)
        until_ms = 0 if asked.is_undone or asked.for_ms is None else self._now_ms() + asked.for_ms
        note = BoostNote(asked.user, asked.project, until_ms, person.user, printable(asked.why))
        self._log.info("user boosted", user=note.user, project=note.project, until_ms=until_ms, by=note.by)
        await self._note(note)
        await self._kept.keep(BOOSTED, note)
        self._shell.teller.note_news()
        return self.report(person)

    def _check(self, asked: console.Boost, *, is_known: bool) -> None:
        known = self._shell.scheduler.state.accounts.by_id
        if asked.project not in known:
            names = ", ".join(sorted(known)[:_MOST_NAMED]) or "none has come yet"
            raise CannotTell(
                RefusalCode.UNKNOWN_ID, f"There is no project {asked.project!r} in this pool. Projects: {names}."
            )
        if asked.for_ms is None or asked.for_ms > _LONGEST_MS:
            raise CannotTell(RefusalCode.OVER_LIMIT, "A boost has an end, within a year: write --until.")
        if not is_known and len(self._in_force()) >= _MOST:
            raise CannotTell(
                RefusalCode.OVER_LIMIT,
                f"{_MOST} users are boosted, and no more can be. To end one: bulletin boost USER --project=P --undo",
            )

    def _in_force(self) -> list[BoostNote]:
        now_ms = self._now_ms()
        self._notes = {owner: note for owner, note in self._notes.items() if note.until_ms > now_ms}
        return list(self._notes.values())

    async def _note(self, note: BoostNote) -> None:
        self._notes[note.project, note.user] = note
        await self._shell.step(events.UserBoosted(note.project, note.user, note.until_ms))
