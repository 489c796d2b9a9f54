"""Who pays and what they are promised: projects, classes of service and class hours, as plain numbers.

GPUs are counted in thousandths: a guarantee may be 1.5 GPUs, and a MIG slice is a part of one. In a pool that has shown
no GPU, a CPU slot counts as one GPU does elsewhere.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from typing import Literal

import msgspec

from bulletin.ids import ProjectId, UserName
from bulletin.units import HOUR_MS, MINUTE_MS
from gpu_worker.scheduler.policy.class_hours import ClassHours, Window, guaranteed_at, moments, most_from
from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.prices import Price

#: One GPU, as projects are accounted.
GPU_MILLI = 1000
#: Users without a group pay from here.
DEFAULT_PROJECT = ProjectId("default")
#: Projects are nested this deep at most: a hub, its faculties, their courses, groups in them, and room to spare.
MOST_LEVELS = 16
#: In what GPU time is shown: the first one of which there is a whole one.
_GPU_TIMES = (("hour", HOUR_MS), ("minute", MINUTE_MS), ("second", 1000))


class Preemption(Enum):
    """What happens to a borrowed cell whose GPU is wanted back."""

    NEVER = "never"
    PAUSE = "pause"
    REQUEUE = "requeue"


class Budget(msgspec.Struct, frozen=True):
    """How much GPU time may be used in a period. Days, weeks from Monday and months begin at 0:00 UTC."""

    gpu_ms: int  #: GPUs times milliseconds
    period: Literal["day", "week", "month"]


class NodePool(msgspec.Struct, frozen=True, kw_only=True):
    """Slots of which projects may be guaranteed some: GPUs with such a name, or of nodes. A slot is in one at most."""

    name: str
    words: tuple[str, ...] = ()  #: of the GPU's name, in lower case
    nodes: tuple[str, ...] = ()  #: by their names


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A hub group by default. Nests: what its members use counts for it, and for all that it is in."""

    id: ProjectId
    parent: ProjectId | None = None
    guaranteed_milli: int = 0  #: what it gets within the reclaim time; at least the sum of what is in it
    limit_milli: int | None = None  #: what it never exceeds; None is no limit
    weight: int = 1  #: its part of what is left when all guarantees are met
    priority: int = 0  #: of what is left, the higher one takes first
    lending_limit_milli: int | None = None  #: how much of an unused guarantee others may use; None is all of it
    can_borrow: bool = True  #: False is a static quota: never more than is guaranteed
    budget: Budget | None = None
    user_limit_milli: int | None = None  #: what one of its users never exceeds
    class_hours: tuple[ClassHours, ...] = ()  #: when it is guaranteed more
    pool_guarantees: tuple[tuple[str, int], ...] = ()  #: of its guarantee: what it gets in each node pool
    #: Of each of its cells; None is what the project that it is in has.
    qos: tuple[str, ...] | None = None  #: classes of service that they may use
    default_qos: str | None = None  #: what they have if they name none
    gpus_per_cell: int | None = None  #: at most, all on one node
    walltime_ms: int | None = None  #: at most, whatever the class allows; and what they get if they do not ask
    #: For so long after its last cell a hot session keeps its GPU from those who borrow; None as above.
    keep_hot_ms: int | None = None
    #: What its users may have beyond its rules with nobody deciding; None as above. The scheduler does not ask.
    auto_grant_walltime_ms: int | None = None
    auto_grant_gpus: int | None = None
    auto_grant_for_ms: int | None = None  #: for so long
    auto_grants_per_week: int | None = None  #: of one user
    leads: tuple[UserName, ...] = ()  #: who may change what is inside it; the scheduler does not ask
    reservations: tuple[Reservation, ...] = ()  #: when it is guaranteed more, once each
    #: Of a reservation for them: while it is on, their cells of `parent` count here. Else empty: whoever names it.
    users: tuple[UserName, ...] = ()
    rule: str = ""  #: which rule of the quota file made it; empty where the file names it

    @property
    def is_bounded(self) -> bool:
        """Whether its own rules may keep those in it from running although there is room."""
        return self.limit_milli is not None or self.budget is not None or not self.can_borrow

    @property
    def windows(self) -> tuple[Window, ...]:
        """List when it is guaranteed more: class hours and reservations."""
        return (*self.class_hours, *self.reservations)


