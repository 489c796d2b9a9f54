"""What only projects and classes of service together show: errors of the tree, and settings that do nothing."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bulletin.ids import ProjectId
from bulletin.units import show_duration
from gpu_worker.quotas.findings import Findings
from gpu_worker.quotas.group_rule_checks import idle_rules, unfit_rules
from gpu_worker.quotas.quota_settings import PROJECT_SETTINGS
from gpu_worker.quotas.reader import Reading, line_of
from gpu_worker.quotas.reservation_checks import idle_reservations, unfit_reservations
from gpu_worker.quotas.tree import KeyPath
from gpu_worker.scheduler.leases.resources import words_of
from gpu_worker.scheduler.policy.group_rules import GroupRule
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import (
    GPU_MILLI,
    MOST_LEVELS,
    Preemption,
    Project,
    QoS,
    SchedulerSettings,
    check_projects,
    guarantees,
    most_in_force,
    show_gpus,
)
from gpu_worker.scheduler.policy.reserved_projects import with_reservations

_NAME_OF_FIELD = {setting.field: setting.name for setting in PROJECT_SETTINGS}


def check_reading(reading: Reading, findings: Findings, capacity_milli: int | None, now_ms: int) -> None:
    """Note as errors what the scheduler says of the projects, and as warnings, where all is right, what has no effect.

    Reservations and class hours that are over by `now_ms` count for nothing.

    Raises
    ------
    TooManyErrors
        When there is no use in going on.
    """
    lines = reading.lines
    too_deep = _too_deep(reading.projects)
    for path, sentence in too_deep:
        findings.add_error(line_of(lines, path), path, sentence)
    if too_deep:
        return  # who is next is found by functions that call each other once a level
    for path, sentence in _unfit_classes(reading.projects, [one.name for one in reading.qos]):
        findings.add_error(line_of(lines, path), path, sentence)
    for path, sentence in _unknown_pools(reading.projects, [one.name for one in reading.node_pools]):
        findings.add_error(line_of(lines, path), path, sentence)
    for path, sentence in _unfit_rules(reading):
        findings.add_error(line_of(lines, path), path, sentence)
    unfit = list(unfit_reservations(reading.reservations, reading.projects))
    for path, sentence in unfit:
        findings.add_error(line_of(lines, path), path, sentence)
    ahead = [one for one in reading.reservations if not one.is_over(now_ms) and not unfit]
    for problem in check_projects(with_reservations(reading.projects, ahead), capacity_milli):
        field, _, inside = problem.field.partition(".")
        path = ("projects", problem.project, _NAME_OF_FIELD.get(field, field), *([inside] if inside else []))
        path = ("reservations", inside) if field == "reservations" else path
        if problem.is_warning:
            findings.add_warning(line_of(lines, path), path, problem.sentence)
        else:  # of what was read: the rest is at its default, of which nothing is said
            findings.add_error(line_of(lines, path), path, problem.sentence)
    if not findings.errors:
        idle = [*_idle_projects(reading.projects, now_ms), *_idle_qos(reading.qos), *_idle_back_off(reading.scheduler)]
        idle += [*idle_rules(reading.group_rules, reading.projects), *_idle_limits_of_rules(reading)]
        idle += [*_idle_prices(reading.prices), *idle_reservations(reading.reservations, reading.projects, now_ms)]
        for path, sentence in idle:
            findings.add_warning(line_of(lines, path), path, sentence)


def _too_deep(projects: Sequence[Project]) -> list[tuple[KeyPath, str]]:
    """Find the first project on each way down that is nested too deep, with the sentence for it.

    Missing parents and small circles are told elsewhere.
    """
    parents = {one.id: one.parent for one in projects}
    found: list[tuple[KeyPath, str]] = []
    endless: ProjectId | None = None
    for one in projects:
        way, at = [one.id], one.parent
        while at is not None and at not in way and len(way) <= MOST_LEVELS:
            way.append(at)
            at = parents.get(at)
        if len(way) == MOST_LEVELS + 1 and at is None:
            sentence = f"Projects are nested more than {MOST_LEVELS} deep. Give {one.id!r} a parent higher up."
            found.append((("projects", one.id, "parent"), sentence))
        elif len(way) > MOST_LEVELS and endless is None:
            endless = one.id
    if endless is not None and not found:
        sentence = f"{endless!r} is inside a circle of projects, or below one. Give one of them another parent."
        found.append((("projects", endless, "parent"), sentence))
    return found


def _unfit_classes(projects: Sequence[Project], known: Sequence[str]) -> Iterator[tuple[KeyPath, str]]:
    """Find classes of service of projects that there are not, or that are not allowed, with the sentence for each."""
    by_id = {one.id: one for one in projects}
    for one in projects:
        fields = [("default_qos", one.default_qos or ""), *(("qos", name) for name in one.qos or ())]
        for field, name in fields:
            if name and name not in known:
                near = difflib.get_close_matches(name.lower(), known, n=1)
                mend = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
                sentence = f"{field} of {one.id!r} names {name!r}, which is no class of service here. {mend}"
                yield ("projects", one.id, field), sentence
        if one.default_qos is None and one.qos is None:
            continue
        names, name = _first_set(one, by_id, "qos"), _first_set(one, by_id, "default_qos")
        if names is not None and name is not None and name not in names:
            field = "default_qos" if one.default_qos is not None else "qos"
            sentence = (
                f"A cell of {one.id!r} that names no class has {name!r}, which it may not use: it may use "
                f"{', '.join(names)}. Write another default_qos for {one.id!r}, or add {name!r} to its qos."
            )
            yield ("projects", one.id, field), sentence


def _unfit_rules(reading: Reading) -> Iterator[tuple[KeyPath, str]]:
    """Find what of the rules for groups cannot be, with the sentence for each."""
    yield from unfit_rules(reading.group_rules, reading.projects)
    classes = [one.name for one in reading.qos]
    for rule, sample in _samples(reading.group_rules):
        for path, sentence in _unfit_classes((*reading.projects, sample), classes):
            if path[1] == sample.id:
                yield ("group_rules", rule.id, *path[2:]), sentence


def _idle_limits_of_rules(reading: Reading) -> Iterator[tuple[KeyPath, str]]:
    """Find limits of rules that another limit makes useless, with the sentence for each."""
    for rule, sample in _samples(reading.group_rules):
        for path, sentence in _idle_limits(sample, {one.id: one for one in (*reading.projects, sample)}):
            yield ("group_rules", rule.id, *path[2:]), sentence


def _samples(rules: Sequence[GroupRule]) -> Iterator[tuple[GroupRule, Project]]:
    """Make a project as each rule does where a group's name and properties say nothing of what it is in."""
    for rule in rules:
        settings = {field: getattr(rule, field) for field in Project.__struct_fields__}
        yield rule, Project(**settings | {"id": ProjectId(f"a group of the rule {rule.id}")})


