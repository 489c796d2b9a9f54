"""Everyday stories of a site: what its quota file says, who comes when, and until when they are played."""

from typing import NamedTuple

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at
from tests.scheduler.promises.site_people import cells, machines, people
from tests.scheduler.promises.stories import H100, L4, reserve


class Story(NamedTuple):
    """One story. It begins on a Thursday at nine."""

    text: str
    happenings: list[hi.At]
    last_s: float


def _hours(project: str, begin: str, end: str, gpus: int) -> str:
    return (
        f'[projects.{project}.class_hours.lecture]\ndays = ["Thu"]\nfrom = "{begin}"\nuntil = "{end}"\n'
        f'time_zone = "UTC"\nguaranteed = {gpus}\n'
    )


def _labs(number: int, guaranteed: int, *, of_them: int = 99) -> str:
    return "".join(
        f'[projects.lab{n}]\nparent = "science"\nguaranteed = {guaranteed if n < of_them else 0}\n'
        for n in range(number)
    )


def _borrow_all(labs: int, cells_each: int, low_s: float, high_s: float) -> list[hi.At]:
    return [
        one for n in range(labs) for one in cells(cells_each, f"lab{n}", 1 + n, runs_s=(low_s, high_s), users=8, seed=n)
    ]


def lecture() -> Story:
    """Thirty-two students come at 9:18 for class hours from 9:20; labs have borrowed everything."""
    text = '[projects.faculty]\n[projects.cs101]\nparent = "faculty"\n' + _hours("cs101", "09:20", "10:00", 16)
    text += "[projects.science]\nguaranteed = 12\n" + _labs(4, 4, of_them=3)
    students = people(32, "cs101", 18 * MINUTE_S, HOUR_S, name="student", spread_s=240)
    return Story(text, machines(4, 8) + _borrow_all(4, 30, 1200, 3 * HOUR_S) + students, 70 * MINUTE_S)


def deadline() -> Story:
    """Three courses type through the night before, each within its guarantee."""
    courses = "".join(f'[projects.c{n}]\nparent = "faculty"\nguaranteed = 8\n' for n in range(3))
    text = f"[projects.faculty]\n{courses}[projects.science]\nguaranteed = 4\n" + _labs(6, 1, of_them=4)
    typing = [
        one
        for n in range(3)
        for one in people(8, f"c{n}", 15 * MINUTE_S, 60 * MINUTE_S, name=f"night{n}x", run_s=90, spread_s=10, seed=n)
    ]
    return Story(text, machines(4, 8) + _borrow_all(6, 12, 600, 2 * HOUR_S) + typing, 65 * MINUTE_S)


def batch_lab() -> Story:
    """A lab sends a hundred and fifty batch cells; then its own members type, no more of them than it is guaranteed."""
    text = "[qos.batch]\nqueued_per_user = 400\n[projects.lab]\nguaranteed = 8\n[projects.other]\nguaranteed = 8\n"
    batch = cells(150, "lab", 1, runs_s=(300, 1500), users=2, name="sent")
    batch += cells(30, "other", 5, runs_s=(300, 1500), users=10, name="others")
    typing = people(8, "lab", 20 * MINUTE_S, HOUR_S, name="member", run_s=60)
    return Story(text, machines(2, 8) + batch + typing, HOUR_S)


def sweep() -> Story:
    """One student in a course sweeps with a hundred and twenty cells of the class in which the others type."""
    text = "[qos.interactive]\nqueued_per_user = 400\n"
    text += "[projects.course]\nguaranteed = 12\n[projects.labs]\nguaranteed = 4\n"
    sent = cells(120, "course", 1, runs_s=(100, 900), users=1, qos="interactive", name="sweep")
    labs = cells(16, "labs", 0.5, runs_s=3 * HOUR_S, users=8, name="lab")
    typing = people(20, "course", 10 * MINUTE_S, 50 * MINUTE_S, name="student", think_s=120, spread_s=300)
    return Story(text, machines(2, 8) + sent + labs + typing, HOUR_S)


def whole_nodes() -> Story:
    """Sixteen groups ask for a node of eight each, at once; guests have borrowed all hundred and twenty-eight GPUs."""
    text = "".join(f"[projects.g{n}]\nguaranteed = 8\n" for n in range(16))
    guests = cells(128, "free", 1, runs_s=9 * HOUR_S, users=60, name="guest")
    asked = [
        one
        for n in range(16)
        for one in cells(1, f"g{n}", 600, runs_s=600, gpus=8, qos="interactive", name=f"whole{n}x")
    ]
    return Story(text, machines(16, 8) + guests + asked, 700)


def node_dies() -> Story:
    """Two of four nodes are gone in the middle of a course; one comes back with its cells, and one without."""
    text = "[projects.course]\nguaranteed = 8\n[projects.science]\nguaranteed = 16\n" + _labs(4, 4)
    typing = people(16, "course", 10 * MINUTE_S, HOUR_S, name="student", run_s=60)
    faults = [
        at(20 * MINUTE_S, hi.GoesSilent(AgentId("n0"))),
        at(20 * MINUTE_S + 5, hi.GoesSilent(AgentId("n1"))),
        at(35 * MINUTE_S, hi.Returns(AgentId("n0"))),
        at(36 * MINUTE_S, hi.Joins(AgentId("n1"), hi.gpus(8))),
    ]
    return Story(text, machines(4, 8) + _borrow_all(4, 16, 1200, 2 * HOUR_S) + typing + faults, 65 * MINUTE_S)