class QoS(msgspec.Struct, frozen=True, kw_only=True):
    """A named class of service: how long its cells may run, in which order they come, and what reclaims do to them."""

    name: str
    priority: int  #: higher comes first
    walltime_ms: int  #: the longest a cell may run, and what it gets if it does not ask
    queued_per_user: int  #: requests of one user in the queue at once
    running_per_user: int | None = None  #: leases of one user at once; None is no limit
    gpus_per_cell: int | None = None  #: what one cell has at most; None is no limit
    must_be_in_quota: bool = False  #: never borrows, whatever the project may
    grace_ms: int = 30_000  #: between the warning and the end, when reclaimed
    min_runtime_ms: int = 60_000  #: a younger cell is not reclaimed
    preemption: Preemption = Preemption.REQUEUE
    share_after_ms: int = 120_000  #: what has waited so long takes back what others use beyond their share
    patience_ms: int = HOUR_MS  #: what has waited so long is passed by nobody who is in quota, or borrows, as it does
    can_be_exclusive: bool = False  #: its cells may have a node that nobody else is on
    keep_ms: int = 0  #: for so long at most a cell may keep its slots after its end; the scheduler does not ask
    usage_percent: int = 100  #: the usage factor: how much of its GPU time counts when use is compared


#: From what has worked at a university (DESIGN §6).
DEFAULT_QOS = (
    QoS(
        name="interactive",
        priority=200,
        walltime_ms=30 * MINUTE_MS,
        queued_per_user=20,
        patience_ms=30 * MINUTE_MS,
    ),
    QoS(
        name="batch",
        priority=100,
        walltime_ms=24 * HOUR_MS,
        queued_per_user=4,
        patience_ms=4 * HOUR_MS,
    ),
    QoS(
        name="long",
        priority=100,
        walltime_ms=7 * 24 * HOUR_MS,
        queued_per_user=1,
        running_per_user=1,
        patience_ms=24 * HOUR_MS,
    ),
    QoS(
        name="reserved",
        priority=200,
        walltime_ms=12 * HOUR_MS,
        queued_per_user=1,
        running_per_user=1,
        must_be_in_quota=True,
        preemption=Preemption.NEVER,
        patience_ms=30 * MINUTE_MS,
        keep_ms=30 * MINUTE_MS,
    ),
)


