"""Quotas in a file: TOML or YAML into the scheduler's projects and classes of service, and what changed between two."""

import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bulletin.errors import BadConfig
from gpu_worker.quotas import from_toml, from_yaml
from gpu_worker.quotas.cross_checks import check_reading
from gpu_worker.quotas.findings import Finding, Findings, TooManyErrors, UnusableQuotas
from gpu_worker.quotas.quota_changes import QuotaChange, compare_quotas
from gpu_worker.quotas.reader import read_tree
from gpu_worker.quotas.tree import NotReadable
from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.group_rules import GroupRule, HubGroup, make_projects
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, NodePool, Project, QoS, SchedulerSettings
from gpu_worker.scheduler.policy.reserved_projects import with_reservations

__all__ = [
    "Finding",
    "QuotaChange",
    "Quotas",
    "UnusableQuotas",
    "difference",
    "parse_quotas",
    "read_content",
    "read_quotas",
]

#: A file of this size has thousands of projects.
LIMIT_BYTES = 1_000_000
#: Longer lines are not written by people, and take the parsers long.
LIMIT_LINE = 2000
_LANGUAGES = {".toml": from_toml.parse, ".yaml": from_yaml.parse, ".yml": from_yaml.parse}


#: What schedulers know only by what comes of it.
_NOT_TOLD = ("reservations", "group_rules")
#: What holds where a file does not say.
_DEFAULTS = SchedulerSettings()


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """What a quota file says. Without a file: no projects, and the classes of service that come with Bulletin."""

    projects: tuple[Project, ...] = ()
    qos: tuple[QoS, ...] = DEFAULT_QOS
    node_pools: tuple[NodePool, ...] = ()
    look_ahead: int = _DEFAULTS.look_ahead
    back_off_ms: int = _DEFAULTS.back_off_ms
    longest_back_off_ms: int = _DEFAULTS.longest_back_off_ms
    prices: tuple[Price, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    group_rules: tuple[GroupRule, ...] = ()

    @property
    def settings(self) -> SchedulerSettings:
        """What a scheduler is told of them where no group was seen: projects have their reservations."""
        return self.settings_for(())

    def without_over(self, now_ms: int) -> "Quotas":
        """Leave out what was reserved for users and is over: from then on a group of the hub may be called so."""
        left = tuple(one for one in self.reservations if not (one.users and one.is_over(now_ms)))
        return self if len(left) == len(self.reservations) else msgspec.structs.replace(self, reservations=left)

    def settings_for(self, groups: Iterable[HubGroup]) -> SchedulerSettings:
        """Join them with the projects that the rules make of groups; what the file names comes first."""
        told = {field: getattr(self, field) for field in self.__struct_fields__ if field not in _NOT_TOLD}
        named = with_reservations(self.projects, self.reservations)
        return SchedulerSettings(**told | {"projects": (*named, *make_projects(self.group_rules, named, groups))})


def read_quotas(
    path: str | Path, capacity_milli: int | None = None, now_ms: int | None = None
) -> tuple[Quotas, list[Finding]]:
    """Read a quota file, TOML or YAML by the end of its name.

    Parameters
    ----------
    path
        The file. Findings name it as it is given here.
    capacity_milli
        What the pool has, in thousandths of a GPU; None where nobody knows.
    now_ms
        The time, in milliseconds since 1970, UTC: reservations that are over are warnings. None is by this computer.

    Returns
    -------
    quotas, warnings
        Warnings are obeyed all the same: what cannot be kept, and what has no effect. In the order of the file.

    Raises
    ------
    BadConfig
        With every error, one a line, as "file:line: sentence".
    """
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    return parse_quotas(read_content(str(path)), str(path), capacity_milli, now_ms)


def parse_quotas(
    content: bytes, file: str, capacity_milli: int | None = None, now_ms: int = 0
) -> tuple[Quotas, list[Finding]]:
    """Read the content of a quota file; `file` is its name, and says by its end in which language it is.

    Everything else is as for `read_quotas`.
    """
    findings = Findings(file)
    try:
        parse = _LANGUAGES.get(Path(file).suffix.lower())
        if parse is None:
            raise NotReadable(None, f"The end of its name must say what it is: {', '.join(_LANGUAGES)}. Rename it.")
        reading = read_tree(parse(_decode(content)), findings)
        check_reading(reading, findings, capacity_milli, now_ms)
    except NotReadable as problem:
        findings.add_error(problem.line, (), problem.sentence)
    except TooManyErrors:
        pass  # the text says so
    if findings.errors:
        raise UnusableQuotas.of(findings)
    quotas = Quotas(
        projects=reading.projects,
        qos=reading.qos,
        node_pools=reading.node_pools,
        prices=reading.prices,
        reservations=reading.reservations,
        group_rules=reading.group_rules,
        **reading.scheduler,
    )
    return quotas, findings.warnings


def difference(before: Quotas, after: Quotas) -> list[QuotaChange]:
    """Compare two sets of quotas, each setting once: nothing where both mean the same, in whatever order they stand.

    `str()` of a change is a sentence for the log.
    """
    return list(compare_quotas(before, after))


def read_content(path: str) -> bytes:
    """Read a regular file, no more of it than a quota file may have. Raises BadConfig."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would wait for its writer
        with os.fdopen(handle, "rb") as file:
            mode = os.fstat(handle).st_mode
            if stat.S_ISREG(mode):
                return file.read(LIMIT_BYTES + 1)
    except IsADirectoryError:
        raise BadConfig(f"{path}: This is a folder. Name a file.") from None
    except FileNotFoundError:
        raise BadConfig(f"{path}: There is no such file. Correct the name, or write the file.") from None
    except PermissionError:
        raise BadConfig(f"{path}: It may not be read by the user of this process. Change its permissions.") from None
    except OSError as error:
        raise BadConfig(f"{path}: It cannot be read: {error.strerror or error}.") from None
    except ValueError:  # a zero byte in the name
        raise BadConfig(f"{path!r}: This cannot be the name of a file.") from None
    raise BadConfig(f"{path}: This is not a file. Name a file.")


def _decode(content: bytes) -> str:
    """Decode the text, without the mark that some editors put at its beginning. Raises NotReadable."""
    if len(content) > LIMIT_BYTES:
        raise NotReadable(None, f"It is larger than {LIMIT_BYTES} bytes. A quota file is smaller.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotReadable(
            line, f"The byte 0x{content[error.start]:02X} is not UTF-8. Save the file as UTF-8."
        ) from None
    for number, line_text in enumerate(text.split("\n"), 1):
        if len(line_text) > LIMIT_LINE:
            raise NotReadable(number, f"This line is longer than {LIMIT_LINE} characters. Write shorter ones.")
    return text
