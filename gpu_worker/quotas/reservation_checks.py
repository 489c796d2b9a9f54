"""What only reservations and projects together show: unknown projects, people who are reserved for twice at a time."""

import difflib
from collections.abc import Iterator, Sequence
from itertools import combinations

from gpu_worker.quotas.tree import KeyPath
from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.projects import Project, guarantees, show_gpus


def unfit_reservations(
    reservations: Sequence[Reservation], projects: Sequence[Project]
) -> Iterator[tuple[KeyPath, str]]:
    """Find reservations that cannot be, with the sentence for each."""
    known = [one.id for one in projects]
    for one in reservations:
        at = ("reservations", one.name)
        if one.project not in known:
            near = difflib.get_close_matches(one.project, known, n=1)
            mend = f"Did you mean {near[0]}?" if near else "Add that project, or correct the name."
            yield (*at, "project"), f"{one.name!r} is for {one.project!r}, which is not there. {mend}"
        elif one.users and one.account_id in known:
            sentence = (
                f"{one.name!r} counts as {one.account_id!r}, and a project is called so. Give one of them another name."
            )
            yield at, sentence
    for first, other in combinations([one for one in reservations if one.users], 2):
        if first.project != other.project or other.begin_ms >= first.end_ms or first.begin_ms >= other.end_ms:
            continue
        twice = next((name for name in other.users if name in first.users), None)
        if twice is not None:
            sentence = (
                f"{twice!r} is in {other.name!r} and in {first.name!r}, which are for {other.project!r} at the same "
                "time. Take one of the two out, or let one end before the other begins."
            )
            yield ("reservations", other.name, "users"), sentence


def idle_reservations(
    reservations: Sequence[Reservation], projects: Sequence[Project], now_ms: int
) -> Iterator[tuple[KeyPath, str]]:
    """Find reservations that do nothing, with the sentence for each."""
    usual = guarantees(projects)
    for one in reservations:
        at = ("reservations", one.name)
        if one.is_over(now_ms):
            yield at, f"{one.name!r} is over and does nothing. Leave it out."
        elif not one.users and one.guaranteed_milli <= usual[one.project]:
            has, reserved = show_gpus(usual[one.project]), show_gpus(one.guaranteed_milli)
            sentence = (
                f"{one.project!r} has {has} guaranteed at any time: {one.name!r} with {reserved} does nothing. Write "
                "more, or leave it out."
            )
            yield (*at, "gpus"), sentence