class Problem(msgspec.Struct, frozen=True):
    """What is wrong with a project, and where. A warning is obeyed all the same."""

    project: ProjectId
    field: str
    sentence: str
    is_warning: bool = False


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler is told: at its start, and again when an admin changes it."""

    qos: tuple[QoS, ...] = DEFAULT_QOS
    projects: tuple[Project, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    start_ms: int = 60_000  #: a granted lease with no cell after this time is taken back
    ask_again_ms: int = 10_000  #: an agent that has not answered Evict or EndLease is asked again
    apart_ms: int = 10_000  #: how much later each further request of a user is due
    back_off_ms: int = 10_000  #: how long a project that was reclaimed from stands behind other borrowers
    longest_back_off_ms: int = 10 * MINUTE_MS  #: and at most: it doubles each time that it happens again
    look_ahead: int = 16  #: requests that no guarantee covers, for which slots are freed at the same time
    share_every_ms: int = 1_000  #: how often shares are looked at
    prices: tuple[Price, ...] = ()  #: of types of GPUs, where use adds up; the first that fits counts


class _Time(msgspec.Struct, frozen=True):
    """A time of the week, and what is guaranteed then."""

    words: str  #: when; empty outside all class hours
    own: Callable[[Project], int]
    inside: dict[ProjectId, int]
    began: tuple[ProjectId, Window] | None = None  #: the class hours or the reservation that begin then

    def excess(self, project: Project) -> int:
        """Compute what the projects inside this one are guaranteed beyond its own guarantee, if it has one."""
        own = self.own(project)
        return self.inside[project.id] - own if own > 0 else 0


def check_projects(projects: Sequence[Project], capacity_milli: int | None = None) -> list[Problem]:
    """List what cannot be, and what cannot be kept: of each project, and of them together.

    `capacity_milli` is what the pool has; None where nobody knows yet.
    """
    by_id: dict[ProjectId, Project] = {}
    problems: list[Problem] = []
    for project in projects:
        if project.id in by_id:
            problems.append(Problem(project.id, "id", f"The project {project.id!r} is there twice. Leave one out."))
        else:
            by_id[project.id] = project
            problems += _check_one(project)
    problems += _check_parents(by_id)
    if not problems:
        problems += _check_sums(by_id, capacity_milli)
    return problems


def usual(project: Project) -> int:
    """Find what a project itself is guaranteed outside its class hours: at least what it is in all node pools."""
    return max(project.guaranteed_milli, sum(milli for _, milli in project.pool_guarantees))


def in_force(now_ms: int) -> Callable[[Project], int]:
    """Find what a project itself is guaranteed at a time."""
    return lambda project: max(usual(project), guaranteed_at(project.windows, now_ms))


def most_in_force(now_ms: int) -> Callable[[Project], int]:
    """Find the most that a project itself is guaranteed at that time or any later one."""
    return lambda project: max(usual(project), most_from(project.windows, now_ms))


def guarantees(projects: Iterable[Project], own: Callable[[Project], int] = usual) -> dict[ProjectId, int]:
    """Compute what each project is guaranteed, in thousandths of a GPU: at least what its children are together.

    `own` says what a project itself is: `usual`, what is `in_force` at a time, or the `most_in_force` from then on.
    """
    by_id = {project.id: project for project in projects}
    children: dict[ProjectId | None, list[ProjectId]] = {}
    for project in by_id.values():
        children.setdefault(project.parent, []).append(project.id)
    downwards = list(children.get(None, ()))
    for at in downwards:  # it grows meanwhile: whatever a project is in comes before it
        downwards += children.get(at, ())
    inside: dict[ProjectId | None, int] = {}
    found: dict[ProjectId, int] = {}
    for at in reversed(downwards):
        found[at] = max(own(by_id[at]), inside.get(at, 0))
        inside[by_id[at].parent] = inside.get(by_id[at].parent, 0) + found[at]
    return found


def _check_one(project: Project) -> list[Problem]:
    problems = []

    def wrong(field: str, sentence: str) -> None:
        problems.append(Problem(project.id, field, sentence))

    for field in ("guaranteed_milli", "limit_milli", "lending_limit_milli", "user_limit_milli"):
        amount = getattr(project, field)
        if amount is not None and amount < 0:
            name = field.removesuffix("_milli")
            wrong(field, f"{name} of {project.id!r} is below 0. Write 0 or more GPUs, or leave it out.")
    if project.weight < 1:
        wrong("weight", f"weight of {project.id!r} is {project.weight}. Write a whole number from 1 on.")
    if project.limit_milli is not None and 0 <= project.limit_milli < usual(project):
        limit, guaranteed = show_gpus(project.limit_milli), show_gpus(usual(project))
        wrong(
            "limit_milli",
            f"{project.id!r} has {guaranteed} guaranteed and a limit of {limit}. "
            "Raise the limit or lower the guarantee.",
        )
    for window in project.windows:
        if project.limit_milli is not None and 0 <= project.limit_milli < window.guaranteed_milli:
            limit, guaranteed = show_gpus(project.limit_milli), show_gpus(window.guaranteed_milli)
            which = "class hours" if isinstance(window, ClassHours) else "reservation"
            wrong(
                f"{window.setting}.{window.name}",
                f"{project.id!r} has {guaranteed} guaranteed in its {which} {window.name!r} and a limit of {limit}. "
                "Raise the limit or lower the guarantee.",
            )
    if project.budget is not None and project.budget.gpu_ms < 0:
        wrong("budget", f"budget of {project.id!r} is below 0. Write 0 or more GPU-hours, or leave it out.")
    return problems


def _check_parents(by_id: dict[ProjectId, Project]) -> list[Problem]:
    """Parents that are not there, and projects that are inside themselves."""
    problems = []
    circular: set[ProjectId] = set()
    seen: dict[ProjectId, ProjectId] = {}  # on which way up, by where that began: each project is walked over once
    for first in by_id:
        at: ProjectId | None = first
        while at is not None and at in by_id and at not in seen:
            seen[at] = first
            at = by_id[at].parent
        if at is not None and seen.get(at) == first and at not in circular:  # this way came back to itself
            while at is not None and at not in circular:
                circular.add(at)
                at = by_id[at].parent
    for project in by_id.values():
        if project.id in circular:
            sentence = f"{project.id!r} is inside itself. Give it another parent."
            problems.append(Problem(project.id, "parent", sentence))
        elif project.parent is not None and project.parent not in by_id:
            name = project.id
            sentence = f"{name!r} is in {project.parent!r}, which is not there. Add that project, or correct the name."
            problems.append(Problem(name, "parent", sentence))
    return problems


def _check_sums(by_id: dict[ProjectId, Project], capacity_milli: int | None) -> list[Problem]:
    """Guarantees that promise more than there is: of children together, and of all together.

    Of all hours of the week, it is told of the worst: of the usual guarantees, unless some class hours make it worse.
    """
    timed = [(project, window) for project in by_id.values() for window in project.windows]
    times = [_Time("", usual, guarantees(by_id.values()))]
    for at_ms in moments(hours for _, hours in timed):
        began = next((project.id, one) for project, one in timed if one.begins(at_ms))
        words = f" {began[1].zone.show_moment(at_ms)}"
        times.append(_Time(words, in_force(at_ms), guarantees(by_id.values(), in_force(at_ms)), began))
    problems = []

    def warn(time: _Time, name: ProjectId, field: str, sentence: str) -> None:
        if time.began is not None and field == "guaranteed_milli":
            name, field = time.began[0], f"{time.began[1].setting}.{time.began[1].name}"
        problems.append(Problem(name, field, sentence, is_warning=True))

    for project in by_id.values():
        # What is reserved for some users is meant to be more than the project has otherwise.
        told = [time for time in times if time.began is None or not by_id[time.began[0]].users]
        worst = max(told, key=partial(_Time.excess, project=project))
        if worst.excess(project) > 0:
            promised, own = show_gpus(worst.inside[project.id]), show_gpus(worst.own(project))
            sentence = (
                f"{promised} are guaranteed inside {project.id!r}{worst.words}, which has {own} guaranteed itself. "
                f"It counts as {promised}. Raise its guarantee, or lower some inside it."
            )
            warn(worst, project.id, "guaranteed_milli", sentence)
        worst = max(times, key=lambda time: time.inside[project.id])
        if project.limit_milli is not None and project.limit_milli < worst.inside[project.id]:
            promised, limit = show_gpus(worst.inside[project.id]), show_gpus(project.limit_milli)
            inside = f"{promised} are guaranteed inside {project.id!r}{worst.words}"
            sentence = f"{inside}, whose limit is {limit}. Raise the limit."
            warn(worst, project.id, "limit_milli", sentence)
    tops = [project.id for project in by_id.values() if project.parent is None]
    worst = max(times, key=lambda time: sum(time.inside[name] for name in tops))
    top = sum(worst.inside[name] for name in tops)
    if capacity_milli is not None and top > capacity_milli:
        sentence = (
            f"{show_gpus(top)} are guaranteed{worst.words}, and the pool has {show_gpus(capacity_milli)}. When all are "
            "asked for, some will wait. Lower some, or add a node."
        )
        warn(worst, max(tops, key=worst.inside.__getitem__), "guaranteed_milli", sentence)
    return problems


def show_gpus(milli: int, *, on_cpu: bool | None = False) -> str:
    """Show an amount with its word: "1 GPU", "2.5 GPUs", "2 CPU slots"; where nobody knows which, "2 slots"."""
    amount = f"{milli / GPU_MILLI:.3f}".rstrip("0").rstrip(".")
    word = slot_word(on_cpu=on_cpu)
    return f"{amount} {word}" if milli == GPU_MILLI else f"{amount} {word}s"


def show_gpu_time(gpu_ms: int, *, on_cpu: bool | None = False) -> str:
    """Show GPUs times milliseconds: "200 GPU-hours", "1.5 GPU-minutes", "30 CPU slot-seconds"."""
    unit, unit_ms = next((one for one in _GPU_TIMES if gpu_ms >= one[1]), _GPU_TIMES[0])
    amount = f"{gpu_ms / unit_ms:.4g}" if unit_ms < HOUR_MS else f"{gpu_ms / unit_ms:g}"
    return f"{amount} {slot_word(on_cpu=on_cpu)}-{unit}{'' if amount == '1' else 's'}"


def slot_word(*, on_cpu: bool | None) -> str:
    """Return what people call a slot; None is of a pool that has shown none yet."""
    if on_cpu is None:
        return "slot"
    return "CPU slot" if on_cpu else "GPU"
