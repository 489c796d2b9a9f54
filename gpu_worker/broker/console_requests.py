"""People at a command line: what they ask of the broker, whether they may, and the answer."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from bulletin.codes import RefusalCode
from bulletin.errors import LedgerAway, NotAllowed
from bulletin.ids import LeaseId, ProjectId
from bulletin.kept_time import is_kept
from bulletin.picture_sight import SOMEONE
from bulletin.wire import console, messages as wire
from bulletin.wire.messages.allowance_requests import AskAllowances, DecideAllowance, RequestAllowance
from bulletin.wire.messages.announcements import Announce, AskAnnouncement
from bulletin.wire.messages.engine_broker import Demand, EngineNews
from bulletin.wire.messages.own_cells import AskOwn, OwnReport
from bulletin.wire.messages.quota_edits import (
    AskQuotaFile,
    AskQuotaLog,
    EditQuotas,
    PreviewQuotas,
    QuotaAnswer,
    QuotaQuestion,
    UndoQuotas,
)
from gpu_worker.broker import known_ids, own_report, reports
from gpu_worker.broker.admin_requests import AdminRequests
from gpu_worker.broker.agents import Agents
from gpu_worker.broker.allowance_book import AllowanceBook
from gpu_worker.broker.announcement_board import AnnouncementBoard
from gpu_worker.broker.engine_reports import EngineReports
from gpu_worker.broker.identity import Person
from gpu_worker.broker.known_ids import CannotTell
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.ledger_notes import LedgerNotes
from gpu_worker.broker.node_drains import NodeDrains
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.user_boosts import UserBoosts
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.life import Phase

#: So much of the line is told at once: each place is explained, and kernels wait meanwhile.
_MOST_WAITING, _MOST_RUNNING, _MOST_ENDED = 500, 2_000, 50


#: Answers what is asked about the quota file, or raises CannotTell.
AnswerQuotas = Callable[[Person, QuotaQuestion], Awaitable[QuotaAnswer]]


async def _without_quota_file(*_: object) -> QuotaAnswer:
    raise CannotTell(RefusalCode.NOT_WRITTEN, "This pool has no quota file.")


async def _knows_all_groups(*_: object) -> NotAllowed | None:
    return None


class ConsoleRequests:
    """Answers the command line. Admins see all and change all; others see and cancel what is their own."""

    def __init__(
        self,
        shell: SchedulerShell,
        agents: Agents,
        ledger: Ledger,
        notes: LedgerNotes,
        now_ms: Callable[[], int],
        metrics: Callable[[], str] = str,
        quotas: AnswerQuotas = _without_quota_file,
        learn: Callable[[Person, ProjectId], Awaitable[NotAllowed | None]] = _knows_all_groups,
    ) -> None:
        """Take what writes down all that is counted, for Prometheus, and what answers about the quota file.

        `learn` is told of each group that somebody asks for, and says why it may not pay.
        """
        self._quotas, self._learn, self._notes = quotas, learn, notes
        self._metrics = metrics
        self._shell, self._agents, self._ledger, self._now_ms = shell, agents, ledger, now_ms
        self._state = shell.scheduler.state
        self.drains = NodeDrains(shell, agents, ledger, notes, now_ms)
        self._by_hand, self._boosts = AdminRequests(shell, notes), UserBoosts(shell, ledger, notes, now_ms)
        self._announcements = AnnouncementBoard(shell.teller, ledger, notes, now_ms)
        self._engine = EngineReports(shell, agents, now_ms)
        self.allowances = AllowanceBook(shell, ledger, notes, now_ms, lambda: agents.slot_word)
        self._log = structlog.get_logger("broker")

    async def recall(self) -> None:
        """Drain what was drained before this broker was started, boost who was boosted, allow what was granted."""
        await self._notes.hand_on()
        await self._boosts.recall()
        await self.allowances.recall()
        await self._announcements.recall()
        await self.drains.recall()

    async def answer(
        self, person: Person, question: console.FromConsole
    ) -> console.Report | Demand | OwnReport | wire.Refusal:
        """Return the report that was asked for, or a refusal with its sentence."""
        try:
            match question:
                case console.AskQueue():
                    return self._queue(person, question)
                case console.AskProjects():
                    return self._projects(person)
                case console.AskAbout():
                    return await self._about(person, question.id)
                case console.Cancel():
                    return await self._cancel(person, question.id)
                case console.Drain():
                    return await self.drains.change(person, question, lambda leases: self._running(person, leases))
                case console.Hold() | console.Release() | console.PutFirst() | console.Requeue() | console.Extend():
                    return await self._by_hand.answer(person, question)
                case console.Boost():
                    return await self._boosts.change(person, question)
                case console.AskBoosts():
                    return self._boosts.report(person)
                case RequestAllowance() | DecideAllowance() | AskAllowances():
                    if isinstance(question, RequestAllowance):
                        await self._know(person, question.project or person.project)
                    return await self.allowances.answer(person, question)
                case Announce() | AskAnnouncement():
                    return await self._announcements.answer(person, question)
                case EngineNews():
                    return await self._engine.answer(person, question)
                case AskOwn():
                    return await own_report.make_report(
                        person, question, self._shell, self._agents, self._ledger, self.allowances.news, self._now_ms
                    )
                case console.AskMetrics():
                    known_ids.check_admin(person, "read what is counted of all projects")
                    return console.MetricsReport(text=self._metrics())
                case AskQuotaFile() | EditQuotas() | UndoQuotas() | AskQuotaLog() | PreviewQuotas():
                    return await self._quotas(person, question)
        except CannotTell as problem:
            return wire.Refusal(code=problem.code, sentence=problem.sentence)
        except LedgerAway as error:
            return wire.Refusal(code=RefusalCode.LEDGER_AWAY, sentence=str(error))

    async def _know(self, person: Person, project: ProjectId) -> None:
        """Have a group that is new become what the rules say. Raises CannotTell."""
        obstacle = await self._learn(person, project)
        if obstacle is not None:
            raise CannotTell(RefusalCode(obstacle.code), obstacle.problem)

    # --- who waits, who runs

    def _queue(self, person: Person, asked: console.AskQueue) -> console.QueueReport:
        is_others = asked.user not in (None, person.user)
        if is_others and not known_ids.leads_any(self._state, person):
            known_ids.check_admin(person, "see whose cells other people's are")
        if asked.project is not None and asked.project not in _own_projects(person):
            known_ids.check_lead(self._state, person, asked.project, "see it from outside")

        def is_asked_for(one: Request | Lease) -> bool:
            if is_others and not known_ids.may_change(self._state, person, one.home):
                return False  # that somebody of this name is there is known to who leads them
            return asked.user in (None, one.user) and (asked.project is None or asked.project in self._path(one))

        line = [one for one in reports.in_line(self._state) if is_asked_for(one)]
        line = [one for one in line if person.is_admin or reports.is_in_sight(one, person.user)]
        leases = [one for one in self._state.leases.values() if is_asked_for(one)]
        waiting = [self._waiting(one) for one in line[:_MOST_WAITING]]
        return console.QueueReport(
            waiting=tuple(row if self._may_see(person, row) else _blank_waiting(row) for row in waiting),
            waiting_count=len(line),
            running=self._running(person, leases),
            slot_word=self._agents.slot_word,
        )

    def _waiting(self, request: Request) -> console.WaitingRow:
        pending, now_ms = self._shell.pending_requests.get(request.id), self._now_ms()
        known = self._shell.waiting(request.id, now_ms)
        assert known is not None, "it is pending"
        return reports.waiting(
            request,
            known,
            waited_ms=now_ms - pending.since_ms if pending is not None else 0,
            usual_ms=self._shell.teller.usual_ms(pending, now_ms) if pending is not None else None,
            label=pending.message.label if pending is not None else "",
        )

    def _running(self, person: Person, leases: list[Lease]) -> tuple[console.RunningRow, ...]:
        """Make rows of leases, those with the oldest phase first."""
        now_ms, is_in_quota = self._now_ms(), self._shell.is_in_quota
        oldest = sorted(leases, key=lambda one: (one.since_ms, one.id))[:_MOST_RUNNING]
        rows = [reports.running(self._state, lease, now_ms, is_in_quota=is_in_quota(lease)) for lease in oldest]
        return tuple(row if self._may_see(person, row) else _blank_running(row) for row in rows)

    def _may_see(self, person: Person, row: console.WaitingRow | console.RunningRow) -> bool:
        return known_ids.may_see(person, row.user) or known_ids.is_led(self._state, person, row.project)

    def _path(self, one: Request | Lease) -> list[ProjectId]:
        account = self._state.accounts.by_id.get(one.project)
        return [at.project.id for at in account.path] if account is not None else []

    # --- projects

    def _projects(self, person: Person) -> console.ProjectReport:
        state = self._state
        accounts = list(reports.tree(state))
        if not person.is_admin:
            mine = [state.accounts.by_id[own] for own in _own_projects(person) if own in state.accounts.by_id]
            seen = {at.project.id for account in mine for at in account.path}
            mine_too = {at.project.id for at in mine}  # and what is reserved in them
            accounts = [
                account
                for account in accounts
                if account.project.id in seen
                or (account.project.users and account.project.parent in mine_too)
                or known_ids.is_led(state, person, account.project.id)
            ]
        rows = tuple(reports.project(account, state) for account in accounts)
        return console.ProjectReport(projects=rows, slot_word=self._agents.slot_word)

    def _standing(self, one: Request | Lease) -> tuple[console.ProjectRow, ...]:
        path = self._state.accounts.of(one.project).path
        return tuple(reports.project(at, self._state) for at in path)

    # --- one of them

    async def _about(
        self, person: Person, name: str
    ) -> console.AboutWaiting | console.AboutRunning | console.AboutEnded:
        word = self._agents.slot_word
        match known_ids.find(self._state, person, name):
            case Request() as request:
                return console.AboutWaiting(
                    request=self._waiting(request),
                    projects=self._standing(request),
                    nodes=tuple(reports.nodes(self._state, request, self.drains.why)),
                    slot_word=word,
                )
            case Lease() as lease:
                (row,), projects = self._running(person, [lease]), self._standing(lease)
                cells = await self._ended(person, lease.id)
                return console.AboutRunning(lease=row, projects=projects, cells=cells, slot_word=word)
            case None:
                cells = await self._ended(person, name)
                if not cells:
                    raise known_ids.unknown(person, name)
                return console.AboutEnded(cells=cells, slot_word=word)

    async def _ended(self, person: Person, name: str) -> tuple[console.EndedRow, ...]:
        user = None if person.is_admin else person.user
        if len(name) < known_ids.LEAST:
            return ()
        return tuple(map(reports.ended, await asyncio.to_thread(self._ledger.about, name, user, _MOST_ENDED)))

    # --- what changes something

    async def _cancel(self, person: Person, name: str) -> console.Cancelled:
        found = known_ids.find_live(self._state, person, name)
        is_place = isinstance(found, Lease) and is_kept(found.cell)
        did = "gave back the place that this notebook kept" if is_place else "cancelled this cell"
        sentence = (
            f"You {did}{person.place}."
            if found.user == person.user
            else f"{'An admin' if person.is_admin else 'The lead of your project'} ({person.user}) {did}."
        )
        self._log.info("cancelled", lease=known_ids.lease_id(found), user=found.user, by=person.user)
        if isinstance(found, Request):
            if await self._shell.cancel_request(found.id, sentence):
                return console.Cancelled(lease=found.lease, user=found.user, what="withdrawn")
            if found.lease not in self._state.leases:
                raise known_ids.unknown(person, name, "waits or runs")
            found = self._state.leases[found.lease]
        if found.phase not in (Phase.GRANTED, Phase.BUSY, Phase.RECLAIMING):
            raise CannotTell(RefusalCode.NO_CELL, f"No cell runs in {found.id}: there is nothing to cancel.")
        return console.Cancelled(
            lease=found.id, user=found.user, what=await self._shell.cancel_cell(found.id, sentence)
        )


def _own_projects(person: Person) -> tuple[ProjectId, ...]:
    return (*map(ProjectId, person.groups), person.project)


def _blank_waiting(row: console.WaitingRow) -> console.WaitingRow:
    """Leave of somebody else's request that it is there, and no more than its place shows."""
    return msgspec.structs.replace(
        row, lease=LeaseId(""), user=SOMEONE, project=ProjectId(""), reason="", label="", wait_ms=None, usual_ms=None
    )


def _blank_running(row: console.RunningRow) -> console.RunningRow:
    return msgspec.structs.replace(
        row, lease=LeaseId(""), cell=None, user=SOMEONE, project=ProjectId(""), in_quota=None
    )
