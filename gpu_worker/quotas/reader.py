"""From the tree of a quota file to the scheduler's model, past every error that is in it."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bulletin.ids import ProjectId
from gpu_worker.quotas.class_hours_settings import CLASS_HOURS_SETTINGS, HOURS_NAME_LENGTH, ClassHoursTable, LocalTime
from gpu_worker.quotas.findings import Findings
from gpu_worker.quotas.group_rule_settings import (
    GROUP_RULE_SETTINGS,
    MOST_RULES,
    NEVER_BY_RULE,
    RULE_NAME_LENGTH,
)
from gpu_worker.quotas.node_pool_settings import NODE_POOL_SETTINGS, POOL_NAME_LENGTH, PoolGuaranteesTable
from gpu_worker.quotas.quota_settings import (
    MOST_PRICES,
    NEW_QOS,
    PRICE_NAME_LENGTH,
    PRICE_SETTINGS,
    PROJECT_SETTINGS,
    QOS_SETTINGS,
    SCHEDULER_SETTINGS,
    TABLES,
    read_setting,
)
from gpu_worker.quotas.reservation_settings import (
    MOST_RESERVATIONS,
    RESERVATION_NAME_LENGTH,
    RESERVATION_SETTINGS,
)
from gpu_worker.quotas.tree import KeyPath, TreeEntry, TreeLeaf, TreeTable, show_node, show_path, show_text
from gpu_worker.quotas.value_kinds import (
    PROJECT_NAME_LENGTH,
    QOS_NAME_LENGTH,
    GpuAmount,
    QuotaSetting,
    UnfitValue,
    name_problem,
)
from gpu_worker.scheduler.leases.resources import words_of
from gpu_worker.scheduler.policy.class_hours import ClassHours, show_clock
from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.group_rules import GroupRule
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, NodePool, Project, QoS


class Reading(msgspec.Struct):
    """What a file says, as far as it could be read, and where each key stands."""

    projects: tuple[Project, ...]
    group_rules: tuple[GroupRule, ...]
    qos: tuple[QoS, ...]
    node_pools: tuple[NodePool, ...]
    scheduler: dict[str, Any]  #: what is set of the scheduler itself, by the field of its settings
    prices: tuple[Price, ...]
    reservations: tuple[Reservation, ...]
    lines: dict[KeyPath, int]


def read_tree(tree: TreeTable, findings: Findings) -> Reading:
    """Read a whole file; what is wrong is noted in `findings` and left at its default.

    Raises
    ------
    TooManyErrors
        When there is no use in going on.
    """
    reader = _Reader(findings)
    tables = reader.read_fields(tree, (), TABLES)
    projects = reader.read_projects(tables.get("projects"))
    group_rules = reader.read_group_rules(tables.get("group_rules"))
    qos = reader.read_qos(tables.get("qos"))
    node_pools = reader.read_node_pools(tables.get("node_pools"))
    scheduler = reader.read_scheduler(tables.get("scheduler"))
    prices = reader.read_prices(tables.get("prices"))
    reservations = reader.read_reservations(tables.get("reservations"))
    return Reading(
        tuple(projects),
        tuple(group_rules),
        tuple(qos),
        tuple(node_pools),
        scheduler,
        tuple(prices),
        tuple(reservations),
        reader.lines,
    )


class _Reader:
    """Reads tables into the model; notes errors, and in `lines` where each key was."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.lines: dict[KeyPath, int] = {}

    def read_projects(self, entry: TreeEntry | None) -> list[Project]:
        """Read the projects, in the order of the file."""
        found = []
        for one in self._read_entries(entry, ("projects",), PROJECT_NAME_LENGTH):
            values = self._read_values(one, ("projects", one.name), PROJECT_SETTINGS)
            found.append(Project(id=ProjectId(one.name), **values))
        return found

    def read_group_rules(self, entry: TreeEntry | None) -> list[GroupRule]:
        """Read the rules for groups, in the order of the file, which decides between those that fit the same group.

        What no rule gives is an error, and left out.
        """
        found: list[GroupRule] = []
        for one in self._read_entries(entry, ("group_rules",), RULE_NAME_LENGTH):
            path = ("group_rules", one.name)
            if len(found) == MOST_RULES:
                sentence = f"There are more than {MOST_RULES} rules for groups. Write fewer."
                self._findings.add_error(one.line, path, sentence)
                break
            kept = []
            for inside in self._read_table(one, path).entries:
                why = NEVER_BY_RULE.get(inside.name)
                if why is None:
                    kept.append(inside)
                else:
                    key = (*path, inside.name)
                    self.lines.setdefault(key, inside.line)
                    self._findings.add_error(inside.line, key, f"No rule gives {inside.name}. {why}.")
            entry_kept = TreeEntry(one.name, one.line, TreeTable(tuple(kept)))
            values = self._read_values(entry_kept, path, GROUP_RULE_SETTINGS)
            if not any((*path, name) in self.lines for name in ("groups", "properties")):
                sentence = f'{show_path(path)} does not say for which groups it is. Write groups, as in ["course-*"].'
                self._findings.add_error(one.line, path, sentence)
            found.append(GroupRule(id=ProjectId(one.name), **values))
        return found

    def read_qos(self, entry: TreeEntry | None) -> list[QoS]:
        """Read the classes of service: those that come with Bulletin, changed where the file says so, then new ones."""
        found = {one.name: one for one in DEFAULT_QOS}
        for one in self._read_entries(entry, ("qos",), QOS_NAME_LENGTH):
            path = ("qos", one.name)
            values = self._read_values(one, path, QOS_SETTINGS)
            if one.name not in found and (*path, "walltime") not in self.lines:
                near = difflib.get_close_matches(one.name.lower(), found, n=1)
                mend = f"Write one, or correct the name if you mean {near[0]}." if near else "Write one."
                sentence = f"{show_path(path)} is a new class of service without a walltime. {mend}"
                self._findings.add_error(one.line, path, sentence)
            model = found.get(one.name, NEW_QOS)
            found[one.name] = msgspec.structs.replace(model, name=one.name, **values)
        return list(found.values())

    def read_node_pools(self, entry: TreeEntry | None) -> list[NodePool]:
        """Read the node pools, in the order of the file; one that could have no slot is an error, and left out."""
        found = []
        for one in self._read_entries(entry, ("node_pools",), POOL_NAME_LENGTH):
            path = ("node_pools", one.name)
            values = self._read_values(one, path, NODE_POOL_SETTINGS)
            if values:
                found.append(NodePool(name=one.name, **values))
            elif not any((*path, setting.name) in self.lines for setting in NODE_POOL_SETTINGS):
                sentence = f"{show_path(path)} does not say what is in it. Write gpu or nodes."
                self._findings.add_error(one.line, path, sentence)
        return found

    def read_pool_guarantees(self, entry: TreeEntry, path: KeyPath) -> tuple[tuple[str, int], ...]:
        """Read what a project is guaranteed in node pools; whether there are these is checked of the whole file."""
        found = []
        for one in self._read_entries(entry, path, POOL_NAME_LENGTH):
            key = (*path, one.name)
            try:
                value = one.node.value if isinstance(one.node, TreeLeaf) else None
                found.append((one.name, GpuAmount().read(value) or 0))
            except UnfitValue as unfit:
                self._findings.add_error(one.line, key, f"{show_path(key)} is {show_node(one.node)}. {unfit}")
        return tuple(found)

    def read_scheduler(self, entry: TreeEntry | None) -> dict[str, Any]:
        """Read what is set of the scheduler itself, by the field of its settings."""
        return {} if entry is None else self._read_values(entry, ("scheduler",), SCHEDULER_SETTINGS)

    def read_prices(self, entry: TreeEntry | None) -> list[Price]:
        """Read the prices, in the order of the file, which decides between those that fit the same GPU."""
        [setting] = PRICE_SETTINGS
        found: list[Price] = []
        for one in self._read_entries(entry, ("prices",), PRICE_NAME_LENGTH):
            key = ("prices", one.name)
            if not words_of(one.name):
                sentence = f"{show_path(key)} has no word of a GPU's name. Write one, as in H100 = 4.0."
                self._findings.add_error(one.line, key, sentence)
                continue
            if len(found) == MOST_PRICES:
                self._findings.add_error(one.line, key, f"There are more than {MOST_PRICES} prices. Write fewer.")
                break
            try:
                found.append(Price(one.name, read_setting(setting, one.node)))
            except UnfitValue as unfit:
                self._findings.add_error(one.line, key, f"{show_path(key)} is {show_node(one.node)}. {unfit}")
        return found

    def read_reservations(self, entry: TreeEntry | None) -> list[Reservation]:
        """Read the reservations; those that can never be on are errors, and left out."""
        found: list[Reservation] = []
        for one in self._read_entries(entry, ("reservations",), RESERVATION_NAME_LENGTH):
            key = ("reservations", one.name)
            if len(found) == MOST_RESERVATIONS:
                sentence = f"There are more than {MOST_RESERVATIONS} reservations. Leave out those that are over."
                self._findings.add_error(one.line, key, sentence)
                break
            values = self._read_needed(one, key, RESERVATION_SETTINGS)
            if values is None:
                continue
            reservation = Reservation(name=one.name, **values)
            if reservation.end_ms <= reservation.begin_ms:
                sentence = f"{show_path(key)} {_empty(reservation)}"
                self._findings.add_error(self.lines[*key, "until"], (*key, "until"), sentence)
            elif not reservation.guaranteed_milli:
                sentence = f"{show_path(key)} reserves nothing. Write how many GPUs, or leave it out."
                self._findings.add_error(self.lines[*key, "gpus"], (*key, "gpus"), sentence)
            else:
                found.append(reservation)
        return found

    def read_class_hours(self, entry: TreeEntry, path: KeyPath) -> tuple[ClassHours, ...]:
        """Read the class hours of a project; those that can never be on are errors, and left out."""
        found = []
        for one in self._read_entries(entry, path, HOURS_NAME_LENGTH):
            key = (*path, one.name)
            values = self._read_needed(one, key, CLASS_HOURS_SETTINGS)
            if values is not None:
                hours = ClassHours(name=one.name, **values)
                problem = _impossible(hours)
                if problem:
                    until = (*key, "until")
                    self._findings.add_error(self.lines[until], until, f"{show_path(key)} {problem}")
                else:
                    found.append(hours)
        return tuple(found)

    def read_fields(self, table: TreeTable, path: KeyPath, known: Sequence[str]) -> dict[str, TreeEntry]:
        """Return the entries of a table by name; those that are unknown or there twice are errors, and left out."""
        found: dict[str, TreeEntry] = {}
        for entry in self._read_unique(table.entries, path):
            if entry.name in known:
                found[entry.name] = entry
            else:
                where = f"in {show_path(path)}" if path else "at the top of a quota file"
                self._findings.add_error(
                    entry.line,
                    (*path, entry.name),
                    f"{show_text(entry.name)} is not known {where}. {_nearest(entry.name, known)}",
                )
        return found

    def _read_entries(self, entry: TreeEntry | None, path: KeyPath, longest: int) -> Iterable[TreeEntry]:
        """Yield the entries of a table of names (`projects`, `qos`); a name that cannot be one is an error."""
        if entry is None:
            return
        for one in self._read_unique(self._read_table(entry, path).entries, path):
            problem = name_problem(one.name, longest)
            if problem:
                self._findings.add_error(
                    one.line,
                    (*path, one.name),
                    f"The name {show_text(one.name)} {problem}. Write 1 to {longest} characters that can be seen.",
                )
            else:
                yield one

    def _read_needed(self, entry: TreeEntry, path: KeyPath, settings: Sequence[QuotaSetting]) -> dict[str, Any] | None:
        """Read settings as `_read_values` does; None where one that must be written is not there, or is wrong."""
        values = self._read_values(entry, path, settings)
        needed = [setting for setting in settings if setting.is_needed]
        missing = [setting.name for setting in needed if (*path, setting.name) not in self.lines]
        if missing:
            self._findings.add_error(
                entry.line, path, f"{show_path(path)} does not say {', '.join(missing)}. Write it."
            )
        return values if all(setting.field in values for setting in needed) else None

    def _read_values(self, entry: TreeEntry, path: KeyPath, settings: Sequence[QuotaSetting]) -> dict[str, Any]:
        """Read what one project or class of service sets, by the field of the scheduler's model."""
        values: dict[str, Any] = {}
        entries = self.read_fields(self._read_table(entry, path), path, [setting.name for setting in settings])
        for setting in settings:
            if setting.name in entries:
                one = entries[setting.name]
                if isinstance(setting.kind, ClassHoursTable):
                    values[setting.field] = self.read_class_hours(one, (*path, setting.name))
                    continue
                if isinstance(setting.kind, PoolGuaranteesTable):
                    values[setting.field] = self.read_pool_guarantees(one, (*path, setting.name))
                    continue
                try:
                    values[setting.field] = read_setting(setting, one.node)
                except UnfitValue as unfit:
                    key = (*path, one.name)
                    self._findings.add_error(one.line, key, f"{show_path(key)} is {show_node(one.node)}. {unfit}")
        return values

    def _read_table(self, entry: TreeEntry, path: KeyPath) -> TreeTable:
        """Return the table behind a name; anything else is an error, and an empty table."""
        if isinstance(entry.node, TreeTable):
            return entry.node
        if entry.node != TreeLeaf(None):  # in YAML, a name whose settings are all commented out
            inside = "its settings" if len(path) > 1 or path == ("scheduler",) else "names with their settings"
            inside = "names with a number each" if path == ("prices",) else inside
            self._findings.add_error(
                entry.line, path, f"{show_path(path)} is {show_node(entry.node)}. Write {inside} below it."
            )
        return TreeTable()

    def _read_unique(self, entries: Iterable[TreeEntry], path: KeyPath) -> Iterable[TreeEntry]:
        """Yield each name once, and note its line; a second one is an error."""
        seen: dict[str, int] = {}
        for entry in entries:
            key = (*path, entry.name)
            if entry.name in seen:
                first = f", first in line {seen[entry.name]}" if seen[entry.name] != entry.line else ""
                self._findings.add_error(entry.line, key, f"{show_path(key)} is there twice{first}. Leave one out.")
                continue
            seen[entry.name] = self.lines[key] = entry.line
            yield entry


def _empty(reservation: Reservation) -> str:
    """Say why a reservation has no time between its beginning and its end, with the remedy."""
    end, zone = LocalTime().show(reservation.until_minute), reservation.zone.name
    if reservation.until_minute > reservation.from_minute:
        return f"is in an hour that the clocks of {zone} skip on that day, until {end}. Write a later time."
    return f"ends at {end}, which is not after it begins. Write a later time."


def _impossible(hours: ClassHours) -> str:
    """Say why these hours never come, with the remedy; empty where they do."""
    if hours.until_minute <= hours.from_minute:
        end = show_clock(hours.until_minute)
        return f"ends at {end}, which is not after it begins. Write a later time; past midnight is another entry."
    if hours.is_over(0):
        return "never comes: none of its days is from first_day to last_day. Correct the days."
    return ""


def _nearest(name: str, known: Sequence[str]) -> str:
    """Say what may have been meant by an unknown name, as a sentence."""
    folded = name.lower().replace("-", "_").replace(" ", "_")[:64]
    near = difflib.get_close_matches(folded, known, n=1)
    return f"Did you mean {near[0]}?" if near else f"Write one of {', '.join(known)}."


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of a key; where the file does not have it, of the nearest table that it would be in."""
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), None)
