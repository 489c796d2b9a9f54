"""Projects that the quota file does not name: what its rules make of the hub's groups.

What comes out depends on the rules, the named projects and the groups alone, and not on the order in which groups came.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from bulletin.ids import ProjectId
from gpu_worker.scheduler.policy.projects import DEFAULT_PROJECT, MOST_LEVELS, Project

#: What may stand in a group's name between that of what it is in and its own.
NEST_MARKS = ("/", ".", "-", "_", ":")
#: What a pattern has where any letters may stand, none too.
_ANY = "*"
#: Stands for any letters where two patterns are compared: no name that people type has it.
_SOME = "\uffff"
#: Of what a group is in by its name, so many levels from the top are projects where nobody named or saw them.
MOST_UNSEEN = 3


class HubGroup(msgspec.Struct, frozen=True):
    """A group, as the hub tells of it: its name, and those of its properties that are no lists or tables."""

    name: str
    properties: tuple[tuple[str, str], ...] = ()


class GroupRule(Project, frozen=True, kw_only=True):
    """What hub groups are that the file does not name: each is a project with these settings.

    `id` names the rule. It says no guarantee of any kind.
    """

    groups: tuple[str, ...] = ()  #: patterns of their names; empty is any name
    properties: tuple[tuple[str, str], ...] = ()  #: which of them they must have, all of these
    nest_by: str = ""  #: the mark behind the name of the project that a group is in; empty is none
    parent_property: str = ""  #: the property that names the project that a group is in; empty is none

    def fits(self, group: HubGroup) -> bool:
        """Whether it is for this group."""
        is_named = not self.groups or any(matches(pattern, group.name) for pattern in self.groups)
        return is_named and set(self.properties) <= set(group.properties)

    def covers(self, other: "GroupRule") -> bool:
        """Whether it is for every group that another rule is for."""
        if not set(self.properties) <= set(other.properties):
            return False
        names = [pattern.replace(_ANY, _SOME) for pattern in other.groups or (_ANY,)]
        return not self.groups or all(any(matches(pattern, name) for pattern in self.groups) for name in names)


def matches(pattern: str, name: str) -> bool:
    """Whether a name is as a pattern says: letter by letter, with any letters where it has a star."""
    first, *middle = pattern.split(_ANY)
    if not middle:
        return name == pattern
    last = middle.pop()
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def find_rule(rules: Sequence[GroupRule], group: HubGroup) -> GroupRule | None:
    """Find the rule that is for a group: the first one that fits."""
    return next((rule for rule in rules if rule.fits(group)), None)


def make_projects(
    rules: Sequence[GroupRule], named: Sequence[Project], groups: Iterable[HubGroup]
) -> tuple[Project, ...]:
    """Make the projects of groups that are not among the `named` ones, with those that they are in.

    A group that no rule is for has none, nor has the default project, whose users are in no group.
    """
    maker = _Maker(rules, named, groups)
    made: dict[ProjectId, Project] = {}
    for name in sorted(maker.groups):
        project = maker.make(name)
        while project is not None and project.rule and project.id not in made:
            made[project.id] = project
            project = maker.make(project.parent) if project.parent is not None else None
    return tuple(made[name] for name in sorted(made))


class _Maker:
    """Makes each project once; whatever one is in is named, or has a shorter name: there are no circles."""

    def __init__(self, rules: Sequence[GroupRule], named: Sequence[Project], groups: Iterable[HubGroup]) -> None:
        self._rules, self._named = rules, {one.id for one in named if not one.users}
        self.groups = {one.name: one for one in groups}
        self._found: dict[str, Project | None] = {one.id: one for one in named}

    def make(self, name: str) -> Project | None:
        """Make a project by its name, unless the file names it or it is made already; None where no rule is for it."""
        if name not in self._found:
            group = self.groups.get(name, HubGroup(name))
            rule = find_rule(self._rules, group) if name != DEFAULT_PROJECT else None
            self._found[name] = None if rule is None else self._project(rule, group)
        return self._found[name]

    def _project(self, rule: GroupRule, group: HubGroup) -> Project:
        settings = {field: getattr(rule, field) for field in Project.__struct_fields__}
        names = {"id": ProjectId(group.name), "parent": self._parent(rule, group), "rule": rule.id}
        return Project(**settings | names)

    def _parent(self, rule: GroupRule, group: HubGroup) -> ProjectId | None:
        """Find what a group is in: what its property names, what its own name begins with, or what the rule says.

        The first two count inside what the rule says alone, which bounds all of its groups. What is reserved for users
        has a project of its own, which no group is in, whatever it is called.
        """
        told = ProjectId(dict(group.properties).get(rule.parent_property, ""))
        if told in self._named and self._may_hold(told, rule):
            return told
        for level, outer in _outer_names(group.name, rule.nest_by):
            is_there = outer in self._named or outer in self.groups
            project = self.make(outer) if is_there or level <= MOST_UNSEEN else None
            if project is not None and not project.users and self._may_hold(outer, rule):
                return project.id
        return rule.parent

    def _may_hold(self, name: str, rule: GroupRule) -> bool:
        """Whether groups of a rule may be in a project that is there."""
        way = self._way(name)
        return len(way) < MOST_LEVELS and (rule.parent is None or rule.parent in way)

    def _way(self, name: str) -> list[str]:
        """List a project and all that it is in, as far up as projects may be nested."""
        way, at = [name], self._found.get(name)
        while at is not None and at.parent is not None and len(way) < MOST_LEVELS:
            way.append(at.parent)
            at = self._found.get(at.parent)
        return way


def _outer_names(name: str, mark: str) -> Iterator[tuple[int, str]]:
    """Yield what a name begins with before each mark, the longest first, and before which; of many, the first few."""
    if not mark:
        return
    parts = name.split(mark, MOST_LEVELS)
    for count in range(len(parts) - 1, 0, -1):
        outer = mark.join(parts[:count])
        if outer.strip():
            yield count, outer