def exam() -> Story:
    """Twenty-four students have a reservation of twenty GPUs from 9:30 on; others of their course type on."""
    text = "[projects.cs]\nguaranteed = 4\n[projects.science]\nguaranteed = 8\n" + _labs(4, 0)
    text += reserve("exam", "cs", 20, "09:30", "10:00", *(f"exam-{n}" for n in range(24)))
    typing = people(24, "cs", 29 * MINUTE_S, HOUR_S, name="exam", run_s=60, spread_s=120)
    typing += people(12, "cs", 10 * MINUTE_S, HOUR_S, name="other", run_s=60)
    return Story(text, machines(4, 8) + _borrow_all(4, 16, 1200, 2 * HOUR_S) + typing, 65 * MINUTE_S)


def weekend() -> Story:
    """A researcher's `long` cells have borrowed the weekend, and a course comes back on Monday."""
    text = "[qos.long]\nqueued_per_user = 4\nrunning_per_user = 8\n"
    text += "[projects.course]\nguaranteed = 20\n[projects.lab]\nguaranteed = 4\n"
    long = cells(40, "lab", 1, runs_s=(20 * HOUR_S, 60 * HOUR_S), users=10, name="long", qos="long")
    typing = people(20, "course", 20 * MINUTE_S, 50 * MINUTE_S, name="student", run_s=60, spread_s=30)
    return Story(text, machines(4, 8) + long + typing, 55 * MINUTE_S)


def two_lectures() -> Story:
    """The class hours of one course end when those of another begin, of the same GPUs."""
    text = "[projects.faculty]\n" + "".join(f'[projects.c{n}]\nparent = "faculty"\n' for n in (1, 2))
    text += _hours("c1", "09:15", "09:40", 14) + _hours("c2", "09:40", "10:05", 14) + "[projects.lab]\nguaranteed = 2\n"
    batch = cells(30, "lab", 1, runs_s=(1200, 2 * HOUR_S), users=10)
    typing = people(16, "c1", 12 * MINUTE_S, 50 * MINUTE_S, name="first", run_s=60, think_s=40)
    typing += people(16, "c2", 35 * MINUTE_S, 60 * MINUTE_S, name="second", run_s=60, think_s=40)
    return Story(text, machines(2, 8) + batch + typing, 65 * MINUTE_S)


def bought() -> Story:
    """A lab has bought six of eight H100; everybody has cells on them, and on the L4 of the others."""
    text = (
        '[node_pools.h100]\ngpu = "H100"\n[projects.science]\nguaranteed = 12\nnode_pools = { h100 = 8 }\n'
        '[projects.vision]\nparent = "science"\nguaranteed = 8\nnode_pools = { h100 = 6 }\n'
        '[projects.astro]\nparent = "science"\nguaranteed = 4\n[projects.faculty]\nguaranteed = 12\n'
        '[projects.cs1]\nparent = "faculty"\nguaranteed = 8\n[projects.cs2]\nparent = "faculty"\nguaranteed = 4\n'
    )
    batch = cells(40, "free", 1, runs_s=(600, 2 * HOUR_S), users=20)
    batch += cells(12, "astro", 3, runs_s=(900, 2 * HOUR_S), users=6)
    typing = people(10, "cs1", 10 * MINUTE_S, 55 * MINUTE_S, name="one", run_s=60)
    typing += people(6, "cs2", 10 * MINUTE_S, 55 * MINUTE_S, name="two", run_s=60)
    owners = people(6, "vision", 20 * MINUTE_S, 55 * MINUTE_S, name="owner", run_s=200, think_s=90, gpu_type="H100")
    nodes = machines(2, 4, H100, "h") + machines(3, 8, L4, "l")
    return Story(text, nodes + batch + typing + owners, HOUR_S)


def budgets() -> Story:
    """A club of ten has six GPU-hours a day, and none is left after an hour; in a course each has one GPU."""
    text = (
        '[projects.club]\nguaranteed = 6\nbudget = "6 GPU-hours per day"\n'
        "[projects.cs]\nguaranteed = 8\nuser_limit = 1\n[projects.lab]\nguaranteed = 2\n"
    )
    typing = people(10, "club", 10, 1.5 * HOUR_S, run_s=200, think_s=30, walltime_ms=600_000)
    typing += people(16, "cs", 10, HOUR_S, run_s=60, think_s=40)
    return Story(text, machines(2, 8) + typing + cells(30, "lab", 1, runs_s=(300, 1800), users=10), 1.5 * HOUR_S)


def evening() -> Story:
    """A node is to be empty at ten; people plan that at 9:20."""
    text = "[projects.course]\nguaranteed = 8\n[projects.labs]\nguaranteed = 8\n"
    batch = cells(40, "labs", 1, runs_s=(300, 3 * HOUR_S), users=20, name="lab", walltime_ms=14_400_000)
    batch += cells(40, "labs", 1, runs_s=(300, 900), users=20, name="short", walltime_ms=1_200_000)
    typing = people(16, "course", 10 * MINUTE_S, 65 * MINUTE_S, name="student", run_s=60)
    plan = [at(20 * MINUTE_S, hi.PlansDrain(AgentId("n1"), 2_400_000))]
    return Story(text, machines(3, 8) + batch + typing + plan, 70 * MINUTE_S)


_ALL = (
    lecture,
    deadline,
    batch_lab,
    sweep,
    whole_nodes,
    node_dies,
    exam,
    weekend,
    two_lectures,
    bought,
    budgets,
    evening,
)

STORIES = {story.__name__: story for story in _ALL}