def _unknown_pools(projects: Sequence[Project], known: Sequence[str]) -> Iterator[tuple[KeyPath, str]]:
    """Find node pools of projects that there are not, with the sentence for each."""
    for one in projects:
        for name, _ in one.pool_guarantees:
            if name not in known:
                near = difflib.get_close_matches(name.lower(), known, n=1)
                there = f"There are {', '.join(known)}." if known else "Write [node_pools.NAME] with what is in it."
                mend = f"Did you mean {near[0]}?" if near else there
                sentence = f"{one.id!r} is guaranteed GPUs of the node pool {name!r}, which is not there. {mend}"
                yield ("projects", one.id, "node_pools", name), sentence


def _first_set(one: Project, by_id: dict[ProjectId, Project], field: str) -> Any:
    """Find what holds for a project: what the innermost of it and those that it is in sets; None where none does."""
    at: Project | None = one
    seen: set[ProjectId] = set()
    while at is not None and at.id not in seen:
        seen.add(at.id)
        if getattr(at, field) is not None:
            return getattr(at, field)
        at = by_id.get(at.parent) if at.parent is not None else None
    return None


def _idle_projects(projects: Sequence[Project], now_ms: int) -> Iterator[tuple[KeyPath, str]]:
    """Find projects and settings of projects that change nothing, with the sentence for each."""
    usual, inside = guarantees(projects), guarantees(projects, most_in_force(0))  # in any class hours at all
    by_id = {one.id: one for one in projects}
    parents = {one.parent for one in projects}
    for one in projects:
        at, name, guaranteed = ("projects", one.id), repr(one.id), inside[one.id]
        if one == Project(id=one.id) and one.id not in parents:
            yield at, f"{name} sets nothing, as does any group that is not in the file. Leave it out."
        if one.lending_limit_milli is not None and one.lending_limit_milli >= guaranteed:
            has, lends = show_gpus(guaranteed), show_gpus(one.lending_limit_milli)
            sentence = (
                f"{name} has {has} guaranteed and would lend {lends}: that is no limit. Lower it, or leave it out."
            )
            yield (*at, "lending_limit"), sentence
        if not one.can_borrow and not guaranteed and one.parent is None:
            yield (*at, "borrow"), f"{name} may not borrow and has no guarantee: its cells never run. Give it one."
        for hours in one.class_hours:
            if hours.guaranteed_milli <= usual[one.id]:
                sentence = (
                    f"{name} has {show_gpus(usual[one.id])} guaranteed at any time: its class hours {hours.name!r} "
                    f"with {show_gpus(hours.guaranteed_milli)} do nothing. Write more, or leave them out."
                )
                yield (*at, "class_hours", hours.name), sentence
            elif hours.is_over(now_ms):
                sentence = (
                    f"{name} has no class hours {hours.name!r} any more: their last_day is over. Write the next term's "
                    "first_day and last_day, or leave them out."
                )
                yield (*at, "class_hours", hours.name), sentence
        yield from _idle_limits(one, by_id)


