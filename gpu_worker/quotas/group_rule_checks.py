"""What only rules for groups and projects together show: unknown parents and classes, and rules that do nothing."""

import difflib
from collections.abc import Iterator, Sequence

from bulletin.ids import ProjectId
from gpu_worker.quotas.tree import KeyPath
from gpu_worker.scheduler.policy.group_rules import GroupRule, HubGroup
from gpu_worker.scheduler.policy.projects import MOST_LEVELS, Project


def unfit_rules(rules: Sequence[GroupRule], projects: Sequence[Project]) -> Iterator[tuple[KeyPath, str]]:
    """Find rules that cannot be, with the sentence for each."""
    by_id = {one.id: one for one in projects}
    for rule in rules:
        at = ("group_rules", rule.id, "parent")
        if rule.parent is None:
            continue
        if rule.parent not in by_id:
            near = difflib.get_close_matches(rule.parent, list(by_id), n=1)
            mend = f"Did you mean {near[0]}?" if near else "Add that project, or correct the name."
            yield at, f"Groups of the rule {rule.id!r} are in {rule.parent!r}, which is not there. {mend}"
        elif _level(rule.parent, by_id) >= MOST_LEVELS:
            yield at, f"Projects are nested more than {MOST_LEVELS} deep. Give {rule.id!r} a parent higher up."


def idle_rules(rules: Sequence[GroupRule], projects: Sequence[Project]) -> Iterator[tuple[KeyPath, str]]:
    """Find rules that are for no group, or give it nothing to run on, with the sentence for each."""
    names = {one.id for one in projects}
    for number, rule in enumerate(rules):
        at = ("group_rules", rule.id)
        first = next((other for other in rules[:number] if other.covers(rule)), None)
        if first is not None:
            sentence = (
                f"Every group that {rule.id!r} is for has what {first.id!r} says, which stands before it. Write "
                f"{rule.id!r} first, or leave it out."
            )
            yield at, sentence
        if rule.groups and names.issuperset(rule.groups):
            sentence = f"{rule.id!r} is for groups that the file names as projects: it does nothing. Leave it out."
            yield at, sentence
        if not rule.can_borrow and rule.parent is None and not rule.nest_by and not rule.parent_property:
            sentence = (
                f"Groups of {rule.id!r} may not borrow and have no guarantee: their cells never run. Give them a "
                "parent that has one."
            )
            yield (*at, "borrow"), sentence


def unused_rules(
    rules: Sequence[GroupRule], projects: Sequence[Project], groups: Sequence[str]
) -> Iterator[tuple[GroupRule, tuple[str, ...]]]:
    """Find rules by names alone that are for none of these groups, each with those that it would be for.

    The latter are groups that the file names, or for which an earlier rule is.
    """
    named = {one.id for one in projects}
    for number, rule in enumerate(rules):
        if rule.properties:
            continue
        known = [name for name in groups if rule.fits(HubGroup(name))]
        free = [name for name in known if name not in named]
        earlier = [one for one in rules[:number] if not one.properties]
        if not any(all(not one.fits(HubGroup(name)) for one in earlier) for name in free):
            yield rule, tuple(known)


def _level(name: ProjectId, by_id: dict[ProjectId, Project]) -> int:
    level, at = 0, by_id.get(name)
    while at is not None and level <= MOST_LEVELS:
        level += 1
        at = by_id.get(at.parent) if at.parent is not None else None
    return level
