"""Projects with what is reserved for them. What is reserved for some users of a project is one inside it."""

from collections.abc import Sequence

import msgspec

from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.projects import Project


def with_reservations(projects: Sequence[Project], reservations: Sequence[Reservation]) -> tuple[Project, ...]:
    """Give projects their reservations; those for users become projects, in which their cells count meanwhile.

    A reservation of a project that is not there is left out.
    """
    by_id = {one.id: one for one in projects}
    for_all = [one for one in reservations if not one.users]
    found = [
        msgspec.structs.replace(project, reservations=tuple(one for one in for_all if one.project == project.id))
        for project in projects
    ]
    return (*found, *(_inner(one, by_id[one.project]) for one in reservations if one.users and one.project in by_id))


def _inner(one: Reservation, parent: Project) -> Project:
    """Make the project of a reservation for users: each of them may use all of it, and no more than they may anyway."""
    limit = parent.user_limit_milli
    return Project(
        id=one.account_id,
        parent=parent.id,
        user_limit_milli=None if limit is None else max(limit, one.guaranteed_milli),
        reservations=(one,),
        users=one.users,
    )
