"""Synthetic agents: what a node answers to the scheduler's actions, and after how long."""

from typing import assert_never

import msgspec

from bulletin.ids import AgentId, LeaseId, SessionId, SlotId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, EndLease, Evict, Grant, Pause, Reclaim, Refuse
from gpu_worker.simulator.curves import Curve


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """How long a node takes, always."""

    start_ms: int = 200  #: from a grant until the first cell begins: an executor is forked, its state travels
    hot_ms: int = 5  #: until a hot session begins its next cell
    evict_ms: int = 500  #: from Evict, or from the closing of the notebook, until the GPUs are free


class Tenant(msgspec.Struct):
    """A lease that a node holds."""

    lease: LeaseId
    session: SessionId
    slots: tuple[SlotId, ...]
    walltime_ms: int
    since_ms: int
    has_cell: bool = True  #: a cell runs, or is on its way
    is_leaving: bool = False
    is_wanted: bool = False  #: reclaimed: it leaves when its cell ends
    is_taken: bool = False  #: its cell was ended by a reclaim, and is to run again


class Begin(msgspec.Struct, frozen=True):
    """The executor of a granted lease is up, and its cell begins."""

    lease: LeaseId


class TakeBack(msgspec.Struct, frozen=True):
    """The grace of a reclaimed lease is over."""

    lease: LeaseId


class Leave(msgspec.Struct, frozen=True):
    """The slots of a lease are free."""

    lease: LeaseId


class Tell(msgspec.Struct, frozen=True):
    """The agent has something to say to the scheduler."""

    event: ev.Event


class Turned(msgspec.Struct, frozen=True):
    """A request is refused: its kernel hears of it."""

    action: Refuse


#: What an action leads to, and after how many milliseconds.
Outcome = tuple[int, Begin | Leave | TakeBack | Tell | Turned]


class Stay(msgspec.Struct, frozen=True):
    """A lease that is over: how many slots it held, and for how long."""

    lease: LeaseId
    slots: int
    from_ms: int
    to_ms: int


class Nodes:
    """All the agents of the pool, and what they hold."""

    def __init__(self, sizes: tuple[int, ...], delays: Delays, width_ms: int) -> None:
        self.sizes, self.delays = sizes, delays
        self.tenants: dict[LeaseId, Tenant] = {}
        self.stays: list[Stay] = []
        self.evictions = self.reclaims = 0
        #: GPUs that are leased, and those that are leased and have a cell.
        self.leased, self.busy = Curve(width_ms), Curve(width_ms)

    def join(self) -> list[ev.AgentJoined]:
        """How the nodes introduce themselves."""
        return [
            ev.AgentJoined(
                AgentId(f"n{node}"),
                f"n{node}",
                tuple(ev.Slot(SlotId(f"n{node}-gpu-{at}"), "gpu", "GPU", 80 * 10**9) for at in range(size)),
            )
            for node, size in enumerate(self.sizes)
        ]

    def perform(self, action: Action, now_ms: int) -> list[Outcome]:
        """What an agent does when it is told so, and a kernel that is refused: a new action is a new case here."""
        match action:
            case Grant():
                return self._grant(action, now_ms)
            case Evict():
                return self._evict(action.lease)
            case Reclaim():
                return self._reclaim(action)
            case Pause():
                return self._pause(action.lease)
            case EndLease():
                return self.leave(action.lease)
            case Refuse():
                return [(0, Turned(action))]
            case _:
                assert_never(action)

    def _grant(self, grant: Grant, now_ms: int) -> list[Outcome]:
        self.tenants[grant.lease] = Tenant(grant.lease, grant.session, grant.slots, grant.walltime_ms, now_ms)
        self.leased.add(len(grant.slots), now_ms)
        self.busy.add(len(grant.slots), now_ms)
        return [(self.delays.start_ms, Begin(grant.lease))]

    def _evict(self, lease: LeaseId) -> list[Outcome]:
        tenant = self.tenants.get(lease)
        if tenant is None:  # a lease that the agent does not know is over
            return [(0, Tell(ev.LeaseEnded(lease)))]
        if tenant.has_cell:  # CellStarted is the answer, and is on its way or was given
            return []
        self.evictions += not tenant.is_leaving
        return self.leave(lease)

    def _reclaim(self, reclaim: Reclaim) -> list[Outcome]:
        tenant = self.tenants.get(reclaim.lease)
        if tenant is None:
            return [(0, Tell(ev.LeaseEnded(reclaim.lease)))]
        tenant.is_wanted = True
        return [(reclaim.grace_ms, TakeBack(reclaim.lease))] if tenant.has_cell else self.leave(reclaim.lease)

    def _pause(self, lease: LeaseId) -> list[Outcome]:
        """No agent can pause a cell yet."""
        tenant = self.tenants.get(lease)
        if tenant is None:
            return [(0, Tell(ev.LeaseEnded(lease)))]
        return [(0, Tell(ev.PauseDeclined(lease)))] if tenant.has_cell else self.leave(lease)

    def take_back(self, lease: LeaseId) -> list[Outcome]:
        """The grace is over: a cell that still runs is ended."""
        tenant = self.tenants.get(lease)
        if tenant is None or not tenant.has_cell or tenant.is_leaving:
            return []
        self.reclaims += 1
        tenant.is_taken = True
        return self.leave(lease)

    def leave(self, lease: LeaseId) -> list[Outcome]:
        """Free the slots of a lease in which no cell runs any more."""
        tenant = self.tenants.get(lease)
        if tenant is None or tenant.is_leaving:
            return []
        tenant.is_leaving = True
        return [(self.delays.evict_ms, Leave(lease))]

    def begin_hot(self, lease: LeaseId, now_ms: int) -> None:
        """A hot session begins a cell by itself."""
        tenant = self.tenants[lease]
        tenant.has_cell = True
        self.busy.add(len(tenant.slots), now_ms)

    def end_cell(self, lease: LeaseId, now_ms: int) -> None:
        """A cell is over; its session stays hot."""
        tenant = self.tenants[lease]
        tenant.has_cell = False
        self.busy.add(-len(tenant.slots), now_ms)

    def end_lease(self, lease: LeaseId, now_ms: int) -> Tenant:
        """The slots are free."""
        tenant = self.tenants.pop(lease)
        self.leased.add(-len(tenant.slots), now_ms)
        if tenant.has_cell:
            self.busy.add(-len(tenant.slots), now_ms)
        self.stays.append(Stay(lease, len(tenant.slots), tenant.since_ms, now_ms))
        return tenant
