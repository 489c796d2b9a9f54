"""The quotas in force: those of the quota file, read again whenever it changes, and the pool's own settings."""

import pwd
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import structlog

from bulletin.errors import BadConfig
from bulletin.ids import ProjectId, UserName
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.records import ConfigChange, LedgerEvent, Record
from gpu_worker.broker.seen_groups import SeenGroups
from gpu_worker.config import PoolSettings
from gpu_worker.quotas import QuotaChange, Quotas, difference, parse_quotas
from gpu_worker.quotas.quota_file import QuotaText, read_text
from gpu_worker.scheduler.policy import projects
from gpu_worker.scheduler.policy.group_rules import HubGroup

#: Names of what the ledger keeps of quotas as a whole; a number follows.
IN_FORCE = "quotas-in-force-"


class NewPolicy(msgspec.Struct, frozen=True):
    """What is in the quota file, and what is other than before."""

    quotas: Quotas
    changes: tuple[QuotaChange, ...]


class Policy:
    """Reads the quota file of a pool. Without one, every group is a project with an equal share."""

    def __init__(self, settings: PoolSettings, before: Quotas | None = None, groups: SeenGroups | None = None) -> None:
        """Take the quotas that were in force before this broker (`before`): the first reading is compared with them.

        `groups` are those that rules are for; they grow while the broker runs.
        """
        self.groups = groups if groups is not None else SeenGroups()
        self._file, self._max_walltime_ms = settings.quota_file, settings.max_walltime_ms
        self._longest_cell_ms = settings.engine.longest_cell_ms(settings.leave_grace_ms)
        self._quotas = before if before is not None and self._file is not None else Quotas()
        self._now_ms = 0
        self._seen: tuple[int, ...] | None = None
        self._text: QuotaText | None = None
        self._log = structlog.get_logger("quotas")

    def load(self, groups: Iterable[HubGroup], capacity_milli: int | None = None) -> NewPolicy | None:
        """Read what has changed since the last time; None if nothing has. Blocks while it reads.

        `groups` are those that were known before: others come while it reads.

        Raises
        ------
        BadConfig
            If the file cannot be used, once for each state of it. What was in force before still is.
        """
        if self._file is None:
            return None
        seen = _look(self._file)
        if seen == self._seen:
            return None
        self._seen = seen
        text = read_text(self._file)
        quotas, warnings = parse_quotas(text.content, str(self._file), capacity_milli, time.time_ns() // 1_000_000)
        for warning in warnings:
            self._log.warning(str(warning))
        self._join(quotas, groups)  # where they do not go together, this is no text to keep
        changes = difference(self._quotas, quotas)
        self._text = text
        if not changes:
            return None
        self._quotas = quotas
        return NewPolicy(quotas, tuple(changes))

    def end_reservations(self, now_ms: int) -> bool:
        """Leave out what was reserved for users and is over by now; return whether some of it was in force before."""
        before, self._now_ms = self._now_ms, now_ms
        return any(one.users and before < one.end_ms <= now_ms for one in self._quotas.reservations)

    @property
    def file(self) -> Path | None:
        """The quota file, where the pool has one."""
        return self._file

    @property
    def quotas(self) -> Quotas:
        """What is in force, as the quota file says it."""
        return self._quotas

    @property
    def owner(self) -> str:
        """Whose the file was when it was last looked at."""
        return _owner(self._seen or ())

    def take_text(self) -> QuotaText | None:
        """Return, once, the text that came into force with the last reading."""
        text, self._text = self._text, None
        return text

    @property
    def settings(self) -> projects.SchedulerSettings:
        """What is in force. Raises BadConfig where the pool's settings name a QoS that there is not."""
        return self.settings_of(self._quotas)

    def settings_of(self, quotas: Quotas) -> projects.SchedulerSettings:
        """Join quotas with the pool's own settings. Raises BadConfig where these name a QoS that there is not."""
        return self._join(quotas, self.groups.groups)

    @property
    def outer(self) -> dict[ProjectId, ProjectId]:
        """What groups were in, or would be, that earlier brokers have forgotten."""
        known = {one.id for one in self.settings.projects}
        made = self._join(self._quotas, self.groups.forgotten).projects
        return {one.id: one.parent for one in made if one.parent is not None and one.id not in known}

    def _join(self, quotas: Quotas, groups: Iterable[HubGroup]) -> projects.SchedulerSettings:
        limits, known = self._max_walltime_ms, [qos.name for qos in quotas.qos]
        unknown = [name for name in limits if name not in known]
        if unknown:
            raise BadConfig(
                f"Pool.max_walltime names the QoS {unknown[0]!r}, which there is not. There are: {', '.join(known)}."
            )
        walltimes_ms = [limits.get(one.name, one.walltime_ms) for one in quotas.qos]
        if self._longest_cell_ms is not None:  # a longer one would wait for a node that never comes
            walltimes_ms = [min(walltime_ms, self._longest_cell_ms) for walltime_ms in walltimes_ms]
        qos = tuple(
            msgspec.structs.replace(one, walltime_ms=walltime_ms)
            for one, walltime_ms in zip(quotas.qos, walltimes_ms, strict=True)
        )
        return msgspec.structs.replace(quotas.without_over(self._now_ms).settings_for(groups), qos=qos)


def records(new: NewPolicy, by: UserName, number: int, at_ms: int) -> list[Record]:
    """Make the ledger's records of each change, and of the quotas that are in force with them.

    `number` counts the times that the quotas changed: the records are named by it.
    """
    changes: list[Record] = [
        ConfigChange(
            change=f"quotas-{number:09}-{index:06}",
            at_ms=at_ms,
            who=by,
            what=f"{change.what} {change.name}".strip()[:256],
            field=change.field,
            before=change.before,
            after=change.after,
        )
        for index, change in enumerate(new.changes)
    ]
    payload = msgspec.to_builtins(new.quotas)
    return [*changes, LedgerEvent(id=f"{IN_FORCE}{number:09}", kind="quotas-in-force", payload=payload, at_ms=at_ms)]


def in_force(ledger: Ledger) -> tuple[Quotas | None, int]:
    """Return the quotas that the ledger heard of last, and how often they had changed."""
    found = ledger.last_event(IN_FORCE)
    if found is None:
        return None, 0
    number = int(found.id.removeprefix(IN_FORCE))
    try:
        return msgspec.convert(found.payload, Quotas), number
    except msgspec.ValidationError:  # of another version: all that is set counts as new
        return None, number


def _look(file: Path) -> tuple[int, ...]:
    """Take the file's modification time, size, inode and owner: if none of them has changed, nor has the file.

    Empty where the file cannot be seen: reading it then says why.
    """
    try:
        found = file.stat()
    except OSError:  # reading it says why
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_uid


def _owner(seen: tuple[int, ...]) -> str:
    try:
        return pwd.getpwuid(seen[3]).pw_name
    except (KeyError, IndexError):
        return "unknown"
