"""Brings what stands in the quota file into force: at the start, whenever it changes, and at once where it must be."""

import asyncio
from collections.abc import Callable

import structlog

from bulletin.errors import BadConfig, LedgerAway
from bulletin.ids import UserName
from gpu_worker.broker import recall, reserved_names
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.policy import NewPolicy, Policy, records
from gpu_worker.broker.quota_versions import KeptVersion, QuotaVersions
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.writer import Writer
from gpu_worker.scheduler import events
from gpu_worker.scheduler.policy.group_rules import HubGroup
from gpu_worker.scheduler.policy.projects import SchedulerSettings

_EVERY_S = 1.0
#: What is said of a version that somebody wrote into the file.
_BY_HAND = "written into the file by hand"


class PolicyFollower:
    """Tells log, ledger and scheduler of new quotas, and keeps each text of the file with who wrote it."""

    def __init__(self, policy: Policy, ledger: Ledger, writer: Writer, number: int, now_ms: Callable[[], int]) -> None:
        """Take how often the quotas had changed before (`number`), and read the file.

        Raises
        ------
        BadConfig
            If it cannot be used: a broker does not begin with half of its quotas.
        """
        self.policy, self.versions = policy, QuotaVersions(ledger.database)
        self._ledger = ledger
        self.problem = ""  #: why what stands in the file is not in force
        self._writer, self._number, self._now_ms = writer, number, now_ms
        self._loading = asyncio.Lock()
        self._log = structlog.get_logger("broker")
        policy.end_reservations(now_ms())
        self._note(*self._read(policy.groups.groups, None))

    @property
    def settings(self) -> SchedulerSettings:
        """What is in force."""
        return self.policy.settings

    async def run(self, shell: SchedulerShell) -> None:
        """Take in what an admin has written into the quota file, and what is over. One with errors changes nothing."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.load(shell)
            await self.end_reservations(shell)

    async def end_reservations(self, shell: SchedulerShell) -> None:
        """Have the scheduler forget what was reserved for users until now."""
        if self.policy.end_reservations(self._now_ms()):
            await self.obey(shell)

    async def load(self, shell: SchedulerShell) -> None:
        """Bring into force what stands in the file now; errors are logged, and `problem` says them."""
        async with self._loading:
            try:
                new, who = await asyncio.to_thread(self._read, self.policy.groups.groups, shell.capacity_milli)
            except BadConfig as error:
                self.problem = str(error)
                self._log.error("the quota file has errors; the quotas stay as they were", errors=str(error))
                return
            self.problem = ""
            self._note(new, who)
            if new is not None:
                await self._bring_into_force(shell, self.settings)  # with the groups that have come meanwhile
                await shell.tell_queue()

    async def obey(self, shell: SchedulerShell) -> None:
        """Tell the scheduler what is in force, now that other groups are known."""
        async with self._loading:
            settings = self.settings
            if settings != shell.scheduler.settings:
                await self._bring_into_force(shell, settings)

    async def _bring_into_force(self, shell: SchedulerShell, settings: SchedulerSettings) -> None:
        spent = await asyncio.to_thread(self._spent, shell.scheduler.settings, settings)
        await shell.step(events.SettingsChanged(settings))
        if spent is not None:
            await shell.step(spent)
        await reserved_names.refuse_namesakes(shell)

    def _spent(self, before: SchedulerSettings, after: SchedulerSettings) -> events.UseRecalled | None:
        try:
            return recall.of_new_budgets(self._ledger, before, after, self._now_ms())
        except LedgerAway as error:
            self._log.warning("budgets that are new count from now on: the ledger is away", problem=str(error))
            return None

    def _read(self, groups: list[HubGroup], capacity_milli: int | None) -> tuple[NewPolicy | None, UserName]:
        """Read the file, and keep its text where it is none of those before. Raises BadConfig."""
        new = self.policy.load(groups, capacity_milli)
        who, text = UserName(self.policy.owner), self.policy.take_text()
        if text is None:
            return new, who
        try:
            last = next(iter(self.versions.log(1)), None)
            if last is not None and last.version == text.version:
                return new, last.who  # who changed it by us is noted there
            changes = tuple(map(str, new.changes)) if new is not None and last is not None else ()
            kept = KeptVersion(version=text.version, at_ms=self._now_ms(), who=who, why=_BY_HAND, changes=changes)
            self.versions.keep(kept, text.content)
        except LedgerAway as error:
            self._log.warning("the ledger lacks a version of the quota file", problem=str(error))
        return new, who

    def _note(self, new: NewPolicy | None, who: UserName) -> None:
        """Write quotas that changed to the log and the ledger."""
        if new is None:
            return
        for change in new.changes:
            self._log.info("quotas changed", change=str(change), by=who)
        self._number += 1
        self._writer.keep(records(new, who, self._number, self._now_ms()))
