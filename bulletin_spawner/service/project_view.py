"""How a project stands and what it used over time, as one person may see it: members' names are for its lead. Pure."""

from collections.abc import Iterator, Sequence

import msgspec

from bulletin.ids import ProjectId, UserName
from bulletin.wire.console import BoostRow, ProjectRow
from bulletin.wire.page_requests import Lender, PoolReport, Stretch, UseOf, UsePart, UseReport
from bulletin_spawner.service.me_view import ProjectStanding, standing
from bulletin_spawner.service.now_view import ShownRequest, show_request
from bulletin_spawner.service.viewer import Sight

#: What stands for members whose names the viewer may not know, and for projects that are not theirs.
OTHERS = UserName("others")
OTHER_PROJECT = ProjectId("another project")


class ProjectChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A project that the viewer may open."""

    project: ProjectId
    parent: ProjectId | None = None
    is_led: bool = False
    guaranteed_milli: int = 0
    promised_milli: int | None = None  #: what it is guaranteed by the settings, where the pool can keep less of it


class ProjectsView(msgspec.Struct, frozen=True, kw_only=True):
    """The projects that the viewer may open, their own first, and which of them opens where they chose none."""

    projects: tuple[ProjectChoice, ...]
    opens: ProjectId


class RunningShown(msgspec.Struct, frozen=True, kw_only=True):
    """A lease of the project, for its lead."""

    lease: str
    user: UserName
    project: ProjectId
    label: str
    node: str
    slots: int
    state: str
    for_ms: int
    walltime_ms: int
    is_in_quota: bool | None


class LenderShown(msgspec.Struct, frozen=True, kw_only=True):
    """A project that lent to others; only one's own and those that one leads have their names."""

    rank: int
    project: ProjectId
    lent_ms: int
    is_own: bool


class ProjectView(msgspec.Struct, frozen=True, kw_only=True):
    """What *Project* shows. Slot time in slot-milliseconds."""

    project: ProjectId
    slot_word: str
    is_led: bool
    standing: ProjectStanding | None
    stretch: Stretch
    parts: tuple[UsePart, ...]
    members: tuple[UseOf, ...]
    labels: tuple[UseOf, ...]
    lenders: tuple[LenderShown, ...]
    #: For leads and admins.
    running: tuple[RunningShown, ...] = ()
    waiting: tuple[ShownRequest, ...] = ()
    boosts: tuple[BoostRow, ...] = ()


def view_projects(report: PoolReport, sight: Sight) -> ProjectsView:
    """List the projects that the viewer may open."""
    rows = {row.project: row for row in report.projects}
    own = sight.projects
    more = [project for project in rows if project not in own] if sight.viewer.is_admin else []
    return ProjectsView(
        projects=tuple(_choice(project, rows.get(project), sight) for project in (*own, *more)),
        opens=_opening(report, sight, (*own, *more)),
    )


def _choice(project: ProjectId, row: ProjectRow | None, sight: Sight) -> ProjectChoice:
    is_led = sight.leads(project)
    if row is None:
        return ProjectChoice(project=project, is_led=is_led)
    return ProjectChoice(
        project=project,
        parent=row.parent,
        is_led=is_led,
        guaranteed_milli=row.guaranteed_milli,
        promised_milli=row.promised_milli,
    )


def _opening(report: PoolReport, sight: Sight, choices: Sequence[ProjectId]) -> ProjectId:
    """Choose a project of the viewer's; for who is in none, the one of these that is most in use now."""
    if sight.viewer.groups:
        return choices[0]
    rows = {row.project: row for row in report.projects}

    def use(project: ProjectId) -> tuple[int, int, int]:
        row = rows.get(project)
        return (0, 0, 0) if row is None else (row.used_milli, row.waiting, row.guaranteed_milli)

    return max(choices, key=use)


def view_project(report: PoolReport, use: UseReport, sight: Sight) -> ProjectView:
    """Make of what a project used, and of the pool as it is now, what this viewer may see of it."""
    is_led = sight.leads(use.project)
    inside = _inside(report, use.project)
    row = next((row for row in report.projects if row.project == use.project), None)
    return ProjectView(
        project=use.project,
        slot_word=use.slot_word,
        is_led=is_led,
        standing=standing(row, sight) if row is not None else None,
        stretch=use.stretch,
        parts=use.parts,
        members=tuple(use.users if is_led else _own_and_others(use.users, sight.viewer.user)),
        labels=tuple(use.labels if is_led else [one for one in use.labels if one.user == sight.viewer.user]),
        lenders=tuple(_lenders(use.lenders, sight)),
        running=tuple(
            RunningShown(
                lease=lease.lease,
                user=lease.user,
                project=lease.project,
                label=lease.label,
                node=lease.node,
                slots=len(lease.slots),
                state=lease.state,
                for_ms=lease.for_ms,
                walltime_ms=lease.walltime_ms,
                is_in_quota=lease.in_quota,
            )
            for lease in report.leases
            if is_led and lease.project in inside
        ),
        waiting=tuple(show_request(one, sight) for one in report.waiting if is_led and one.project in inside),
        boosts=tuple(boost for boost in report.boosts if is_led and boost.project in inside),
    )


def _inside(report: PoolReport, project: ProjectId) -> set[ProjectId]:
    """Return a project and all that is in it: whatever a project is in stands above it in the report."""
    found = {project}
    for row in report.projects:
        if row.parent in found:
            found.add(row.project)
    return found


def _own_and_others(users: tuple[UseOf, ...], viewer: UserName) -> Iterator[UseOf]:
    yield from (one for one in users if one.user == viewer)
    others = [one for one in users if one.user != viewer]
    if others:
        yield UseOf(
            name=OTHERS,
            user=OTHERS,
            slot_ms=sum(one.slot_ms for one in others),
            borrowed_ms=sum(one.borrowed_ms for one in others),
            cells=sum(one.cells for one in others),
        )


def _lenders(lenders: tuple[Lender, ...], sight: Sight) -> Iterator[LenderShown]:
    for rank, one in enumerate(lenders, 1):
        is_known = sight.may_open(one.project)
        yield LenderShown(
            rank=rank,
            project=one.project if is_known else OTHER_PROJECT,
            lent_ms=one.lent_ms,
            is_own=one.project in sight.viewer.own_projects,
        )
