"""What there is in pools of random histories: nodes, what cells ask for, and projects with hours and dates."""

from datetime import date

import msgspec

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler.policy.class_hours import ClassHours
from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.projects import Budget, Project
from gpu_worker.scheduler.policy.reserved_projects import with_reservations
from tests.scheduler.bench import MINUTE, models, slots
from tests.scheduler.timetable import hours, place

NODES = {"a": slots(2), "b": slots(1), "c": slots(4), "d": slots(1, "cpu") + slots(1)}
#: Alike in nothing: kinds of GPUs, slices of them, CPUs and memory.
MIXED = {
    "a": models(2, "NVIDIA A100", 80),
    "b": models(1, "NVIDIA A10", 24) + models(3, "NVIDIA A100 MIG 1g.10gb", 10, "mig", 125),
    "c": models(3, "NVIDIA A10", 24) + models(1, "NVIDIA A100", 80),
    "d": slots(1, "cpu") + models(1, "NVIDIA A100 MIG 3g.40gb", 40, "mig", 500),
}
HOSTS = {"a": (8, 64), "b": (4, 32), "c": (16, 32), "d": (2, 8)}
GB40 = 40 * 10**9
#: GPU type and memory, CPUs, memory: what cells ask for where nodes differ.
WANTS = (
    ("", 0, 0, 0), ("A100", 0, 0, 0), ("nvidia a10", 0, 0, 0), ("", GB40, 0, 0), ("mig", 0, 0, 0), ("1g.10gb", 0, 1, 0),
    ("mig", GB40 // 2, 0, 4), ("", 0, 4, 0), ("", 0, 8, 16), ("A100", 0, 6, 32), ("H100", 0, 0, 0), ("", 0, 0, 60),
)  # fmt: skip
CPU_NODES = {"a": slots(1, "cpu"), "b": slots(2, "cpu")}
#: Everything that projects can have, on few GPUs; `stray` is not configured.
PROJECTS = (
    Project(id=ProjectId("lab"), guaranteed_milli=2000, limit_milli=4000, weight=3, lending_limit_milli=3000),
    Project(id=ProjectId("school"), guaranteed_milli=2500, user_limit_milli=2000),
    Project(id=ProjectId("maths"), parent=ProjectId("school"), guaranteed_milli=1000, can_borrow=False),
    Project(id=ProjectId("physics"), parent=ProjectId("school"), limit_milli=2000, weight=2, priority=1),
    Project(id=ProjectId("club"), budget=Budget(25 * MINUTE, "day")),
    Project(id=ProjectId("choir"), parent=ProjectId("club"), budget=Budget(40 * MINUTE, "week")),
)
PAYING = ("p", "lab", "school", "maths", "physics", "stray", "club", "choir")


def in_class(name: str, *hours: ClassHours) -> Project:
    """One of the projects, with class hours."""
    found = next(one for one in PROJECTS if one.id == name)
    return msgspec.structs.replace(found, class_hours=hours)


#: One a day, ones that overlap, one inside another project, ones that end for good.
#: A history begins on a Thursday at 0:00 UTC, which is 1:00 in Berlin.
WITH_CLASS_HOURS = (
    in_class("lab", hours("Thu Fri Sat Sun", "01:30", "03:00", 4), hours("Thu Fri", "02:00", "04:00", 3)),
    *(one for one in PROJECTS if one.id in ("school", "physics")),
    in_class("maths", hours("Thu Sat", "00:30", "24:00", 2, "UTC")),
    in_class("club", hours(begin="01:00", end="01:20", gpus=1, last=date(1970, 1, 3))),
    next(one for one in PROJECTS if one.id == "choir"),
    Project(
        id=ProjectId("stray"),
        can_borrow=False,
        class_hours=(hours("Thu Fri", "01:00", "03:00", 2, first=date(1970, 1, 1), last=date(1970, 1, 9)),),
    ),
)


def booked(name: str, users: str, begin: int, end: int, gpus: int = 2) -> Reservation:
    """A reservation, in minutes since a history begins: clocks there show an hour more."""
    return Reservation(
        name=f"{name}-{begin}",
        project=ProjectId(name),
        users=tuple(map(UserName, users.split())),
        guaranteed_milli=1000 * gpus,
        from_minute=60 + begin,
        until_minute=60 + end,
        zone=place("Europe/Berlin"),
    )


#: For projects and for some users, one after the other, at the same time, by day.
WITH_RESERVATIONS = with_reservations(
    PROJECTS,
    [
        booked("lab", "u0 u1", 20, 50),
        booked("lab", "u1", 50, 90, gpus=1),
        booked("lab", "u2", 30, 200, gpus=1),
        booked("lab", "", 40, 100, gpus=4),
        booked("maths", "u0", 10, 40, gpus=1),
        booked("choir", "u0 u2", 30, 60, gpus=3),
        booked("physics", "", 60, 3000, gpus=1),
    ],
)