def _idle_limits(one: Project, by_id: dict[ProjectId, Project]) -> Iterator[tuple[KeyPath, str]]:
    """Find limits of a project that a lower limit above it makes useless, with the sentence for each."""
    if one.limit_milli is None:
        return
    limit = show_gpus(one.limit_milli)
    if one.gpus_per_cell is not None and one.gpus_per_cell * GPU_MILLI > one.limit_milli:
        sentence = (
            f"{one.id!r} lets a cell have {show_gpus(one.gpus_per_cell * GPU_MILLI)}, and has a limit of {limit} "
            "itself: gpus_per_cell does nothing. Lower it, or leave it out."
        )
        yield ("projects", one.id, "gpus_per_cell"), sentence
    if one.user_limit_milli is not None and one.user_limit_milli > one.limit_milli:
        sentence = (
            f"{one.id!r} lets a user have {show_gpus(one.user_limit_milli)}, and has a limit of {limit} itself: "
            "the user's limit does nothing. Lower it, or leave it out."
        )
        yield ("projects", one.id, "user_limit"), sentence
    at = one
    while at.parent is not None:
        at = by_id[at.parent]
        if at.limit_milli is not None and at.limit_milli < one.limit_milli:
            sentence = (
                f"{one.id!r} has a limit of {limit}, and is in {at.id!r}, whose limit is {show_gpus(at.limit_milli)}: "
                "its own does nothing. Lower it, or leave it out."
            )
            yield ("projects", one.id, "limit"), sentence
            return


def _idle_qos(classes: Sequence[QoS]) -> Iterator[tuple[KeyPath, str]]:
    """Find classes of service whose cells keep what they have borrowed, or cannot keep it, with a sentence for each."""
    for one in classes:
        if one.must_be_in_quota:
            continue
        if one.keep_ms:
            sentence = (
                f"Cells of {one.name!r} may borrow, and a borrowed place is not kept: keep does nothing. Write "
                "must_be_in_quota = true, or leave it out."
            )
            yield ("qos", one.name, "keep"), sentence
        if one.preemption is Preemption.NEVER:
            sentence = (
                f"Cells of {one.name!r} may borrow, and what they borrow is not taken back before their walltime: "
                "guarantees wait for it. Write must_be_in_quota = true, or another preemption."
            )
            yield ("qos", one.name, "preemption"), sentence
        elif one.min_runtime_ms >= one.walltime_ms:
            sentence = (
                f"min_runtime of {one.name!r} is not below its walltime: its cells are never reclaimed, and "
                "guarantees wait for them. Lower it."
            )
            yield ("qos", one.name, "min_runtime"), sentence


def _idle_back_off(scheduler: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Find a back-off that is longer than it may ever be, with the sentence for it."""
    settings = SchedulerSettings(**scheduler)
    if settings.back_off_ms > settings.longest_back_off_ms:
        longest, first = show_duration(settings.longest_back_off_ms), show_duration(settings.back_off_ms)
        sentence = (
            f"longest_back_off is {longest}, and back_off is {first}: a project never stands behind others for longer "
            f"than {longest}. Raise longest_back_off, or lower back_off."
        )
        yield ("scheduler", "longest_back_off" if "longest_back_off_ms" in scheduler else "back_off"), sentence


def _idle_prices(prices: Sequence[Price]) -> Iterator[tuple[KeyPath, str]]:
    """Find prices of GPUs that all have another price already, with the sentence for each."""
    for number, one in enumerate(prices):
        words = set(words_of(one.gpu))
        first = next((other for other in prices[:number] if words.issuperset(words_of(other.gpu))), None)
        if first is not None:
            sentence = (
                f"Each GPU with the name {one.gpu!r} has the price of {first.gpu!r}, which stands before it. Write "
                f"{one.gpu!r} first, or leave it out."
            )
            yield ("prices", one.gpu), sentence
