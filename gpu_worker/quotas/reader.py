"""From the tree of a quota file to the scheduler's model, past every error that is in it."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bulletin.ids import ProjectId
from gpu_worker.quotas.findings import Findings
from gpu_worker.quotas.hours_words import CLASS_HOURS_WORDS, HOURS_NAME_LENGTH, Windows
from gpu_worker.quotas.tree import Entry, Leaf, Path, Table, show_node, show_path, show_text
from gpu_worker.quotas.values import PROJECT_NAME_LENGTH, QOS_NAME_LENGTH, Unfit, Word, name_problem
from gpu_worker.quotas.words import NEW_QOS, PROJECT_WORDS, QOS_WORDS, TABLES, read_word
from gpu_worker.scheduler.class_hours import ClassHours, show_clock
from gpu_worker.scheduler.projects import DEFAULT_QOS, Project, QoS


class Reading(msgspec.Struct):
    """What a file says, as far as it could be read, and where each key stands."""

    projects: tuple[Project, ...]
    qos: tuple[QoS, ...]
    lines: dict[Path, int]


def read_tree(tree: Table, findings: Findings) -> Reading:
    """Read all of it; what is wrong is noted and left at its default.

    Raises
    ------
    TooManyErrors
        When there is no use in going on.
    """
    reader = _Reader(findings)
    tables = reader.fields(tree, (), list(TABLES))
    projects = reader.projects(tables.get("projects"))
    qos = reader.qos(tables.get("qos"))
    return Reading(tuple(projects), tuple(qos), reader.lines)


class _Reader:
    """Reads tables, and remembers where each key was."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.lines: dict[Path, int] = {}

    def projects(self, entry: Entry | None) -> list[Project]:
        """The projects, in the order of the file."""
        found = []
        for one in self._entries(entry, ("projects",), PROJECT_NAME_LENGTH):
            values = self._values(one, ("projects", one.name), PROJECT_WORDS)
            found.append(Project(id=ProjectId(one.name), **values))
        return found

    def qos(self, entry: Entry | None) -> list[QoS]:
        """The classes of service that come with Bulletin, changed where the file says so, and then the new ones."""
        found = {one.name: one for one in DEFAULT_QOS}
        for one in self._entries(entry, ("qos",), QOS_NAME_LENGTH):
            path = ("qos", one.name)
            values = self._values(one, path, QOS_WORDS)
            if one.name not in found and (*path, "walltime") not in self.lines:
                near = difflib.get_close_matches(one.name.lower(), found, n=1)
                mend = f"Write one, or correct the name if you mean {near[0]}." if near else "Write one."
                sentence = f"{show_path(path)} is a new class of service without a walltime. {mend}"
                self._findings.error(one.line, path, sentence)
            model = found.get(one.name, NEW_QOS)
            found[one.name] = msgspec.structs.replace(model, name=one.name, **values)
        return list(found.values())

    def class_hours(self, entry: Entry, path: Path) -> tuple[ClassHours, ...]:
        """The class hours of a project, those that can be."""
        found = []
        for one in self._entries(entry, path, HOURS_NAME_LENGTH):
            key = (*path, one.name)
            values = self._values(one, key, CLASS_HOURS_WORDS)
            needed = [word for word in CLASS_HOURS_WORDS if word.is_needed]
            missing = [word.name for word in needed if (*key, word.name) not in self.lines]
            if missing:
                self._findings.error(one.line, key, f"{show_path(key)} does not say {', '.join(missing)}. Write it.")
            elif all(word.field in values for word in needed):
                hours = ClassHours(name=one.name, **values)
                problem = _impossible(hours)
                if problem:
                    until = (*key, "until")
                    self._findings.error(self.lines[until], until, f"{show_path(key)} {problem}")
                else:
                    found.append(hours)
        return tuple(found)

    def fields(self, table: Table, path: Path, known: Sequence[str]) -> dict[str, Entry]:
        """The entries of a table by name: each once, and only those that are known."""
        found: dict[str, Entry] = {}
        for entry in self._unique(table.entries, path):
            if entry.name in known:
                found[entry.name] = entry
            else:
                where = f"in {show_path(path)}" if path else "at the top of a quota file"
                self._findings.error(
                    entry.line,
                    (*path, entry.name),
                    f"{show_text(entry.name)} is not known {where}. {_nearest(entry.name, known)}",
                )
        return found

    def _entries(self, entry: Entry | None, path: Path, longest: int) -> Iterable[Entry]:
        """The entries of `projects` or `qos`, each with a name that can be one."""
        if entry is None:
            return
        for one in self._unique(self._table(entry, path).entries, path):
            problem = name_problem(one.name, longest)
            if problem:
                self._findings.error(
                    one.line,
                    (*path, one.name),
                    f"The name {show_text(one.name)} {problem}. Write 1 to {longest} characters that can be seen.",
                )
            else:
                yield one

    def _values(self, entry: Entry, path: Path, words: Sequence[Word]) -> dict[str, Any]:
        """What one project or class of service sets, by the field of the scheduler's model."""
        values: dict[str, Any] = {}
        entries = self.fields(self._table(entry, path), path, [word.name for word in words])
        for word in words:
            if word.name in entries:
                one = entries[word.name]
                if isinstance(word.kind, Windows):
                    values[word.field] = self.class_hours(one, (*path, word.name))
                    continue
                try:
                    values[word.field] = read_word(word, one.node)
                except Unfit as unfit:
                    key = (*path, one.name)
                    self._findings.error(one.line, key, f"{show_path(key)} is {show_node(one.node)}. {unfit}")
        return values

    def _table(self, entry: Entry, path: Path) -> Table:
        if isinstance(entry.node, Table):
            return entry.node
        if entry.node != Leaf(None):  # in YAML, a name whose settings are all commented out
            inside = "its settings" if len(path) > 1 else "names with their settings"
            self._findings.error(
                entry.line, path, f"{show_path(path)} is {show_node(entry.node)}. Write {inside} below it."
            )
        return Table()

    def _unique(self, entries: Iterable[Entry], path: Path) -> Iterable[Entry]:
        seen: dict[str, int] = {}
        for entry in entries:
            key = (*path, entry.name)
            if entry.name in seen:
                first = f", first in line {seen[entry.name]}" if seen[entry.name] != entry.line else ""
                self._findings.error(entry.line, key, f"{show_path(key)} is there twice{first}. Leave one out.")
                continue
            seen[entry.name] = self.lines[key] = entry.line
            yield entry


def _impossible(hours: ClassHours) -> str:
    """Why these hours never come, with the remedy; empty where they do."""
    if hours.until_minute <= hours.from_minute:
        end = show_clock(hours.until_minute)
        return f"ends at {end}, which is not after it begins. Write a later time; past midnight is another entry."
    if hours.is_over(0):
        return "never comes: none of its days is from first_day to last_day. Correct the days."
    return ""


def _nearest(name: str, known: Sequence[str]) -> str:
    folded = name.lower().replace("-", "_").replace(" ", "_")[:64]
    near = difflib.get_close_matches(folded, known, n=1)
    return f"Did you mean {near[0]}?" if near else f"Write one of {', '.join(known)}."


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """The line of a key; where the file does not have it, of the nearest table that it would be in."""
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), None)
