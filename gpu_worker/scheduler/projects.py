"""Who pays and what they are promised: projects and classes of service, as plain numbers."""

from enum import Enum

import msgspec

from bulletin.ids import ProjectId

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS


class Preemption(Enum):
    """What happens to a borrowed cell whose GPU is wanted back."""

    NEVER = "never"
    PAUSE = "pause"
    REQUEUE = "requeue"


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A hub group by default. Nests. Its numbers are kept here and not yet acted upon: every request is in quota."""

    id: ProjectId
    parent: ProjectId | None = None
    guaranteed: int = 0  #: GPUs it gets within the reclaim time
    limit: int | None = None  #: GPUs it never exceeds; None is no limit
    weight: int = 1  #: of what is left when all guarantees are met
    priority: int = 0  #: higher comes first


class QoS(msgspec.Struct, frozen=True, kw_only=True):
    """A named class of service. In force now: priority, walltime_ms, queued_per_user."""

    name: str
    priority: int  #: higher comes first
    walltime_ms: int  #: the longest a cell may run, and what it gets if it does not ask
    queued_per_user: int  #: requests of one user in the queue at once
    running_per_user: int | None = None  #: leases of one user at once; None is no limit
    grace_ms: int = 30_000  #: between the warning and the end, when reclaimed
    min_runtime_ms: int = 60_000  #: a younger cell is not reclaimed
    preemption: Preemption = Preemption.PAUSE
    usage_percent: int = 100  #: the usage factor: how much of its GPU time counts when use is compared


#: From what has worked at a university (DESIGN §6).
DEFAULT_QOS = (
    QoS(name="interactive", priority=200, walltime_ms=30 * _MINUTE_MS, queued_per_user=20),
    QoS(
        name="batch",
        priority=100,
        walltime_ms=24 * _HOUR_MS,
        queued_per_user=4,
        min_runtime_ms=5 * _MINUTE_MS,
        preemption=Preemption.REQUEUE,
    ),
    QoS(name="long", priority=100, walltime_ms=7 * 24 * _HOUR_MS, queued_per_user=1, running_per_user=1),
    QoS(
        name="reserved",
        priority=200,
        walltime_ms=12 * _HOUR_MS,
        queued_per_user=1,
        running_per_user=1,
        preemption=Preemption.NEVER,
    ),
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler is told once, at its start."""

    qos: tuple[QoS, ...] = DEFAULT_QOS
    projects: tuple[Project, ...] = ()
    start_ms: int = 60_000  #: a granted lease with no cell after this time is taken back
    ask_again_ms: int = 10_000  #: an agent that has not answered Evict or EndLease is asked again
    look_ahead: int = 16  #: requests for which slots are freed at the same time
