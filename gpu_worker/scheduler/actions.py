"""All that the scheduler may ask for, and all the reasons it may have to refuse."""

from collections.abc import Collection
from enum import Enum

import msgspec

from bulletin.ids import AgentId, LeaseId, ProjectId, RequestId, SessionId, SlotId
from bulletin.units import show_duration
from gpu_worker.scheduler.exclusive_reasons import NoSuchNode, NotExclusive
from gpu_worker.scheduler.policy.projects import GPU_MILLI, show_gpu_time, show_gpus, slot_word

#: What else somebody may do who is in other projects.
_OR_OTHER = ", or choose another project with --project"


class UnknownQoS(msgspec.Struct, frozen=True, tag=True):
    """The pool has no class of service of that name."""

    qos: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return f"there is no QoS {self.qos!r} in this pool. Choose {_one_of(self.known)} with --qos."


class WalltimeTooLong(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The cell asked for more time than its QoS gives, or an allowance of its user."""

    qos: str
    walltime_ms: int
    limit_ms: int
    is_allowance: bool = False  #: whether the limit is what the user was granted

    def __str__(self) -> str:
        asked, limit = show_duration(self.walltime_ms), show_duration(self.limit_ms)
        if asked == limit:  # "30 min is more than 30 min" helps nobody
            asked, limit = f"{self.walltime_ms} ms", f"{self.limit_ms} ms"
        whose = "you were granted" if self.is_allowance else f"QoS {self.qos!r} gives"
        return (
            f"a walltime of {asked} is more than the {limit} that {whose}. "
            "Ask for less with --time, or choose another QoS with --qos."
        )


class RefusedByProject(msgspec.Struct, frozen=True):
    """A rule or a limit of a project is in the way: who is in another one might ask at its expense."""

    def __str__(self) -> str:
        return self.describe(has_other_projects=True)

    def describe(self, *, has_other_projects: bool) -> str:
        """Say it to a person who is in other projects, too, or in none."""
        return self._words(has_other_projects=has_other_projects)

    def _words(self, *, has_other_projects: bool) -> str:
        raise NotImplementedError


class QoSNotAllowed(RefusedByProject, frozen=True, tag=True):
    """The project may not use that class of service."""

    project: ProjectId
    qos: str
    allowed: tuple[str, ...]

    def _words(self, *, has_other_projects: bool) -> str:
        other = ", or another project with --project" if has_other_projects else ""
        return (
            f"project {self.project!r} may not use QoS {self.qos!r}. Choose {_one_of(self.allowed)} with --qos{other}."
        )


class TooLongForProject(RefusedByProject, frozen=True, tag=True, omit_defaults=True):
    """The cell asked for more time than cells of the project may run, or an allowance of its user gives there."""

    project: ProjectId
    walltime_ms: int
    limit_ms: int
    is_allowance: bool = False

    def _words(self, *, has_other_projects: bool) -> str:
        asked, limit = show_duration(self.walltime_ms), show_duration(self.limit_ms)
        if asked == limit:
            asked, limit = f"{self.walltime_ms} ms", f"{self.limit_ms} ms"
        there = f"project {self.project!r}"
        whose = f"you were granted in {there}" if self.is_allowance else f"a cell of {there} may run"
        return (
            f"a walltime of {asked} is more than the {limit} that {whose}. "
            f"Ask for less with --time{_OR_OTHER if has_other_projects else ''}."
        )


class TooManyPerCell(RefusedByProject, frozen=True, tag=True, omit_defaults=True):
    """One cell of the project, or of the class of service, may not have as many GPUs."""

    gpus: int
    limit: int
    project: ProjectId | None  #: whose rule it is; None is the class of service's
    qos: str
    on_cpu: bool
    is_allowance: bool = False

    def _words(self, *, has_other_projects: bool) -> str:
        asked, limit = count(self.gpus, on_cpu=self.on_cpu), count(self.limit, on_cpu=self.on_cpu)
        whose, other = f"project {self.project!r}", _OR_OTHER if has_other_projects else ""
        if self.project is None:
            whose, other = f"QoS {self.qos!r}", ", or choose another QoS with --qos"
        were = "was" if self.gpus == 1 else "were"
        may = f"you were granted {limit}" if self.is_allowance else f"one cell in {whose} may have {limit}"
        return (
            f"{asked} {were} asked for, and {may}. Ask for {self.limit}"
            f"{' or fewer' if self.limit > 1 else ''} with --gpus{other}."
        )


class TooManyGpus(msgspec.Struct, frozen=True, tag=True):
    """No node of the pool could ever hold the request."""

    gpus: int
    largest: int  #: what the largest node offers of what the request would use
    on_cpu: bool  #: the request would use CPU slots: it wants no GPU, or the pool has none
    with_what: str = ""  #: what else each of them must have, in words

    def __str__(self) -> str:
        if self.gpus == 0:
            return "no node of this pool offers a CPU slot. Ask for a GPU with --gpus 1."
        if self.on_cpu:
            return (
                f"{count(self.gpus, on_cpu=True)} on one node were asked for, and the largest node of this pool, which "
                f"has no GPU, offers {self.largest}. Ask for {self.largest} or fewer with --gpus."
            )
        return (
            f"{count(self.gpus, on_cpu=False)}{self.with_what} on one node were asked for, and the largest node of "
            f"this pool has {self.largest}. Ask for {self.largest} or fewer with --gpus."
        )


class NoSuchGpu(msgspec.Struct, frozen=True, tag=True):
    """No GPU of the pool was ever of this type, and slices serve only who names them."""

    gpu_type: str
    offered: tuple[str, ...]  #: names of what there is
    on_cpu: bool

    def __str__(self) -> str:
        if self.on_cpu:
            return "this pool offers CPU slots for such a cell, and no GPU. Leave --gpu-type and --gpu-memory out."
        return (
            f"no GPU of this pool is of type {self.gpu_type!r}. Choose one with words of its name, as in --gpu-type "
            f'"A100": {", ".join(self.offered)}. A slice is given to who names it, as in --gpu-type "MIG 1g.10gb".'
        )


class TooLarge(msgspec.Struct, frozen=True, tag=True):
    """No node of the pool ever offered as much of something, or of all together."""

    option: str  #: what asked for it; empty where each is there, but not on one node
    asked: str
    most: str
    of: str = "node"

    def __str__(self) -> str:
        if not self.option:
            return "no node of this pool has all that was asked for, though each of it is there. Ask for less of one."
        return (
            f"{self.option} asks for {self.asked}, and the most that one {self.of} of this pool has is {self.most}. "
            "Ask for less."
        )


class OverLimit(RefusedByProject, frozen=True, tag=True, omit_defaults=True):
    """More than the project, one that it is in, or one of its users may ever use."""

    project: ProjectId
    cost_milli: int
    limit_milli: int
    of_user: bool
    on_cpu: bool | None  #: None where the pool has shown no slot yet
    is_allowance: bool = False

    def _words(self, *, has_other_projects: bool) -> str:
        limit = show_gpus(self.limit_milli, on_cpu=self.on_cpu)
        whose = f"one user of project {self.project!r}" if self.of_user else f"project {self.project!r}"
        if self.limit_milli >= GPU_MILLI:
            advice = f"Ask for fewer with --gpus{_OR_OTHER if has_other_projects else ''}."
        elif has_other_projects:
            advice = "Choose another project with --project."
        else:
            advice = "It is your only project: ask an admin of the pool for a higher limit."
        may = f"you were granted {limit}" if self.is_allowance else f"{whose} may use {limit} at most"
        return f"{_asked(self.cost_milli, on_cpu=self.on_cpu)}, and {may}. {advice}"


class OverBudget(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """More time than the project's, or an outer one's, whole budget has: it would never start."""

    project: ProjectId
    cost_milli: int
    walltime_ms: int
    budget_ms: int  #: GPUs times milliseconds
    period: str
    on_cpu: bool | None  #: None where the pool has shown no slot yet
    charged_milli: int | None = None  #: the cost at its price; None is no price
    dearest: str = ""  #: the type that has this price; empty where none is written

    def __str__(self) -> str:
        if not self.budget_ms:
            asked = _asked(self.cost_milli, on_cpu=self.on_cpu)
            return f"{asked}, and the budget of project {self.project!r} is 0 GPU-hours each {self.period}."
        gpus, whole = show_gpus(self.cost_milli, on_cpu=self.on_cpu), show_gpu_time(self.budget_ms, on_cpu=self.on_cpu)
        charged = self.charged_milli or self.cost_milli
        most_ms = self.budget_ms * GPU_MILLI // charged
        price = show_price(charged, self.cost_milli, self.dearest) if self.dearest else ""
        other = ", or name a cheaper type with --gpu-type" if price else ""
        return (
            f"{gpus}{price} for {show_duration(self.walltime_ms)} is more than the {whole} that project "
            f"{self.project!r} has each {self.period}. Ask for {show_duration(most_ms)} or less with --time{other}."
        )


def show_price(charged: int, cost: int, dearest: str) -> str:
    """Say at which price a request is charged, and why so: " at the price of 4 of NVIDIA H100"."""
    price = f"{charged / max(1, cost):.2f}".rstrip("0").rstrip(".")
    return f" at the price {price} of {dearest}"


def name_pools(names: Collection[str]) -> str:
    """Name node pools: "node pools 'a' and 'b'"."""
    return f"node pool{'s' if len(names) > 1 else ''} {' and '.join(map(repr, names))}"


class NeverInQuota(RefusedByProject, frozen=True, tag=True, omit_defaults=True):
    """The QoS never borrows, and the project is not guaranteed as much, or not where the request could run."""

    qos: str
    project: ProjectId
    cost_milli: int
    guaranteed_milli: int
    on_cpu: bool | None  #: None where the pool has shown no slot yet
    homes: tuple[str, ...] = ()  #: the node pools that the project is guaranteed, beside which it has so much

    def _words(self, *, has_other_projects: bool) -> str:
        asked = _asked(self.cost_milli, on_cpu=self.on_cpu)
        promised = show_gpus(self.guaranteed_milli, on_cpu=self.on_cpu)
        other = ", or another project with --project" if has_other_projects else ""
        what, home = f"project {self.project!r} has {promised} guaranteed", ""
        if self.homes:
            homes = name_pools(self.homes)
            whole = f"all that project {self.project!r} is guaranteed is in {homes}"
            what = f"{what} beside {homes}" if self.guaranteed_milli else whole
            home = f"GPUs of {homes} with --gpu-type, "
        either = "" if has_other_projects or not home else "or "
        return (
            f"{asked} in QoS {self.qos!r}, which never borrows, and {what}. "
            f"Choose {home}{either}another QoS with --qos{other}."
        )


class QueueFull(msgspec.Struct, frozen=True, tag=True):
    """The user has as many requests in the queue as the QoS allows."""

    qos: str
    limit: int

    def __str__(self) -> str:
        return (
            f"{self.limit} of your requests wait already, which is all that QoS {self.qos!r} allows. "
            "Stop one of your waiting cells, or run this one when one of them has started."
        )


class Replaced(msgspec.Struct, frozen=True, tag=True):
    """The same session asked again, so its earlier request is over: a kernel runs one cell at a time."""

    by: RequestId

    def __str__(self) -> str:
        return "a newer cell of the same notebook took its place in the queue."


Reason = (
    UnknownQoS
    | QoSNotAllowed
    | WalltimeTooLong
    | TooLongForProject
    | NotExclusive
    | TooManyPerCell
    | TooManyGpus
    | NoSuchGpu
    | NoSuchNode
    | TooLarge
    | OverLimit
    | OverBudget
    | NeverInQuota
    | QueueFull
    | Replaced
)


class Grant(msgspec.Struct, frozen=True, tag=True):
    """Give the slots to the session. Repeated, unchanged, when a request is submitted again before its cell began."""

    request: RequestId
    lease: LeaseId
    session: SessionId
    agent: AgentId
    slots: tuple[SlotId, ...]
    walltime_ms: int


class Refuse(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Tell the kernel that its request is over; `str(reason)` is the sentence for people."""

    request: RequestId
    reason: Reason
    had_own_node: bool = False  #: a node that its user has brought could run it, and has been gone for too long


class Right(Enum):
    """By what right a running cell is taken back."""

    GUARANTEE = "guarantee"  #: the project is guaranteed what it asks for, and the cell borrows
    CLASS = "class"  #: of the same project, whose higher classes of service come first
    SHARE = "share"  #: of somebody who has less of the surplus, or of the project
    ADMIN = "admin"  #: nobody asks for it: an admin has the cell run again


class Evict(msgspec.Struct, frozen=True, tag=True):
    """Ask the agent to take a session off its slots unless a cell runs. It answers CellStarted or LeaseEnded.

    Repeated after a while without an answer: an agent that no longer knows the lease answers LeaseEnded.
    """

    lease: LeaseId


class Reclaim(msgspec.Struct, frozen=True, tag=True):
    """Ask the agent to free a lease whose cell runs: when the cell ends, or after the grace, whichever comes first.

    The cell is run again when its kernel asks for it. The agent answers LeaseEnded; the action is repeated until then.
    """

    lease: LeaseId
    grace_ms: int
    right: Right = Right.GUARANTEE  #: by which it is taken back


class Pause(msgspec.Struct, frozen=True, tag=True):
    """Ask the agent to move a session whose cell runs off its slots, with its state, so that the cell can go on later.

    The agent answers LeaseEnded when the slots are free, or PauseDeclined at once: then the lease is reclaimed, as
    it is where no answer comes.
    """

    lease: LeaseId
    grace_ms: int


class Why(Enum):
    """Why a lease is over without its session's doing."""

    NODE_LOST = "node-lost"
    NOT_HELD = "not-held"  #: its agent came back without it: the agent was started anew
    SUPERSEDED = "superseded"  #: its node was thought lost, and its session went on elsewhere


class EndLease(msgspec.Struct, frozen=True, tag=True):
    """A lease is over: tell its kernel, and its agent, which ends it whatever runs.

    Superseded: its slots stay taken until the agent answers LeaseEnded, and the action is repeated until then; the
    kernel has long been told. Not held: the agent may yet receive a grant that was on its way, and must drop it.
    """

    lease: LeaseId
    why: Why


Action = Grant | Refuse | Evict | Reclaim | Pause | EndLease


def _asked(milli: int, *, on_cpu: bool | None) -> str:
    return f"{show_gpus(milli, on_cpu=on_cpu)} {'was' if milli == GPU_MILLI else 'were'} asked for"


def _one_of(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def count(number: int, *, on_cpu: bool) -> str:
    """Show the number with its word: "1 GPU", "2 CPU slots"."""
    word = slot_word(on_cpu=on_cpu)
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
