"""The hub's pages: what they ask of the broker, whether they may, and the answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Literal

from bulletin.codes import RefusalCode
from bulletin.errors import LedgerAway
from bulletin.ids import AgentId, ProjectId
from bulletin.kept_time import LABEL, is_kept
from bulletin.units import DAY_MS
from bulletin.wire import console, messages as wire, page_requests as page
from bulletin.wire.messages.engine_broker import Demand
from bulletin.wire.messages.own_cells import OwnReport
from gpu_worker.broker import pool_report, project_use, reports, usage_table
from gpu_worker.broker.agents import Agents
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.use_under_way import LabelledCell, add_under_way, drop_ended

Answer = Callable[[Person, console.FromConsole], Awaitable[console.Report | Demand | OwnReport | wire.Refusal]]
_NOT_THE_PAGE = "Only the hub's own page asks so. People ask as themselves: bulletin queue, bulletin projects."
_SUMS_ALREADY = (
    "The pool is summing up who used how much already, for you or another admin, and does one such sum at a time: in a "
    "large ledger it takes minutes. Ask again then, or for fewer days; `bulletin usage --csv` does not wait for it."
)


class PageAnswers:
    """Answers the pool's own service. Nobody else may speak in others' names, or see all at once."""

    def __init__(
        self,
        shell: SchedulerShell,
        agents: Agents,
        ledger: Ledger,
        now_ms: Callable[[], int],
        answer: Answer,
        why_drained: Callable[[AgentId], str],
        started_ms: int,
        *,
        serves_hub: bool,
    ) -> None:
        """Take `answer`, which decides what a person may, and what says why a node is drained."""
        self._shell, self._agents, self._ledger, self._answer_person = shell, agents, ledger, answer
        self._now_ms, self._started_ms, self._serves_hub = now_ms, started_ms, serves_hub
        self._why_drained = why_drained
        self._summing: asyncio.Future[page.UsageTable] | None = None

    async def answer(
        self, person: Person, asked: page.FromPage
    ) -> page.PageReport | console.Report | Demand | OwnReport | wire.Refusal:
        """Return the report that was asked for, or a refusal with its sentence."""
        if not person.is_page or isinstance(asked, page.FindFor):  # the page's own is asked of the nodes (`Joins`)
            return wire.Refusal(code=RefusalCode.NOT_ALLOWED, sentence=_NOT_THE_PAGE)
        try:
            match asked:
                case page.AskPool():
                    return await self._pool(person)
                case page.OnBehalf():
                    return await self._answer_person(_person(asked.reader), asked.question)
                case page.AskPast():
                    return await asyncio.to_thread(self._past, asked)
                case page.AskUsage():
                    return await self._usage(asked)
                case page.AskUse():
                    now_ms, (inside, guaranteed_milli) = self._now_ms(), self._inside(asked.project)
                    running = self._list_running(set(inside), now_ms)
                    return await asyncio.to_thread(self._use, asked, inside, guaranteed_milli, running, now_ms)
        except LedgerAway as error:
            return wire.Refusal(code=RefusalCode.LEDGER_AWAY, sentence=str(error))

    async def _usage(self, asked: page.AskUsage) -> page.UsageTable | wire.Refusal:
        """Sum up in a thread, of which there are few, and the ledger is written in one: no second one goes on by it."""
        if self._summing is not None and not self._summing.done():
            return wire.Refusal(code=RefusalCode.TOO_FAST, sentence=_SUMS_ALREADY)
        parents = {one.project.id: one.project.parent for one in reports.tree(self._shell.scheduler.state)}
        summing = asyncio.to_thread(usage_table.write_table, self._ledger, asked, parents)
        self._summing = asyncio.ensure_future(summing)
        self._summing.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to hear
        return await asyncio.shield(self._summing)  # who asked may be gone before its thread has ended

    async def _pool(self, person: Person) -> page.PoolReport:
        boosts = await self._answer_person(person, console.AskBoosts())
        return pool_report.draw_pool(
            self._shell,
            self._agents,
            self._now_ms(),
            self._why_drained,
            started_ms=self._started_ms,
            serves_hub=self._serves_hub,
            boosts=boosts.boosts if isinstance(boosts, console.BoostReport) else (),
        )

    def _inside(self, project: ProjectId) -> tuple[tuple[ProjectId, ...], int]:
        """Return a project with all that is in it, and what it is guaranteed now."""
        account = self._shell.scheduler.state.accounts.by_id.get(project)
        if account is None:
            return (project,), 0

        def walk() -> Iterator[ProjectId]:
            waiting = [account]
            while waiting:
                at = waiting.pop()
                yield at.project.id
                waiting += at.children.values()

        return tuple(walk()), account.guaranteed

    def _past(self, asked: page.AskPast) -> page.PastCells:
        """Read the ledger; blocks while it reads."""
        return page.PastCells(
            cells=tuple(map(reports.ended, self._ledger.rows_of_user(asked.user, asked.limit))),
            slot_word=self._agents.slot_word,
            week_wait_ms=self._ledger.median_wait_ms(asked.user, self._now_ms() - 7 * DAY_MS),
        )

    def _list_running(self, inside: set[ProjectId], now_ms: int) -> list[LabelledCell]:
        """List the cells that run in these projects, on what the pool has."""
        kind, leases = self._kind, self._shell.active_leases
        return [
            LabelledCell(held, LABEL if is_kept(held.cell) else leases[lease].label if lease in leases else "")
            for lease, held in self._shell.metering.under_way(now_ms)
            if held.holder.project in inside and held.holder.kind == kind
        ]

    @property
    def _kind(self) -> Literal["gpu", "cpu"]:
        return "gpu" if self._agents.slot_word == "GPU" else "cpu"

    def _use(
        self,
        asked: page.AskUse,
        inside: tuple[ProjectId, ...],
        guaranteed_milli: int,
        running: list[LabelledCell],
        now_ms: int,
    ) -> page.UseReport:
        """Read the ledger; blocks while it reads."""
        parts, kind = project_use.stretches(asked.stretch, asked.count, now_ms), self._kind
        with self._ledger.database.reading() as connection:
            found = project_use.read_use(
                connection, asked.project, inside, parts, kind=kind, guaranteed_milli=guaranteed_milli
            )
            lenders = project_use.read_lenders(connection, parts[0][0])
            ends = project_use.read_ends(connection, [one.held.cell for one in running])
        report = page.UseReport(
            project=asked.project,
            stretch=asked.stretch,
            parts=found[0],
            users=found[1],
            labels=found[2],
            lenders=lenders,
            slot_word=self._agents.slot_word,
        )
        return add_under_way(report, drop_ended(running, ends))


def _person(reader: page.PageReader) -> Person:
    """Make the person in whose name the page asks, as the hub has said it to the page."""
    return Person(
        user=reader.user,
        groups=tuple(sorted(reader.groups)),
        is_admin=reader.is_admin,
        leads=tuple(map(ProjectId, reader.leads)),
        may_be_named_lead=reader.may_be_named_lead,
        place=" on the hub's page",
    )
