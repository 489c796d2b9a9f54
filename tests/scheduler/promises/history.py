"""A history as data: what there is, what people want and what goes wrong. All else follows from that."""

import zlib
from typing import Literal

import msgspec

from bulletin.ids import AgentId, ProjectId, SessionId, SlotId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.projects import SchedulerSettings

GB = 2**30


class CellPlan(msgspec.Struct, frozen=True):
    """One cell of a notebook."""

    think_ms: int  #: from the end of the one before
    run_ms: int


class Opens(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Somebody opens a notebook and runs its cells, one after the other."""

    session: SessionId
    user: UserName
    project: ProjectId
    qos: str
    cells: tuple[CellPlan, ...]
    gpus: int = 1
    walltime_ms: int | None = None
    gpu_type: str = ""
    gpu_memory_bytes: int = 0
    cpus: int = 0
    memory_bytes: int = 0
    patience_ms: int | None = None  #: after so long it withdraws its request
    closes_ms: int | None = None  #: so long after its last cell it lets go of its GPU; None is never
    keep_ms: int = 0  #: for so long after a cell its GPU is kept for it (`--keep`)
    is_exclusive: bool = False  #: on a node that it has alone


class Joins(msgspec.Struct, frozen=True, tag=True):
    """An agent starts, or starts again and knows of no lease."""

    agent: AgentId
    slots: tuple[ev.Slot, ...]
    cpus: int = 0
    memory_bytes: int = 0
    owner: UserName = UserName("")  #: who has brought the node


class GoesSilent(msgspec.Struct, frozen=True, tag=True):
    """An agent is not heard of for too long, and goes on with what it does."""

    agent: AgentId


class Returns(msgspec.Struct, frozen=True, tag=True):
    """An agent that was silent, or lost its link unseen, comes back and says what it holds."""

    agent: AgentId


class Drains(msgspec.Struct, frozen=True, tag=True):
    """An admin wants a node empty, or no longer."""

    agent: AgentId
    is_drained: bool


class Changes(msgspec.Struct, frozen=True, tag=True):
    """An admin changes the settings."""

    settings: SchedulerSettings


class ClockJumps(msgspec.Struct, frozen=True, tag=True):
    """The clock is set forward."""

    by_ms: int


class AsksAgain(msgspec.Struct, frozen=True, tag=True):
    """A kernel sends its request once more, or tells once more that a cell began."""

    session: SessionId


class GivesUp(msgspec.Struct, frozen=True, tag=True):
    """Somebody stops a cell that waits."""

    session: SessionId


class ByHand(msgspec.Struct, frozen=True, tag=True):
    """A person changes the request that a session has, or its cell."""

    session: SessionId
    what: Literal["hold", "hold-own", "release", "put-first", "requeue", "extend", "boost"]


class Allows(msgspec.Struct, frozen=True, tag=True):
    """What somebody asked for is granted for so long, or ends: then that is 0."""

    name: str
    project: ProjectId
    user: UserName
    for_ms: int
    walltime_ms: int = 0
    gpus: int = 0
    is_exclusive: bool = False


class PlansDrain(msgspec.Struct, frozen=True, tag=True):
    """An admin wants a node empty from a time on."""

    agent: AgentId
    in_ms: int


class TicksEarly(msgspec.Struct, frozen=True, tag=True):
    """The timer rings before its time."""


Happening = (
    Opens
    | Joins
    | GoesSilent
    | Returns
    | Drains
    | Changes
    | ClockJumps
    | AsksAgain
    | GivesUp
    | ByHand
    | Allows
    | PlansDrain
    | TicksEarly
)


class At(msgspec.Struct, frozen=True):
    """Something happens at a time after the beginning of the history."""

    ms: int
    what: Happening


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """How long things take. Each is drawn anew between 0 and this, by the history's seed and the name of the lease."""

    evict_ms: int = 0  #: until a session has left
    start_ms: int = 0  #: from the grant until the cell begins
    tick_ms: int = 0  #: how late the timer is
    lost_percent: int = 0  #: of the answers of agents that never arrive, once
    early_percent: int = 0  #: of the cells that are taken back and end in their grace
    stalled_percent: int = 0  #: of the grants after which no cell begins
    ask_again_ms: int = 0  #: until a kernel whose cell was taken back or lost asks again
    noted_only_percent: int = 0  #: of facts on which a busy broker has the scheduler decide a moment later


class History(msgspec.Struct, frozen=True, kw_only=True):
    """All that is given. The same history is played the same way each time."""

    seed: int = 0
    begin_ms: int = 1_760_000_000_000  #: of the clock, when it begins
    until_ms: int = 3_600_000
    settings: SchedulerSettings
    delays: Delays = Delays()
    happenings: tuple[At, ...] = ()

    def draw(self, most: int, *names: object) -> int:
        """Draw a number from 0 to `most`, the same for the same names."""
        if most <= 0:
            return 0
        words = ":".join(map(str, (self.seed, *names)))
        return (zlib.crc32(words.encode()) * 2_654_435_761 % 2**32) % (most + 1)


def gpus(number: int, name: str = "NVIDIA A100", memory: int = 80 * GB) -> tuple[ev.Slot, ...]:
    """Make the slots of a node with so many GPUs."""
    return tuple(ev.Slot(SlotId(f"gpu{index}"), "gpu", name, memory) for index in range(number))


def slices(number: int, name: str = "NVIDIA A100 MIG 1g.10gb", milli: int = 125) -> tuple[ev.Slot, ...]:
    """Make the slots of a GPU that is cut into slices."""
    return tuple(ev.Slot(SlotId(f"mig{index}"), "mig", name, 10 * GB, milli) for index in range(number))


def cpu_slots(number: int) -> tuple[ev.Slot, ...]:
    """Make the CPU slots of a node."""
    return tuple(ev.Slot(SlotId(f"cpu{index}"), "cpu", "CPU", 0) for index in range(number))
