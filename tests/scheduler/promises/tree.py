"""The tree of projects as the page on promises has it: sides, what each is guaranteed at a time, and what limits it."""

from typing import Any, NamedTuple

from bulletin.ids import ProjectId
from gpu_worker.scheduler.policy.projects import Project, QoS, SchedulerSettings


class Side(NamedTuple):
    """A project with all that is inside it; or its own users, where it has other projects inside."""

    project: ProjectId
    own_users: bool = False

    def __str__(self) -> str:
        return f"the own users of {self.project!r}" if self.own_users else f"project {self.project!r}"


class Tree:
    """What the settings say of projects and classes of service."""

    def __init__(self, settings: SchedulerSettings) -> None:
        self.settings = settings
        self.projects: dict[ProjectId, Project] = {project.id: project for project in settings.projects}
        self.qos: dict[str, QoS] = {qos.name: qos for qos in settings.qos}
        self.children: dict[ProjectId | None, list[ProjectId]] = {}
        for project in settings.projects:
            self.children.setdefault(project.parent, []).append(project.id)
        self._chains: dict[ProjectId, tuple[Side, ...]] = {}
        self._guarantees: dict[tuple[bool, ...], dict[Side, int]] = {}  #: by which class hours are on
        self._hours = [hours for project in settings.projects for hours in project.windows]

    def chain(self, project: ProjectId) -> tuple[Side, ...]:
        """List the sides that somebody of the project is in, the innermost first."""
        if project not in self._chains:
            sides = [Side(project, own_users=True)] if self.children.get(project) else []
            at: ProjectId | None = project
            while at is not None:
                sides.append(Side(at))
                known = self.projects.get(at)
                at = known.parent if known else None
            self._chains[project] = tuple(sides)
        return self._chains[project]

    def rule_of_cells(self, project: ProjectId, field: str) -> Any:
        """Find what holds for a cell of a project: what it says itself, or the one that it is in; None is no rule."""
        names = (side.project for side in self.chain(project))
        rules = (getattr(self.projects[name], field) for name in names if name in self.projects)
        return next((rule for rule in rules if rule is not None), None)

    def depth(self, side: Side) -> int:
        """Count the projects from the top down to this one; own users are below their project."""
        return len(self.chain(side.project)) + side.own_users - bool(self.children.get(side.project))

    def guarantees(self, now_ms: int) -> dict[Side, int]:
        """Compute what each side is guaranteed now, in thousandths of a GPU, however many there are."""
        are_on = tuple(hours.is_on(now_ms) for hours in self._hours)
        if are_on not in self._guarantees:
            self._guarantees[are_on] = self._guarantees_at(now_ms)
        return self._guarantees[are_on]

    def _guarantees_at(self, now_ms: int) -> dict[Side, int]:
        found: dict[Side, int] = {}

        def fill(name: ProjectId) -> int:
            project = self.projects[name]
            on = [hours.guaranteed_milli for hours in project.windows if hours.is_on(now_ms)]
            inside = sum(fill(child) for child in self.children.get(name, ()))
            whole = max(project.guaranteed_milli, inside, *on)
            found[Side(name)] = whole
            if self.children.get(name):
                found[Side(name, own_users=True)] = whole - inside
            return whole

        for top in self.children.get(None, ()):
            fill(top)
        return found

    def is_paid_for(self, name: ProjectId) -> bool:
        """Whether a project is guaranteed nothing outside all class hours, and is in one that may be."""
        project = self.projects.get(name)
        return project is not None and project.parent is not None and not self._usual(name)

    def _usual(self, name: ProjectId) -> int:
        return max(self.projects[name].guaranteed_milli, sum(map(self._usual, self.children.get(name, ()))))

    def shrunk(self, now_ms: int, there_milli: int) -> dict[Side, int]:
        """Compute the guarantees, smaller in proportion where they are more than there is."""
        found = self.guarantees(now_ms)
        total = sum(found[Side(top)] for top in self.children.get(None, ()))
        if total <= there_milli:
            return found
        return {side: amount * there_milli // total for side, amount in found.items()}

    def limit(self, side: Side, guaranteed: dict[Side, int]) -> int | None:
        """Find what a project never exceeds: its limit, and its guarantee where it never borrows."""
        project = self.projects.get(side.project)
        if project is None or side.own_users:
            return None
        static = None if project.can_borrow else guaranteed[side]
        both = [limit for limit in (project.limit_milli, static) if limit is not None]
        return min(both, default=None)

    def next_edge_ms(self, now_ms: int) -> int | None:
        """Find when class hours begin or end next; None is never."""
        edges = [hours.next_edge_ms(now_ms) for project in self.projects.values() for hours in project.windows]
        return min((edge for edge in edges if edge is not None), default=None)
