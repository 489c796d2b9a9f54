"""What a cell asks of a pool (`ResourceSpec`), and what it was given (`LeaseInfo`)."""

import msgspec

from bulletin.ids import EnvironmentId, LeaseId, ProjectId


class ResourceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell asks of the pool, as the options of %%gpu say it. 0 and "" leave a thing to the pool."""

    gpus: int = 1
    qos: str | None = None  #: None leaves it to the project, and where that has no default it is the usual one
    usual_qos: str = "interactive"
    walltime_ms: int | None = None
    project: ProjectId | None = None
    environment: EnvironmentId | None = None
    label: str = ""
    gpu_type: str = ""
    gpu_memory_bytes: int = 0
    cpus: int = 0
    memory_bytes: int = 0
    keep_ms: int = 0  #: for so long after each cell its place is kept
    is_exclusive: bool = False  #: on a node that nobody else is on

    def is_like(self, other: "ResourceSpec") -> bool:
        """Tell whether a lease for one fits the other: they differ at most in how the cell is called."""
        return msgspec.structs.replace(self, label="") == msgspec.structs.replace(other, label="")


class LeaseInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The lease that a notebook holds, as people are told of it."""

    lease_id: LeaseId
    node: str
    slots: tuple[str, ...]
    slot_word: str  #: what the pool calls one slot: "GPU" or "CPU slot"
    #: Whether its project's guarantee covers it, as was heard last; None where the pool guarantees nothing.
    is_in_quota: bool | None = None
    #: What its GPUs count for in budgets and past use; None where they count for what they are.
    price_percent: int | None = None
    is_exclusive: bool = False  #: its slots are all that the node has, and nobody else is there
    memory_bytes: int = 0  #: of one of its slots; 0 is not known
    sizes: tuple[int, ...] = ()  #: the memory that slots of the pool have, each size once
