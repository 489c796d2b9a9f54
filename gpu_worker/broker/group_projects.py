"""Groups that nobody named become projects when they first pay for something, as the rules of the quota file say."""

import asyncio
import time
from collections.abc import Callable

import msgspec
import structlog

from bulletin.errors import NotAllowed
from bulletin.hub_scopes import READ_GROUPS_SCOPE
from bulletin.ids import ProjectId, UserName
from gpu_worker.broker.hub_answers import HubForbids, HubSilent
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.broker.policy_follower import PolicyFollower
from gpu_worker.broker.records import ConfigChange, LedgerEvent
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.seen_groups import SEEN, SeenGroup, TooManyGroups, name_event
from gpu_worker.broker.writer import Writer
from gpu_worker.quotas.group_rule_settings import describe_terms
from gpu_worker.scheduler.policy.group_rules import GroupRule, HubGroup, find_rule
from gpu_worker.scheduler.policy.projects import DEFAULT_PROJECT

#: How long what the hub says of a group is believed.
_BELIEVE_MS = 60_000
_LOOK_EVERY_S, _FORGET_EVERY_S = 5.0, 3600.0
#: How long a group's first cell waits at most until the ledger has the group. A ledger that is away stops no cell.
_WRITE_S = 2.0


class _Told(msgspec.Struct, frozen=True):
    """What the hub said of a group: when, which properties rules asked for then, and what it has of these."""

    at_ms: int
    wanted: frozenset[str]
    properties: tuple[tuple[str, str], ...]


