"""What single users of projects may have beyond the rules for everybody, each until a time: dated exceptions.

What a project itself may have, with all that it is in, bounds whatever its users are allowed.
"""

import msgspec

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler.policy.projects import GPU_MILLI, Project


class Allowance(msgspec.Struct, frozen=True):
    """How much a user of a project may have, and until when in the time of the scheduler's steps. 0 is nothing more."""

    until_ms: int
    walltime_ms: int = 0  #: of a cell
    gpus: int = 0  #: in one cell, and at once
    budget_ms: int = 0  #: more of the project's budget, for all its users: GPUs times milliseconds
    is_exclusive: bool = False  #: these on a node that nobody else is on, whatever the class of service


class Allowances:
    """The allowances in force, by their names. Of several of a user the most counts."""

    def __init__(self) -> None:
        self.by_owner: dict[tuple[ProjectId, UserName], dict[str, Allowance]] = {}
        self.next_ms: int | None = None  #: when the next one ends; None is never
        self.changes = 0  #: how often one was set or ended

    def set(self, project: ProjectId, user: UserName, name: str, allowance: Allowance, now_ms: int) -> None:
        """Allow a user something until then; where that has passed, no longer. The last word about a name holds."""
        known = self.by_owner.setdefault((project, user), {})
        known.pop(name, None)
        if allowance.until_ms > now_ms:
            known[name] = allowance
        if not known:
            del self.by_owner[project, user]
        self.next_ms, self.changes = self.find_next_ms(), self.changes + 1

    def pop_over(self, now_ms: int) -> list[tuple[ProjectId, UserName]]:
        """Take out what is over, and return whose it was."""
        if self.next_ms is None or self.next_ms > now_ms:
            return []
        owners = []
        for owner, known in list(self.by_owner.items()):
            left = {name: one for name, one in known.items() if one.until_ms > now_ms}
            if len(left) < len(known):
                owners.append(owner)
                self.by_owner[owner] = left
            if not left:
                del self.by_owner[owner]
        self.next_ms, self.changes = self.find_next_ms(), self.changes + 1
        return owners

    def find_next_ms(self) -> int | None:
        """Work out when the next one ends; None is never."""
        return min((one.until_ms for known in self.by_owner.values() for one in known.values()), default=None)

    def walltime_ms(self, project: Project, user: UserName) -> int:
        """Find how long a cell of the user's may run by an allowance; 0 without one."""
        return max((one.walltime_ms for one in self._find(project, user)), default=0)

    def gpus(self, project: Project, user: UserName) -> int:
        """Find how many GPUs a cell of the user's may have by an allowance; 0 without one."""
        return max((one.gpus for one in self._find(project, user)), default=0)

    def is_exclusive(self, project: Project, user: UserName, gpus: int) -> bool:
        """Tell whether a cell of the user's may have a node with so many GPUs for itself by an allowance."""
        return any(one.is_exclusive and gpus <= one.gpus for one in self._find(project, user))

    def budget_ms(self, project: ProjectId) -> int:
        """Sum up what all that is in force adds to a project's budget, each once: GPUs times milliseconds."""
        granted = (known for (home, _), known in self.by_owner.items() if home == project)
        return sum(one.budget_ms for known in granted for one in known.values())

    def user_limit_milli(self, project: Project, user: UserName) -> int | None:
        """Find what the user never exceeds in a project, in thousandths of a GPU; None is no limit."""
        limit = project.user_limit_milli
        if limit is None or not self.by_owner:
            return limit
        return max(limit, self.gpus(project, user) * GPU_MILLI)

    def _find(self, project: Project, user: UserName) -> tuple[Allowance, ...]:
        if not self.by_owner:
            return ()
        home = project.parent if project.users and project.parent is not None else project.id  # of a reservation
        return tuple(self.by_owner.get((home, user), {}).values())
