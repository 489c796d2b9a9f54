"""Synthetic agents: what a node answers to the scheduler's actions, and after how long."""

from typing import assert_never

import msgspec

from bulletin.ids import AgentId, LeaseId, SessionId, SlotId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, EndLease, Evict, Grant, Pause, Reclaim, Refuse
from gpu_worker.simulator.curves import Curve
from gpu_worker.simulator.resident_sessions import Residence, ResidentSessions


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """How long a node takes for what it does, in milliseconds; the same each time."""

    start_ms: int = 200  #: from a grant until the executor is up: it is forked, and CUDA starts
    state_ms: int = 0  #: then until the cell's variables have travelled
    model_ms: int = 0  #: then until what the cell needs is on the GPU again, as a model and its data
    hot_ms: int = 5  #: until a hot session begins its next cell
    evict_ms: int = 500  #: from Evict, or from the closing of the notebook, until the GPUs are free

    @property
    def cold_ms(self) -> int:
        """From a grant until the first cell begins."""
        return self.start_ms + self.state_ms + self.model_ms

    @property
    def unhindered_ms(self) -> int:
        """The longest wait of a cell that waits for no other one: a hot session leaves, and it starts."""
        return self.evict_ms + self.cold_ms


class NodeFault(msgspec.Struct, frozen=True):
    """A node is lost with all that runs there, and comes back empty, or not at all."""

    node: int  #: its place among the nodes, from 0
    at_ms: int  #: since the start of the trace
    back_ms: int | None = None


class SimulatedLease(msgspec.Struct):
    """A lease that a node of the simulation holds, and what has become of its cell."""

    lease: LeaseId
    session: SessionId
    agent: AgentId
    slots: tuple[SlotId, ...]
    walltime_ms: int
    since_ms: int
    has_cell: bool = True  #: a cell runs, or is on its way
    hot_ms: int = 0  #: when its last cell ended
    is_warm: bool = False  #: when its last cell began, the session's memory was on the GPU
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

    def __init__(self, sizes: tuple[int, ...], delays: Delays, width_ms: int, residents: int = 0) -> None:
        self.sizes = sizes
        self.delays = delays
        self.leases: dict[LeaseId, SimulatedLease] = {}
        self.hot: dict[
            LeaseId, None
        ] = {}  #: those without a cell that do not leave, the one that is hot for longest first
        self.leaving = 0  #: GPUs of those that leave
        self.lost: set[AgentId] = set()
        self._residents = ResidentSessions(self._names(), residents) if residents else None
        self.past_leases: list[PastLease] = []
        self.evictions = 0
        self.reclaims = 0
        #: GPUs that are leased, and those of them on which a cell runs or is about to.
        self.leased = Curve(width_ms)
        self.busy = Curve(width_ms)

    def _names(self) -> dict[AgentId, int]:
        return {AgentId(f"n{node}"): size for node, size in enumerate(self.sizes)}

    @property
    def free(self) -> int:
        """How many GPUs of the nodes that are there are nobody's."""
        there = sum(size for agent, size in self._names().items() if agent not in self.lost)
        return there - sum(len(one.slots) for one in self.leases.values() if one.agent not in self.lost)

    def join(self) -> list[ev.AgentJoined]:
        """Return the events with which all nodes join: so many GPUs each, of one kind."""
        return [_joined(agent, size) for agent, size in self._names().items()]

    def lose(self, node: int) -> ev.AgentLost:
        """Return the event with which a node is lost."""
        agent = AgentId(f"n{node}")
        self.lost.add(agent)
        if self._residents is not None:
            self._residents.lose(agent)
        return ev.AgentLost(agent)

    def rejoin(self, node: int) -> ev.AgentJoined:
        """Return the event with which a lost node comes back, empty."""
        agent = AgentId(f"n{node}")
        self.lost.discard(agent)
        return _joined(agent, self.sizes[node])

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
        self.leases[grant.lease] = held = SimulatedLease(
            grant.lease, grant.session, grant.agent, grant.slots, grant.walltime_ms, now_ms
        )
        self.leased.add(len(grant.slots), now_ms)
        self.busy.add(len(grant.slots), now_ms)
        return [(self._begin(held, is_hot=False), ExecutorReady(grant.lease))]

    def _begin(self, held: SimulatedLease, *, is_hot: bool) -> int:
        """Begin a cell; after how long its code runs."""
        held.is_warm, begins_ms = is_hot, self.delays.hot_ms if is_hot else self.delays.cold_ms
        if self._residents is not None:
            found = self._residents.begin(held.agent, held.session)
            held.is_warm = found is Residence.THERE
            begins_ms = self.delays.hot_ms if held.is_warm else self.delays.cold_ms
            begins_ms += self.delays.evict_ms if found is Residence.DISPLACES else 0
        return begins_ms

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
        self.hot.pop(lease, None)
        self.leaving += len(held.slots)
        return [(self.delays.evict_ms if self._residents is None else 0, SlotsFreed(lease))]

    def evict_hot(self) -> list[DelayedOutcome]:
        """Let the session leave that has been hot for longest, if any is, though nobody has asked for its GPUs."""
        return self._evict(next(iter(self.hot))) if self.hot else []

    def forget(self, session: SessionId) -> None:
        """Free what a session whose notebook is closed has left on GPUs."""
        if self._residents is not None:
            self._residents.forget(session)

    def begin_hot(self, lease: LeaseId, now_ms: int) -> int:
        """Note that a hot session begins a cell by itself; return after how long its code runs."""
        held = self.leases[lease]
        held.has_cell = True
        self.hot.pop(lease, None)
        self.busy.add(len(held.slots), now_ms)
        return self._begin(held, is_hot=True)

    def end_cell(self, lease: LeaseId, now_ms: int) -> None:
        """Note that a cell is over; its session stays hot."""
        held = self.leases[lease]
        held.has_cell, held.hot_ms = False, now_ms
        self.hot[lease] = None
        self._note_end(held, now_ms)

    def _note_end(self, held: SimulatedLease, now_ms: int) -> None:
        self.busy.add(-len(held.slots), now_ms)
        if self._residents is not None:
            self._residents.end(held.session)

    def end_lease(self, lease: LeaseId, now_ms: int) -> SimulatedLease:
        """Note that the slots of a lease are free, and forget the lease; return what it was."""
        held = self.leases.pop(lease)
        self.leased.add(-len(held.slots), now_ms)
        self.leaving -= len(held.slots)
        if held.has_cell:
            self._note_end(held, now_ms)
        self.past_leases.append(PastLease(lease, len(held.slots), held.since_ms, now_ms))
        return held


def _joined(agent: AgentId, size: int) -> ev.AgentJoined:
    slots = tuple(ev.Slot(SlotId(f"{agent}-gpu-{at}"), "gpu", "GPU", 80 * 10**9) for at in range(size))
    return ev.AgentJoined(agent, agent, slots)