class GroupProjects:
    """Tells the scheduler of groups that are new, and the ledger, so that later brokers know them too.

    A group counts by the hub's word about a person alone; the pool's own user names projects as they like, and no rule
    is for these.
    """

    def __init__(
        self,
        follower: PolicyFollower,
        shell: SchedulerShell,
        identity: Identity,
        writer: Writer,
        now_ms: Callable[[], int],
    ) -> None:
        self._follower, self._shell, self._identity, self._writer = follower, shell, identity, writer
        self._now_ms, self._groups = now_ms, follower.policy.groups
        self._settling = asyncio.Lock()
        #: Groups of which something is new that is not in force yet, with what is.
        self._unsettled: dict[str, SeenGroup] = {}
        self._unwritten: dict[str, asyncio.Event] = {}  #: groups that the ledger does not have yet; set when it has
        self._told: dict[str, _Told] = {}
        self._all_told: frozenset[str] = frozenset()  #: of these properties the hub was asked for all groups in use
        self._is_forbidden = False  #: the hub did not let the pool see the last group
        self._log = structlog.get_logger("broker")

    async def run(self) -> None:
        """Ask again of groups when rules ask for something else, and forget those of long ago, until cancelled."""
        began_s = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            await self.ask_again()
            if time.monotonic() - began_s >= _FORGET_EVERY_S:
                began_s = time.monotonic()
                await self.forget()

    def must_ask(self, person: Person, project: ProjectId) -> bool:
        """Tell whether the hub is to be asked of a group before it pays: a rule asks for what it has."""
        wanted, told = self._wanted, self._told.get(project)
        is_believed = told is not None and told.wanted == wanted and self._now_ms() - told.at_ms < _BELIEVE_MS
        may_need = bool(wanted) and not is_believed and self._may_be_made(person, project)
        return may_need and project not in self._named  # what the file names has what the file says

    def takes_time(self, person: Person, project: ProjectId) -> bool:
        """Tell whether the hub, the quota file or the ledger may have to be waited for until a group may pay."""
        is_settled = self._groups.is_known(project) and project not in self._unsettled.keys() | self._unwritten.keys()
        return self._may_be_made(person, project) and (not is_settled or self.must_ask(person, project))

    async def learn(self, person: Person, project: ProjectId) -> NotAllowed | None:
        """Make a project of a group that pays for the first time; return why it may not pay, None where it may."""
        if not self._may_be_made(person, project):
            return None
        if self.must_ask(person, project):
            silent = await self._ask(project)
            if silent is not None:
                return silent
        return await self._note(person.user, project)

    async def wait_until_written(self, project: ProjectId) -> None:
        """Wait until a broker that came after this one would know of the group, before a cell of it runs."""
        written = self._unwritten.get(project)
        if written is None:
            return
        try:
            await asyncio.wait_for(written.wait(), _WRITE_S)
        except TimeoutError:
            self._unwritten.pop(project, None)  # the next cell need not wait as long again

    async def ask_again(self) -> None:
        """Ask the hub of groups in use whose rules ask for what it was not asked: until somebody comes is too late."""
        wanted = self._wanted
        if wanted == self._all_told:
            return
        in_use, is_silent = self._in_use, False
        known = {one.name for one in self._groups.groups} - self._named
        for name in sorted(in_use.keys() & known) if wanted else ():
            told = self._told.get(name)
            if told is not None and told.wanted == wanted:
                continue
            if await self._ask(name) is not None:
                is_silent = True
            else:
                await self._note(in_use[name], name)
        if not is_silent:
            self._all_told = wanted

    async def _note(self, user: UserName, project: ProjectId) -> NotAllowed | None:
        """Note a group with what is known of it, and bring its rule into force; return why it may not pay."""
        told = self._told.get(project) if self._wanted else None
        properties = None if told is None else told.properties  # what an earlier broker heard of it stays
        if self._groups.is_known(project, properties) and project not in self._unsettled:
            self._groups.note(project, user, self._now_ms())
            return None
        try:
            news = self._groups.note(project, user, self._now_ms(), properties, self._named)
        except TooManyGroups as error:
            self._told.pop(project, None)
            is_for_it = self._rule_for(HubGroup(project, properties or ())) is not None
            return NotAllowed(str(error)) if is_for_it else None
        if news is not None:
            self._keep(news, user)
            self._unsettled[project] = news
        async with self._settling:  # who asks for the same group meanwhile waits until its rule is in force
            if project in self._unsettled:
                together = dict(self._unsettled)  # of a class that comes at once, each group with all that came before
                await self._follower.obey(self._shell)  # also for rules that are only just being read
                for name, settled in together.items():
                    if self._unsettled.get(name) is settled:
                        del self._unsettled[name]
        return None

    async def _ask(self, project: ProjectId) -> HubSilent | None:
        """Ask the hub what a group has; return its silence where it never said all that rules ask for."""
        wanted = self._wanted
        try:
            found = await self._identity.ask_about_group(project, self._now_ms())
        except HubSilent as silent:
            if isinstance(silent, HubForbids) and not self._is_forbidden:
                self._log.warning("the hub does not show what groups have", lacks_scope=READ_GROUPS_SCOPE)
            self._is_forbidden = isinstance(silent, HubForbids)
            return None if self._is_known(project, wanted) else silent
        self._is_forbidden = False
        properties = tuple((name, value) for name, value in found if name in wanted)
        self._told[project] = _Told(self._now_ms(), wanted, properties)
        return None

    def _is_known(self, project: ProjectId, wanted: frozenset[str]) -> bool:
        """Whether it is known what a group has of these properties, from this broker or an earlier one."""
        told = self._told.get(project)
        if told is not None:
            return told.wanted == wanted
        kept = next((one for one in self._groups.groups if one.name == project), None)
        return kept is not None and wanted <= dict(kept.properties).keys()

    async def forget(self) -> None:
        """Forget groups that nothing was used of for long."""
        gone = self._groups.forget(self._in_use, self._now_ms())
        for one in gone:
            self._told.pop(one.name, None)
            self._keep(one, one.user)
        if gone:
            await self._follower.obey(self._shell)

    def _may_be_made(self, person: Person, project: ProjectId) -> bool:
        return project in person.groups and project != DEFAULT_PROJECT and not person.is_owner

    @property
    def _in_use(self) -> dict[ProjectId, UserName]:
        """The projects whose cells wait or run, each with one of these users."""
        state = self._shell.scheduler.state
        waiting = {one.home: one.user for one in state.pending.values()}
        return waiting | {one.home: one.user for one in state.leases.values()}

    @property
    def _wanted(self) -> frozenset[str]:
        """The names of the properties that rules ask for."""
        rules = self._follower.policy.quotas.group_rules
        asked = {name for rule in rules for name, _ in rule.properties}
        return frozenset(asked | {rule.parent_property for rule in rules if rule.parent_property})

    @property
    def _named(self) -> frozenset[str]:
        """The names of the projects that the file names."""
        return frozenset(one.id for one in self._follower.policy.quotas.projects)

    def _rule_for(self, group: HubGroup) -> GroupRule | None:
        return None if group.name in self._named else find_rule(self._follower.policy.quotas.group_rules, group)

    def _keep(self, one: SeenGroup, by: UserName) -> None:
        """Write to the log and the ledger what is new of a group."""
        rule = self._rule_for(HubGroup(one.name, one.properties))
        has = "what any group has" if rule is None else f"by the rule {rule.id!r} {describe_terms(rule) or 'no limits'}"
        self._log.info("hub group", group=one.name, by=by, has="forgotten" if one.is_forgotten else has)
        at_ms = self._now_ms()
        name = name_event(one.name, at_ms)
        event = LedgerEvent(id=name, kind=SEEN, payload=msgspec.to_builtins(one), at_ms=at_ms)
        change = ConfigChange(
            change=name,
            at_ms=at_ms,
            who=by,
            what=f"project {one.name}"[:256],
            field="",
            before=has if one.is_forgotten else None,
            after=None if one.is_forgotten else has,
        )
        written = self._unwritten[one.name] = asyncio.Event()

        async def note_written() -> None:
            written.set()
            if self._unwritten.get(one.name) is written:
                del self._unwritten[one.name]

        self._writer.keep([event, *([change] if rule is not None else [])], note_written)
