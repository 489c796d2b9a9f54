"""What a lead may change of the quotas: what is inside their projects, and never so that these have more."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from bulletin.ids import ProjectId
from bulletin.wire.messages.quota_edits import SettingError
from gpu_worker.broker.identity import Person
from gpu_worker.quotas import QuotaChange, Quotas
from gpu_worker.quotas.quota_settings import PROJECT_SETTINGS
from gpu_worker.scheduler.policy.class_hours import moments
from gpu_worker.scheduler.policy.projects import Project, guarantees, in_force, show_gpus, usual

#: Of their own project a lead sets what concerns nobody but its users.
_OWN = ("user_limit", "default_qos")
#: What stands between the name of a project and that of one inside it, which its lead may add.
_MARKS = ("-", "_", ".", "/", ":")
#: What a project has from the one that it is in, unless it says otherwise: in a lead's project no more than that has.
_RULES = ("walltime", "gpus_per_cell", "qos")
#: What keeps GPUs from others outside of the project stays with admins, who answer for those too.
_OF_ADMINS = ("lending_limit", "keep_hot")
#: What grants something without a person. Nobody has it by such rules where the file names them as lead; who leads by
#: a role of the hub is known by some of their tokens alone, and could decide what they ask for with another.
_AT_ONCE = ("auto_grant_walltime", "auto_grant_gpus", "auto_grant_for", "auto_grants_per_week")

#: The tables of what is no project, by what it is called.
_TABLES = {
    "node pool": "node_pools",
    "price": "prices",
    "reservation": "reservations",
    "group rule": "group_rules",
    "group rules": "group_rules",
}


def projects_led(person: Person, projects: Sequence[Project]) -> frozenset[ProjectId]:
    """Find the projects of which a person is lead, by the hub's word, or because they name them."""
    named = {one.id for one in projects if person.may_be_named_lead and person.user in one.leads}
    return frozenset(named | ({one.id for one in projects} & set(person.leads)))


def inside(led: Collection[ProjectId], projects: Sequence[Project]) -> frozenset[ProjectId]:
    """Find the projects that are in one of these, on whatever level."""
    parents = {one.id: one.parent for one in projects}
    found = set()
    for one in projects:
        at, seen = one.parent, {one.id}
        while at is not None and at not in seen:
            if at in led:
                found.add(one.id)
            seen.add(at)
            at = parents.get(at)
    return frozenset(found)


def refuse(
    person: Person, before: Quotas, after: Quotas, changes: Sequence[QuotaChange], *, undoes_own: bool = False
) -> tuple[SettingError, ...]:
    """Say which of the changes this person may not make, each at its setting; nothing of an admin's.

    Who undoes what they alone have changed (`undoes_own`) may take out the projects that they have added.
    """
    if person.is_admin:
        return ()
    led = projects_led(person, before.projects)
    return (
        *_strange(led, before, after, changes),
        *(() if undoes_own else _taken_out(led, before, after)),
        *_gained(led, before, after),
        *_beyond(led, before, after),
        *_granted_at_once(person, led, before, after),
    )


def _strange(
    led: frozenset[ProjectId], before: Quotas, after: Quotas, changes: Sequence[QuotaChange]
) -> Iterator[SettingError]:
    """Find changes of what is not inside the person's projects, and those that only admins make."""
    was, will = inside(led, before.projects), inside(led, after.projects)
    there_before = {one.id for one in before.projects}
    there_after = {one.id: one for one in after.projects}
    for change in changes:
        name = ProjectId(change.name)
        path = ("projects", change.name, *([change.field] if change.field else []))
        if change.what != "project":
            path = (_TABLES.get(change.what, change.what), *([change.name] if change.name else []))
            yield SettingError(path=path, sentence=f"Only an admin changes this: {change}.")
        elif name in led and name not in was:
            if change.field not in _OWN:
                mine = " and ".join(_OWN)
                sentence = f"You are lead of {name!r}: of itself you set {mine}. An admin changes the rest."
                yield SettingError(path=path, sentence=sentence)
        elif name not in there_before and not any(name.startswith(f"{one}{mark}") for one in led for mark in _MARKS):
            sentence = (
                f"A project that you add has the name of yours before its own, as in '{min(led, default='')}-{name}': "
                "any other may be somebody else's group. Ask an admin."
            )
            yield SettingError(path=path, sentence=sentence)
        elif (name in there_before and name not in was) or (name in there_after and name not in will):
            names = ", ".join(map(repr, sorted(led)))
            yield SettingError(path=path, sentence=f"{name!r} is not inside a project that you lead: {names}.")
        elif change.field in _OF_ADMINS or (not change.field and name in there_after and _sets(there_after[name])):
            words = " and ".join(_OF_ADMINS)
            sentence = f"Only an admin sets {words}: they keep GPUs from others, also outside of your project."
            yield SettingError(path=path, sentence=sentence)


