"""What people ask for beyond the rules, who decides it, and what became of it: kept in the ledger, with the reasons."""

import asyncio
from collections.abc import Callable, Iterator

import msgspec
import structlog

from bulletin.codes import RefusalCode
from bulletin.ids import ProjectId, UserName
from bulletin.units import DAY_MS
from bulletin.wire import keys
from bulletin.wire.messages.allowance_requests import (
    AllowanceQuestion,
    AllowanceReport,
    AllowanceRow,
    AllowanceState,
    AskAllowances,
    DecideAllowance,
    RequestAllowance,
)
from gpu_worker.broker import known_ids
from gpu_worker.broker.allowance_limits import (
    AllowanceTerms,
    is_granted_at_once,
    named_leads,
    refuse_for_all,
    refuse_for_lead,
    refuse_size,
    refuse_what_all_have,
    usual_for_ms,
)
from gpu_worker.broker.allowance_note import AllowanceNote
from gpu_worker.broker.budget_requests import (
    PERIOD_MS,
    find_budget,
    last_ms,
    refuse_budget_for_all,
    refuse_budget_for_lead,
)
from gpu_worker.broker.decision_news import DecisionNews
from gpu_worker.broker.identity import Person
from gpu_worker.broker.known_ids import CannotTell, why_no_payer
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.ledger_notes import LedgerNotes, printable
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler import events
from gpu_worker.scheduler.policy.allowances import Allowance
from gpu_worker.scheduler.policy.projects import DEFAULT_PROJECT, GPU_MILLI

ASKED = "allowance"  # as the ledger calls it
#: So many of one user are open at once, and so many are asked for in a day: each is read by a person, and is kept.
_MOST_OPEN, _MOST_A_DAY = 3, 10
#: So many are told at once.
_MOST_TOLD = 200
#: What was decided so long ago is told only to who asks for all.
_RECENT_MS = 7 * DAY_MS
#: What who has left a project reads of what they were granted there.
_LEFT = "you are not in the project any more"
#: What is said of a request of theirs, to them and to leads.
_GONE = "who asked is not in the project any more"


