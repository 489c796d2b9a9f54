"""What may be written of rules for groups: which groups, what they are in, what they have, and what no rule gives."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from bulletin.ids import ProjectId
from gpu_worker.quotas.quota_settings import PROJECT_SETTINGS
from gpu_worker.quotas.tree import Scalar
from gpu_worker.quotas.value_kinds import (
    PROJECT_NAME_LENGTH,
    ProjectName,
    QuotaSetting,
    UnfitValue,
    name_problem,
)
from gpu_worker.scheduler.policy.group_rules import NEST_MARKS, GroupRule
from gpu_worker.scheduler.policy.projects import Project

RULE_NAME_LENGTH = 64
#: Each group that is seen is compared with all of them.
MOST_RULES = 100
_MOST_PATTERNS = 50


class GroupPatterns(msgspec.Struct, frozen=True):
    """Names of groups, in which a star stands for any letters."""

    form: str = "list of names of groups, `*` for any letters"

    def read(self, value: Scalar) -> tuple[str, ...]:
        """Return the patterns in their order. Raises UnfitValue."""
        if isinstance(value, tuple) and _are_names(value):
            return value
        raise UnfitValue(f'Write a list of 1 to {_MOST_PATTERNS} names, each once, as in ["course-*"].')

    def schema(self) -> dict[str, Any]:
        """Allow a list of texts, each once."""
        return _names_schema({"type": "string", "minLength": 1, "maxLength": PROJECT_NAME_LENGTH})

    def show(self, value: Any) -> str:
        """Write each in quotes."""
        return ", ".join(map(repr, cast("Sequence[str]", value))) or "any"


class GroupProperties(msgspec.Struct, frozen=True):
    """Properties of a hub group with the value that each has."""

    form: str = 'list of "PROPERTY=VALUE"'

    def read(self, value: Scalar) -> tuple[tuple[str, str], ...]:
        """Return names and values, in their order. Raises UnfitValue."""
        if isinstance(value, tuple) and _are_names(value):
            pairs = [one.partition("=") for one in value]
            if all(name.strip() and mark for name, mark, _ in pairs):
                return tuple((name.strip(), wanted.strip()) for name, _, wanted in pairs)
        raise UnfitValue('Write a list of properties of hub groups with their values, as in ["kind=course"].')

    def schema(self) -> dict[str, Any]:
        """Allow a list of texts with an equals sign."""
        return _names_schema({"type": "string", "pattern": r"^[^=]*[^=\s][^=]*=", "maxLength": PROJECT_NAME_LENGTH})

    def show(self, value: Any) -> str:
        """Write each in quotes."""
        return ", ".join(repr(f"{name}={wanted}") for name, wanted in value) or "any"


class PropertyName(msgspec.Struct, frozen=True):
    """The name of a property of hub groups."""

    form: str = "name of a property of hub groups"

    def read(self, value: Scalar) -> str:
        """Return the name. Raises UnfitValue."""
        if not isinstance(value, str) or name_problem(value, PROJECT_NAME_LENGTH):
            raise UnfitValue("Write the name of a property of hub groups, in quotes.")
        return value

    def schema(self) -> dict[str, Any]:
        """Allow a text that can be a name."""
        return {"type": "string", "minLength": 1, "maxLength": PROJECT_NAME_LENGTH}

    def show(self, value: Any) -> str:
        """Quote the name."""
        return repr(value) if value else "none"


class NestMark(msgspec.Struct, frozen=True):
    """The mark between the name of a project and that of a group in it."""

    @property
    def form(self) -> str:
        """Say what to write, for the reference page."""
        return ", ".join(f'"{mark}"' for mark in NEST_MARKS)

    def read(self, value: Scalar) -> str:
        """Return the mark. Raises UnfitValue."""
        if value not in NEST_MARKS:
            raise UnfitValue(f"Write one of {self.form}.")
        return cast("str", value)

    def schema(self) -> dict[str, Any]:
        """Allow the marks."""
        return {"enum": list(NEST_MARKS)}

    def show(self, value: Any) -> str:
        """Quote the mark."""
        return repr(value) if value else "none"


def _are_names(value: tuple[str, ...]) -> bool:
    is_list = 0 < len(value) <= _MOST_PATTERNS and len(set(value)) == len(value)
    return is_list and not any(name_problem(one, PROJECT_NAME_LENGTH) for one in value)


def _names_schema(name: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": name, "minItems": 1, "maxItems": _MOST_PATTERNS, "uniqueItems": True}


#: What a project may have that no rule gives, and why.
_GUARANTEES = "A guarantee is of a project that the file names: write [projects.NAME] for the groups that have one"
NEVER_BY_RULE = {
    "guaranteed": _GUARANTEES,
    "class_hours": _GUARANTEES,
    "node_pools": _GUARANTEES,
    "lending_limit": "It bounds what is lent of a guarantee, and a rule gives none: leave it out",
    "keep_hot": "It keeps GPUs from others while nothing runs on them: write it for a project that the file names",
}

#: What is said of the groups themselves.
_WHICH = (
    QuotaSetting(
        "groups",
        "groups",
        GroupPatterns(),
        "The names of groups that it is for. Capital letters are others than small ones. Without it, any name.",
        '["course-*"]',
    ),
    QuotaSetting(
        "properties",
        "properties",
        GroupProperties(),
        "Properties that the group has on the hub, all of these.",
        '["kind=course"]',
    ),
    QuotaSetting(
        "parent",
        "parent",
        ProjectName(),
        "The project that each of these groups is in: what it uses counts there too.",
        '"teaching"',
    ),
    QuotaSetting(
        "nest_by",
        "nest_by",
        NestMark(),
        'The mark behind the name of the project that a group is in: with "/", the group lab/phd is in the project '
        "lab, where the file names that or a rule is for it, inside parent where there is one; and else in parent. Of "
        "the levels of a name in which nobody was seen, the first three count.",
        '"/"',
    ),
    QuotaSetting(
        "parent_property",
        "parent_property",
        PropertyName(),
        "The property that names the project that a group is in, before all else. It counts where the file names that "
        "project, inside parent where there is one.",
        '"department"',
    ),
)

#: The settings of a rule: which groups, and what of the settings of a project each of them has.
GROUP_RULE_SETTINGS = (
    *_WHICH,
    *(one for one in PROJECT_SETTINGS if one.name not in NEVER_BY_RULE and one.name != "parent"),
)
#: Of a rule that is compared with none.
EMPTY_RULE = GroupRule(id=ProjectId(""))


def describe_terms(project: Project) -> str:
    """Name what a rule gives each project, or a project has of it, in words for people; empty where that is nothing."""
    terms = [one for one in GROUP_RULE_SETTINGS if one not in _WHICH and one.name != "leads"]
    told = [one for one in terms if getattr(project, one.field) != getattr(EMPTY_RULE, one.field)]
    return ", ".join(f"{one.name} {one.kind.show(getattr(project, one.field))}" for one in told)
