"""Somebody who looks at the pages: who they are by the hub's word, and what they may see and change. Pure."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec

from bulletin.hub_scopes import led_projects, may_be_named_lead, may_manage
from bulletin.ids import ProjectId, UserName
from bulletin.wire.page_requests import PageReader, PoolReport

Role = Literal["user", "lead", "admin"]
#: Who may do what is for a role.
INCLUDED: dict[Role, tuple[Role, ...]] = {
    "user": ("user", "lead", "admin"),
    "lead": ("lead", "admin"),
    "admin": ("admin",),
}
#: Users without a group pay from here.
DEFAULT_PROJECT = ProjectId("default")


class Viewer(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever the hub says looks at a page, or asks the API."""

    user: UserName
    groups: tuple[str, ...] = ()
    #: The projects that they lead by a role of the hub, with all that is in them.
    leads: tuple[str, ...] = ()
    is_admin: bool = False
    #: And those that name them as lead in the quota file: the broker knows which.
    may_be_named_lead: bool = False
    #: Those, as the broker has said a moment ago: for what is shown, and not for what they may change.
    named: tuple[str, ...] = ()

    @property
    def led(self) -> tuple[str, ...]:
        """The projects that they lead by a role or as the quota file says, with all that is in them."""
        return tuple(sorted({*self.leads, *self.named}))

    @property
    def role(self) -> Role:
        """The most that they are anywhere in the pool."""
        return "admin" if self.is_admin else "lead" if self.led else "user"

    @property
    def own_projects(self) -> tuple[ProjectId, ...]:
        """The projects that may pay for their cells; the first one does when nobody says."""
        return tuple(map(ProjectId, sorted(self.groups))) or (DEFAULT_PROJECT,)

    @property
    def reader(self) -> PageReader:
        """Return the same for the broker, which decides what they may change."""
        return PageReader(
            user=self.user,
            groups=self.groups,
            leads=self.leads,
            is_admin=self.is_admin,
            may_be_named_lead=self.may_be_named_lead,
        )


def viewer_of(model: Mapping[str, Any], groups: Collection[str]) -> Viewer:
    """Make the viewer of what the hub says of a token. A service of the hub is nobody whose cells there are."""
    scopes = model.get("scopes", ())
    is_user = model.get("kind", "user") == "user"
    return Viewer(
        user=UserName(model["name"] if is_user else ""),
        groups=tuple(sorted(groups)),
        leads=led_projects(scopes, groups),
        may_be_named_lead=is_user and may_be_named_lead(scopes),
        is_admin=may_manage(scopes, is_hub_admin=model.get("admin") is True),
    )


def with_named(viewer: Viewer, report: PoolReport) -> Viewer:
    """Add the projects that name a viewer as their lead in the quota file, where their token may be one."""
    if not viewer.may_be_named_lead:
        return viewer
    named = {str(row.project) for row in report.projects if viewer.user in row.leads}
    return msgspec.structs.replace(viewer, named=tuple(sorted(named)))


class Sight:
    """What one viewer may see of the pool as it is now: their own, what they lead, and all of it as an admin."""

    def __init__(self, viewer: Viewer, report: PoolReport) -> None:
        self.viewer = viewer
        parents = {row.project: row.parent for row in report.projects}
        self._led: set[ProjectId] = set()
        led = viewer.led
        for project in parents if led else ():
            at: ProjectId | None = project
            while at is not None and at not in led:
                at = parents.get(at)
            if at is not None:
                self._led.add(project)
        self._led |= set(map(ProjectId, led))

    def leads(self, project: ProjectId) -> bool:
        """Whether all of a project is theirs to see and change: as its lead, or as an admin."""
        return self.viewer.is_admin or project in self._led

    def may_see(self, user: UserName, project: ProjectId) -> bool:
        """Whether they may see what is this user's in this project."""
        return (user == self.viewer.user and user != "") or self.leads(project)

    def may_open(self, project: ProjectId) -> bool:
        """Whether they may see how a project stands and what it used: their own, and those they lead."""
        return project in self.viewer.own_projects or self.leads(project)

    @property
    def projects(self) -> tuple[ProjectId, ...]:
        """The projects that they may open, by their names where there are many; their own first."""
        return (*self.viewer.own_projects, *sorted(self._led - set(self.viewer.own_projects)))