class AllowanceBook:
    """What was asked for. Who asks sees their own; leads see and decide what is asked in their projects, admins all."""

    def __init__(
        self,
        shell: SchedulerShell,
        ledger: Ledger,
        kept: LedgerNotes,
        now_ms: Callable[[], int],
        slot_word: Callable[[], str],
    ) -> None:
        self._shell, self._ledger, self._kept, self._now_ms, self._slot_word = shell, ledger, kept, now_ms, slot_word
        self._notes: dict[str, AllowanceNote] = {}  #: those that are open, in force or recent
        self.news = DecisionNews(ledger, kept, now_ms, slot_word)  #: what its user is yet to be told in a notebook
        self._log = structlog.get_logger("broker")

    async def recall(self) -> None:
        """Take in what was asked for and granted before this broker was started."""
        for note in (await self._read()).values():
            if self._is_of_now(note):
                self._notes[note.id] = note
                await self._put_in_force(note)
        await self.news.recall(self._notes.values())

    async def answer(self, person: Person, asked: AllowanceQuestion) -> AllowanceReport:
        """Answer who asks, decides or looks. Raises CannotTell."""
        self._notes = {name: note for name, note in self._notes.items() if self._is_of_now(note)}
        match asked:
            case RequestAllowance():
                return self._report(person, [await self._request(person, asked)])
            case DecideAllowance():
                return self._report(person, [await self._decide(person, asked)])
            case AskAllowances():
                may_read_all = person.is_admin or person.leads or person.may_be_named_lead
                notes = {**await self._read(), **self._notes} if asked.is_all and may_read_all else self._notes
                seen = [one for one in notes.values() if self._may_see(person, one)]
                return self._report(person, seen, behind=asked.behind, is_all=asked.is_all)

    # --- asking

    async def _request(self, person: Person, asked: RequestAllowance) -> AllowanceNote:
        accounts, now_ms = self._shell.scheduler.state.accounts, self._now_ms()
        project = asked.project or person.project
        why_not = why_no_payer(self._shell.scheduler.state, person, project)
        if why_not:
            raise CannotTell(RefusalCode.NOT_YOUR_PROJECT, why_not)
        if not person.user:
            raise CannotTell(RefusalCode.NOT_ALLOWED, "A service of the hub runs no cells: ask as a user.")
        if asked.walltime_ms is None and asked.gpus is None and asked.budget_ms is None:
            raise CannotTell(
                RefusalCode.OVER_LIMIT, "Say what you need: --time 4h for longer cells, --gpus 2, or --budget 10."
            )
        if asked.budget_ms is not None and not (asked.walltime_ms is None and asked.gpus is None):
            raise CannotTell(RefusalCode.OVER_LIMIT, "Ask for more of a budget alone, with --budget and --why.")
        if asked.is_exclusive and asked.gpus is None:
            raise CannotTell(RefusalCode.OVER_LIMIT, "Say how many GPUs the node has, as in --exclusive --gpus 4.")
        why = printable(asked.why)
        if not why:
            raise CannotTell(RefusalCode.OVER_LIMIT, 'Say what you need it for: --why "...". Whoever decides reads it.')
        holder = find_budget(accounts, project, asked.budget_of) if asked.budget_ms is not None else None
        budget = holder.project.budget if holder is not None else None
        wanted = AllowanceTerms(
            walltime_ms=asked.walltime_ms,
            gpus=asked.gpus,
            for_ms=asked.for_ms or (usual_for_ms(accounts, project) if budget is None else PERIOD_MS[budget.period]),
            is_exclusive=asked.is_exclusive,
            budget_ms=asked.budget_ms,
        )
        obstacle = self._refuse_for_all(project, wanted)
        if not obstacle and asked.budget_ms is not None:
            obstacle = refuse_budget_for_all(accounts, holder.project.id if holder is not None else project)
        elif not obstacle:
            obstacle = refuse_what_all_have(accounts, project, wanted, on_cpu=self._on_cpu)
        if obstacle:
            raise CannotTell(RefusalCode.OVER_LIMIT, obstacle)
        mine = [one for one in self._notes.values() if one.user == person.user]
        for note in mine:
            is_same = (note.project, note.wanted) == (project, wanted) and asked.budget_of in ("", note.budget_of)
            if is_same and (note.state == "open" or self._is_young(note)):
                return note  # said again, as by a notebook that is run from its top
        here = [one for one in mine if one.project == project]
        at_once = [one.asked_at_ms for one in here if one.was_granted_at_once]
        taken = [one.taken_at_ms for one in here if one.taken_at_ms is not None]
        is_at_once = not self._leads(person, project) and is_granted_at_once(
            accounts, project, wanted, now_ms, at_once, taken
        )
        self._check_pace(mine, now_ms, waits=not is_at_once)
        note = AllowanceNote(
            id=f"a-{keys.make_id()}",
            user=person.user,
            project=project,
            walltime_ms=wanted.walltime_ms,
            gpus=wanted.gpus,
            is_exclusive=wanted.is_exclusive,
            budget_ms=wanted.budget_ms,
            budget_of=holder.project.id if holder is not None else "",
            for_ms=wanted.for_ms,
            why=why,
            asked_at_ms=now_ms,
            is_by_rule=is_at_once,
        )
        if is_at_once:
            note = _decided(note, "granted", "", "", now_ms, now_ms + wanted.for_ms)
        await self._keep(note)
        return note

    def _leads(self, person: Person, project: ProjectId) -> bool:
        """Whether somebody who is no admin leads a project, and may have written its rules, by any of their tokens."""
        state = self._shell.scheduler.state
        is_named = person.user in named_leads(state.accounts.of(project))
        return not person.is_admin and (is_named or known_ids.is_led(state, person, project))

    @staticmethod
    def _check_pace(mine: list[AllowanceNote], now_ms: int, *, waits: bool) -> None:
        """Refuse more of one user than people read. Raises CannotTell."""
        waiting = sum(one.state == "open" for one in mine)
        if waits and waiting >= _MOST_OPEN:
            raise CannotTell(
                RefusalCode.TOO_FAST,
                f"{waiting} requests of yours wait for a decision already, and no more can. `%gpu request` lists them; "
                "take one back with `%gpu request --withdraw ID`.",
            )
        if sum(one.asked_at_ms > now_ms - DAY_MS for one in mine) >= _MOST_A_DAY:
            raise CannotTell(
                RefusalCode.TOO_FAST,
                f"You have asked {_MOST_A_DAY} times within a day, which is as often as one may. Talk to your "
                "project's lead, or ask again tomorrow.",
            )

    # --- deciding

    async def _decide(self, person: Person, asked: DecideAllowance) -> AllowanceNote:
        note, now_ms = self._find(person, asked.id), self._now_ms()
        is_own, may_decide = note.user == person.user, self._may_decide(person, note)
        if not may_decide and not (is_own and not asked.is_granted):
            who = "yours: a lead of the project or an admin decides it" if is_own else f"in project {note.project!r}"
            raise CannotTell(RefusalCode.NOT_ALLOWED, f"{note.id} is {who}, which you cannot decide.")
        sentence = printable(asked.sentence)
        if note.state != "open" and (asked.is_granted or not self._is_in_force(note)):
            raise CannotTell(RefusalCode.NOT_WAITING, f"{note.id} {_became(note)} already: it is not open.")
        if not asked.is_granted:
            state: AllowanceState = "withdrawn" if is_own and not (may_decide and sentence) else "declined"
            state = "over" if note.state == "granted" else state
            decided = _decided(note, state, person.user, sentence, now_ms, None)
        else:
            for_ms = asked.for_ms or note.for_ms
            wanted = msgspec.structs.replace(note.wanted, for_ms=for_ms)
            accounts = self._shell.scheduler.state.accounts
            obstacle = self._refuse_for_all(note.project, wanted)
            if not obstacle and note.budget_ms is not None:
                obstacle = refuse_budget_for_all(accounts, note.place)
            if not obstacle and not person.is_admin:
                obstacle = self._refuse_for_lead(person, note, wanted)
            if obstacle:
                raise CannotTell(RefusalCode.OVER_LIMIT, obstacle)
            until_ms = now_ms + for_ms
            if note.budget_ms is not None:
                until_ms = min(until_ms, last_ms(accounts, note.place, now_ms))
            decided = _decided(note, "granted", person.user, sentence, now_ms, until_ms)
        await self._keep(decided)
        return decided

    def _refuse_for_all(self, project: ProjectId, wanted: AllowanceTerms) -> str:
        """Say why nobody could grant this, or none could use it; empty where somebody could."""
        state, on_cpu = self._shell.scheduler.state, self._on_cpu
        return refuse_for_all(state.accounts, project, wanted, on_cpu=on_cpu) or refuse_size(
            state, project, wanted, on_cpu=on_cpu
        )

    def _refuse_for_lead(self, person: Person, note: AllowanceNote, wanted: AllowanceTerms) -> str:
        """Say why this lead cannot grant it; empty where they can."""
        accounts = self._shell.scheduler.state.accounts
        obstacle = refuse_for_lead(accounts, note.project, wanted, on_cpu=self._on_cpu)
        if obstacle or note.budget_ms is None:
            return obstacle
        if not known_ids.may_change(self._shell.scheduler.state, person, note.place):
            return f"It is the budget of project {note.place!r}: who leads that, or an admin, decides this."
        return refuse_budget_for_lead(accounts, note.place, note.budget_ms, on_cpu=self._on_cpu)

    def _find(self, person: Person, name: str) -> AllowanceNote:
        seen = [note for note in self._notes.values() if self._may_see(person, note)]
        found = [note for note in seen if note.id == name]
        if not found and len(name) >= known_ids.LEAST:
            found = [note for note in seen if note.id.startswith(name)]
        if len(found) != 1:
            problem = f"{len(found)} requests begin with {name!r}" if found else f"You see no request {name!r}"
            there = "`%gpu request` and `bulletin request list` have those of now"
            raise CannotTell(RefusalCode.UNKNOWN_ID, f"{problem}. {there}.")
        return found[0]

    def _may_see(self, person: Person, note: AllowanceNote) -> bool:
        return note.user == person.user or known_ids.may_change(self._shell.scheduler.state, person, note.project)

    def _may_decide(self, person: Person, note: AllowanceNote) -> bool:
        """Tell whether a person decides this: a lead's own is for another lead, or an admin."""
        return person.is_admin or (note.user != person.user and self._may_see(person, note))

    # --- who asked and has left

    @property
    def open_users(self) -> tuple[UserName, ...]:
        """Whose requests wait for a decision."""
        return tuple(sorted({note.user for note in self._notes.values() if note.state == "open"}))

    async def take_back_all(self, user: UserName, *, but_of: Person | None = None) -> None:
        """Take back what a user asked for in projects that they are not in any more, as `but_of` says; None is in none.

        Who has come into a group since has not left the project of those who are in none.
        """
        for note in [one for one in self._notes.values() if one.state == "open" and one.user == user]:
            if self._notes.get(note.id) is not note:
                continue  # decided while another was written down
            if but_of is not None and (note.project == DEFAULT_PROJECT or but_of.may_charge(note.project)):
                continue
            await self._keep(_decided(note, "withdrawn", "", _GONE, self._now_ms(), None))

    # --- what is kept

    async def _keep(self, note: AllowanceNote) -> None:
        self._notes[note.id] = note
        self._log.info(
            "allowance", id=note.id, state=note.state, user=note.user, project=note.project, by=note.by, why=note.why
        )
        await self._put_in_force(note)
        await self._kept.keep(ASKED, note)
        await self.news.note(note)
        self._shell.teller.note_news()

    async def _put_in_force(self, note: AllowanceNote) -> None:
        if note.decided_at_ms is None:
            return
        allowance = Allowance(
            until_ms=note.until_ms or 0,
            walltime_ms=note.walltime_ms or 0,
            gpus=note.gpus or 0,
            budget_ms=note.budget_ms or 0,
            is_exclusive=note.is_exclusive,
        )
        if note.state == "granted" or note.id in self._names_in_force(note):
            await self._shell.step(events.AllowanceChanged(note.id, note.place, note.user, allowance))

    def _names_in_force(self, note: AllowanceNote) -> Iterator[str]:
        yield from self._shell.scheduler.state.accounts.allowances.by_owner.get((note.place, note.user), {})

    async def _read(self) -> dict[str, AllowanceNote]:
        payloads = await asyncio.to_thread(self._ledger.event_payloads, ASKED)
        return {note.id: note for note in (msgspec.convert(one, AllowanceNote) for one in payloads)}

    def _is_in_force(self, note: AllowanceNote) -> bool:
        return note.state == "granted" and note.until_ms is not None and note.until_ms > self._now_ms()

    def _is_young(self, note: AllowanceNote) -> bool:
        """Whether it is in force, and half of the time for which it was granted is still to come."""
        if note.until_ms is None or note.decided_at_ms is None:
            return False
        left_ms = note.until_ms - self._now_ms()
        return self._is_in_force(note) and left_ms * 2 >= note.until_ms - note.decided_at_ms

    @property
    def _on_cpu(self) -> bool:
        return self._slot_word() != "GPU"

    def _is_of_now(self, note: AllowanceNote) -> bool:
        latest_ms = max(note.asked_at_ms, note.decided_at_ms or 0, note.until_ms or 0)
        return note.state == "open" or self._is_in_force(note) or latest_ms > self._now_ms() - _RECENT_MS

    # --- what is told

    def _report(
        self, person: Person, notes: list[AllowanceNote], *, behind: str = "", is_all: bool = False
    ) -> AllowanceReport:
        latest = sorted(notes, key=lambda one: (not is_all and one.state != "open", -one.asked_at_ms, one.id))
        names = [note.id for note in latest]
        first = names.index(behind) + 1 if behind in names else 0
        rows = tuple(self._row(person, note) for note in latest[first : first + _MOST_TOLD])
        return AllowanceReport(rows=rows, slot_word=self._slot_word(), has_more=len(latest) > first + len(rows))

    def _row(self, person: Person, note: AllowanceNote) -> AllowanceRow:
        accounts, now_ms = self._shell.scheduler.state.accounts, self._now_ms()
        account, leads = accounts.by_id.get(note.project), accounts.by_id.get(note.place)
        user = account.users.get(note.user) if account is not None else None
        has_left = note.user == person.user and self._is_in_force(note) and not person.may_charge(note.project)
        holds = self._is_in_force(note) and not has_left
        age_ms = now_ms - (accounts.began_ms or now_ms)
        amounts = msgspec.structs.replace(note.wanted, for_ms=0)  # a lead may grant them for less
        may_decide, needs_admin = self._may_decide(person, note), bool(refuse_for_lead(accounts, note.project, amounts))
        if note.budget_ms is not None and note.state == "open":
            needs_admin |= bool(refuse_budget_for_lead(accounts, note.place, note.budget_ms, on_cpu=self._on_cpu))
        may_grant = may_decide and (person.is_admin or not self._refuse_for_lead(person, note, amounts))
        return AllowanceRow(
            id=note.id,
            user=note.user,
            project=note.project,
            walltime_ms=note.walltime_ms,
            gpus=note.gpus,
            is_exclusive=note.is_exclusive,
            budget_ms=note.budget_ms,
            budget_of=note.budget_of,
            for_ms=note.for_ms,
            why=note.why,
            state="over" if note.state == "granted" and not holds else note.state,
            asked_at_ms=note.asked_at_ms,
            by=note.by,
            sentence=_LEFT if has_left else note.sentence,
            until_at_ms=note.until_ms,
            left_ms=note.until_ms - now_ms if holds and note.until_ms is not None else None,
            is_own=note.user == person.user,
            may_decide=may_decide,
            may_grant=may_grant,
            leads=tuple(map(UserName, named_leads(leads))) if leads is not None else (),
            needs_admin=needs_admin,
            used_milli=user.used if user is not None else 0,
            recent_ms=user.history.at(age_ms) // GPU_MILLI if user is not None else 0,
        )


def _became(note: AllowanceNote) -> str:
    """Say what became of one that is open no more."""
    if note.state == "over" and note.until_ms is None:
        return f"was ended by {note.by}"
    by = f" by {note.by}" if note.by else " by the project's rules"
    return f"was {'granted' if note.state == 'over' else note.state}{by}"


def _decided(
    note: AllowanceNote, state: AllowanceState, by: str, sentence: str, at_ms: int, until_ms: int | None
) -> AllowanceNote:
    return msgspec.structs.replace(
        note,
        state=state,
        by=by,
        sentence=sentence,
        decided_at_ms=at_ms,
        until_ms=until_ms,
        is_by_rule=note.was_granted_at_once,
    )
