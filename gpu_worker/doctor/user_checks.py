"""The hub's users on this node: whether cells can run as them."""

import grp
import os
from collections.abc import Collection, Iterator

from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.pool_setup import PoolSetup
from gpu_worker.executor.unix_users import find_unix_user

#: So many are named; a hub may have thousands.
_NAMED = 5


def check_users(setup: PoolSetup, users: Collection[str]) -> Iterator[Diagnosis]:
    """Look each user up as the agent does at their first cell, where cells run as their users."""
    settings = setup.settings
    if settings.isolation != "unix-user":
        return
    if missing := [name for name in settings.unix_groups if not _is_group(name)]:
        yield Diagnosis(
            check="unix-group",
            what=f"Pool.unix_groups names {', '.join(missing)}, and this node has no such Unix group.",
            why="Nobody is in it: those whom it is meant for run no cell here.",
            remedy="Correct the name, or make the group.",
        )
    problems = list(filter(None, (_find_problem(setup, name) for name in sorted(users))))
    if problems:
        more = f"; and {len(problems) - _NAMED} more users" if len(problems) > _NAMED else ""
        yield Diagnosis(
            check="unix-user",
            what=f"Of the hub's users, some can run no cell: {'; '.join(problems[:_NAMED])}{more}.",
            why="Cells run as the Unix user with the name of the hub user (Pool.isolation is 'unix-user').",
            remedy="Make the Unix users (useradd, or the directory service of the hub's host, on this host, too), or "
            "take them off the hub's list.",
            level="wrong" if len(problems) == len(users) else "advice",
        )
    if os.getuid() != 0 and not settings.agent_user:
        yield Diagnosis(
            check="not-root",
            what="Cells are to run as their users, and this is not root.",
            why="What starts cells as others must be root; a hub that starts its pool is then root, too.",
            remedy="Run hub and pool as root, or the units in deploy/systemd. If they are: run this as root.",
        )


def _find_problem(setup: PoolSetup, user: str) -> str:
    settings = setup.settings
    try:
        find_unix_user(user, os.uname().nodename, min_uid=settings.min_uid, unix_groups=settings.unix_groups)
    except LookupError as error:
        return str(error)
    return ""


def _is_group(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True
