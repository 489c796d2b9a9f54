"""What the referee knows of a request that waits, and of a lease that is not over."""

from dataclasses import dataclass

from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.prices import Price

#: In which a cell runs, or may begin.
USING = ("granted", "busy", "reclaiming")
HOLDING = (*USING, "hot", "leaving", "ending")


@dataclass
class Wish:
    """A request that has not ended."""

    event: ev.RequestSubmitted
    order: tuple[int, int]
    walltime_ms: int = 0
    due: int = 0
    since_ms: int = 0


@dataclass
class Tenancy:
    """A lease as the world knows it."""

    session: str
    agent: str
    slots: tuple[str, ...]
    state: str  # one of HOLDING
    since_ms: int
    project: str
    user: str
    qos: str
    busy_ms: int = 0
    request: str | None = None
    cell: str | None = None
    hot_since: int = 0
    asked_ms: int = 0
    grant: act.Grant | None = None
    begun_ms: int = 0
    is_pausing: bool = False
    age: tuple[int, int] | None = None  # when it was due, and its number
    cpus: int = 0
    memory_bytes: int = 0
    gpu_type: str = ""  # what was asked for, as far as it is known
    gpu_memory_bytes: int = 0
    walltime_ms: int = 0
    prices: tuple[Price, ...] = ()  # those in force when it was granted, or its last cell began
    is_exclusive: bool = False
    home: str = ""  # what was named: `project` is that, or what is reserved in it