def _taken_out(led: frozenset[ProjectId], before: Quotas, after: Quotas) -> Iterator[SettingError]:
    """Find projects that would be inside no other one: their groups would be projects without any limit of those."""
    there = {one.id for one in after.projects}
    for name in sorted(inside(led, before.projects) - there):
        sentence = (
            f"Only an admin takes {name!r} out: who is in the group would have a project beside yours then, and "
            "nothing of what yours says would hold for it. To have nobody use it, write a limit of 0."
        )
        yield SettingError(path=("projects", name), sentence=sentence)


def _sets(project: Project) -> bool:
    return project.lending_limit_milli is not None or project.keep_hot_ms is not None


def _gained(led: frozenset[ProjectId], before: Quotas, after: Quotas) -> Iterator[SettingError]:
    """Find projects of the person that would be guaranteed more than before, at any time or in any node pool."""
    windows = [window for project in (*before.projects, *after.projects) for window in project.windows]
    measures = [usual, *(in_force(at_ms) for at_ms in moments(windows))]
    pools = sorted({pool for project in after.projects for pool, _ in project.pool_guarantees})
    measures += [_in_pool(pool) for pool in pools]
    for project in sorted(led):
        for own in measures:
            had, has = (guarantees(quotas.projects, own).get(project, 0) for quotas in (before, after))
            if has > had:
                sentence = (
                    f"Inside {project!r} {show_gpus(has)} would be guaranteed, and it has {show_gpus(had)}. Lower some "
                    "guarantee inside it, or ask an admin for more."
                )
                yield SettingError(path=("projects", project), sentence=sentence)
                break


def _beyond(led: frozenset[ProjectId], before: Quotas, after: Quotas) -> Iterator[SettingError]:
    """Find projects whose cells might have more than those of the person's project that they are in."""
    was, will = ({one.id: one for one in quotas.projects} for quotas in (before, after))
    for name in sorted(inside(led, after.projects)):
        for setting in PROJECT_SETTINGS:
            if setting.name not in _RULES:
                continue
            has = _rule(will, name, setting.field)
            if name in was and has == _rule(was, name, setting.field):
                continue
            at = will[name].parent
            while at is not None and at not in led:
                at = will[at].parent
            most = _rule(will, at, setting.field) if at is not None else None
            if most is not None and _is_more(has, most):
                sentence = (
                    f"{setting.name} of {name!r} would be {setting.kind.show(has)}, and {at!r} has "
                    f"{setting.kind.show(most)}. Write no more than that, or ask an admin."
                )
                yield SettingError(path=("projects", name, setting.name), sentence=sentence)


def _granted_at_once(
    person: Person, led: frozenset[ProjectId], before: Quotas, after: Quotas
) -> Iterator[SettingError]:
    """Find projects that would grant more at once by the word of who is not named as lead where they cannot undo it."""
    was, will = ({one.id: one for one in quotas.projects} for quotas in (before, after))
    named = {one.id for one in before.projects if person.user in one.leads} - inside(person.leads, before.projects)
    for name in sorted(inside(led, after.projects) - inside(named, after.projects)):
        for setting in PROJECT_SETTINGS:
            parent = will[name].parent
            had = _rule(was, name, setting.field) if name in was else _rule(will, parent, setting.field)
            has = _rule(will, name, setting.field)
            if setting.name in _AT_ONCE and has is not None and (had is None or has > had):
                sentence = (
                    f"Only an admin sets {setting.name} of {name!r} to more: you lead it by a role of the hub, and "
                    "might decide so what you ask for yourself. Ask one, or to be named in `leads` of the file."
                )
                yield SettingError(path=("projects", name, setting.name), sentence=sentence)


def _is_more(has: Any, most: Any) -> bool:
    """Compare a rule, where None is no rule, with the one that may not be exceeded."""
    return has is None or (not set(has) <= set(most) if isinstance(most, tuple) else has > most)


def _rule(projects: Mapping[ProjectId, Project], name: ProjectId | None, field: str) -> Any:
    """Find what holds for the cells of a project: its own, or that of the nearest that it is in; None is no rule."""
    at = name
    while at is not None:
        value = getattr(projects[at], field)
        if value is not None:
            return value
        at = projects[at].parent
    return None


def _in_pool(pool: str) -> Callable[[Project], int]:
    return lambda project: dict(project.pool_guarantees).get(pool, 0)
