"""Synthetic agents: what a node answers to the scheduler's actions, and after how long."""

from typing import assert_never

import msgspec

from bulletin.ids import AgentId, LeaseId, SessionId, SlotId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, EndLease, Evict, Grant, Pause, Reclaim, Refuse
from gpu_worker.simulator.curves import Curve


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """How long a node takes for what it does, in milliseconds; the same each time."""

    start_ms: int = 200  #: from a grant until the first cell begins: an executor is forked, its state travels
    hot_ms: int = 5  #: until a hot session begins its next cell
    evict_ms: int = 500  #: from Evict, or from the closing of the notebook, until the GPUs are free


class SimulatedLease(msgspec.Struct):
    """A lease that a node of the simulation holds, and what has become of its cell."""

    lease: LeaseId
    session: SessionId
    slots: tuple[SlotId, ...]
    walltime_ms: int
    since_ms: int
    has_cell: bool = True  #: a cell runs, or is on its way
    is_leaving: bool = False
    is_wanted: bool = False  #: reclaimed: it leaves when its cell ends
    is_taken: bool = False  #: its cell was ended by a reclaim, and is to run again


class ExecutorReady(msgspec.Struct, frozen=True):
    """The executor of a granted lease is up: its cell may begin."""

    lease: LeaseId


class GraceOver(msgspec.Struct, frozen=True):
    """The grace of a reclaimed lease is over."""

    lease: LeaseId


class SlotsFreed(msgspec.Struct, frozen=True):
    """The slots of a lease are free."""

    lease: LeaseId


class AgentReport(msgspec.Struct, frozen=True):
    """An agent tells the scheduler a fact."""

    event: ev.Event


class RequestRefused(msgspec.Struct, frozen=True):
    """The scheduler refused a request, and its kernel hears of it."""

    action: Refuse


#: What an action leads to, and after how many milliseconds.
DelayedOutcome = tuple[int, ExecutorReady | SlotsFreed | GraceOver | AgentReport | RequestRefused]


class PastLease(msgspec.Struct, frozen=True):
    """A lease that is over: how many slots it held, and for how long."""

    lease: LeaseId
    slots: int
    from_ms: int
    to_ms: int


class SimulatedNodes:
    """All the agents of a simulated pool: what they hold, what they answer, and how many of their GPUs are in use."""

    def __init__(self, sizes: tuple[int, ...], delays: Delays, width_ms: int) -> None:
        self.sizes = sizes
        self.delays = delays
        self.leases: dict[LeaseId, SimulatedLease] = {}
        self.past_leases: list[PastLease] = []
        self.evictions = 0
        self.reclaims = 0
        #: GPUs that are leased, and those of them on which a cell runs or is about to.
        self.leased = Curve(width_ms)
        self.busy = Curve(width_ms)

    def join(self) -> list[ev.AgentJoined]:
        """Return the events with which all nodes join: so many GPUs each, of one kind."""
        return [
            ev.AgentJoined(
                AgentId(f"n{node}"),
                f"n{node}",
                tuple(ev.Slot(SlotId(f"n{node}-gpu-{at}"), "gpu", "GPU", 80 * 10**9) for at in range(size)),
            )
            for node, size in enumerate(self.sizes)
        ]

    def perform(self, action: Action, now_ms: int) -> list[DelayedOutcome]:
        """Do what the scheduler says, as an agent (or a refused kernel) would; return what follows, and when."""
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
                return [(0, RequestRefused(action))]
            case _:
                assert_never(action)

    def _grant(self, grant: Grant, now_ms: int) -> list[DelayedOutcome]:
        self.leases[grant.lease] = SimulatedLease(grant.lease, grant.session, grant.slots, grant.walltime_ms, now_ms)
        self.leased.add(len(grant.slots), now_ms)
        self.busy.add(len(grant.slots), now_ms)
        return [(self.delays.start_ms, ExecutorReady(grant.lease))]

    def _evict(self, lease: LeaseId) -> list[DelayedOutcome]:
        held = self.leases.get(lease)
        if held is None:  # a lease that the agent does not know is over
            return [(0, AgentReport(ev.LeaseEnded(lease)))]
        if held.has_cell:  # CellStarted is the answer, and is on its way or was given
            return []
        if not held.is_leaving:
            self.evictions += 1
        return self.leave(lease)

    def _reclaim(self, reclaim: Reclaim) -> list[DelayedOutcome]:
        held = self.leases.get(reclaim.lease)
        if held is None:
            return [(0, AgentReport(ev.LeaseEnded(reclaim.lease)))]
        held.is_wanted = True
        return [(reclaim.grace_ms, GraceOver(reclaim.lease))] if held.has_cell else self.leave(reclaim.lease)

    def _pause(self, lease: LeaseId) -> list[DelayedOutcome]:
        """Decline, since no agent can pause a cell yet; a session without a cell leaves."""
        held = self.leases.get(lease)
        if held is None:
            return [(0, AgentReport(ev.LeaseEnded(lease)))]
        return [(0, AgentReport(ev.PauseDeclined(lease)))] if held.has_cell else self.leave(lease)

    def end_grace(self, lease: LeaseId) -> list[DelayedOutcome]:
        """End the cell of a reclaimed lease whose grace is over, if it still runs."""
        held = self.leases.get(lease)
        if held is None or not held.has_cell or held.is_leaving:
            return []
        self.reclaims += 1
        held.is_taken = True
        return self.leave(lease)

    def leave(self, lease: LeaseId) -> list[DelayedOutcome]:
        """Begin to free the slots of a lease in which no cell runs any more; nothing, if it leaves already."""
        held = self.leases.get(lease)
        if held is None or held.is_leaving:
            return []
        held.is_leaving = True
        return [(self.delays.evict_ms, SlotsFreed(lease))]

    def begin_hot(self, lease: LeaseId, now_ms: int) -> None:
        """Note that a hot session begins a cell by itself."""
        held = self.leases[lease]
        held.has_cell = True
        self.busy.add(len(held.slots), now_ms)

    def end_cell(self, lease: LeaseId, now_ms: int) -> None:
        """Note that a cell is over; its session stays hot."""
        held = self.leases[lease]
        held.has_cell = False
        self.busy.add(-len(held.slots), now_ms)

    def end_lease(self, lease: LeaseId, now_ms: int) -> SimulatedLease:
        """Note that the slots of a lease are free, and forget the lease; return what it was."""
        held = self.leases.pop(lease)
        self.leased.add(-len(held.slots), now_ms)
        if held.has_cell:
            self.busy.add(-len(held.slots), now_ms)
        self.past_leases.append(PastLease(lease, len(held.slots), held.since_ms, now_ms))
        return held
