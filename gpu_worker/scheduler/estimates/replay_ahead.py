"""When each of those who wait will start at the latest: the scheduler itself, stepped ahead in virtual time.

A second scheduler goes on from a copy of the state. Nobody new comes, every cell uses its whole walltime, who is asked
to give back takes all of the grace and then asks again, and agents answer at once. So whatever the rules are, an
estimate follows them: none is written here a second time.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import assert_never

import msgspec

from bulletin.ids import CellId, LeaseId, RequestId
from bulletin.units import DAY_MS
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, EndLease, Evict, Grant, Pause, Reclaim, Refuse
from gpu_worker.scheduler.admission.cell_rules import most_walltime_ms
from gpu_worker.scheduler.estimate_cache import Start
from gpu_worker.scheduler.estimates.state_copy import copy_state
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.state import State

#: Whoever waits longer than two of the longest periods of a budget is told nothing.
_HORIZON_MS = 62 * DAY_MS
#: Events are put in order by their number, times a factor, modulo this prime.
_ORDERED = 65_521


class GraceEnds(msgspec.Struct, frozen=True):
    """A reclaimed cell has used all of its grace."""

    lease: LeaseId


class WalltimeEnds(msgspec.Struct, frozen=True):
    """A cell has used all of its walltime."""

    lease: LeaseId
    cell: CellId


#: What is planned in a replay.
Foreseen = ev.Event | GraceEnds | WalltimeEnds


class ReplayAhead:
    """One replay, as far as it was run. The state that it begins with is copied, and stays as it is."""

    def __init__(self, state: State, now_ms: int, order: int = 1) -> None:
        """Begin at `now_ms`, in the time of the scheduler's steps; `order` is a factor (see `_plan`)."""
        self.now_ms = now_ms
        self.steps = 0  #: events that the scheduler was told so far
        self.has_ties = False  #: something happens at the same time as something else: another order may do otherwise
        self.starts: dict[RequestId, Start] = {}  #: when each one is granted, of those reached so far
        self._order = order
        self._until_ms = now_ms + _HORIZON_MS
        self._scheduler = Scheduler()
        self._scheduler.settings, self._scheduler.state = state.settings, copy_state(state)
        #: Those that nothing is known of yet; of those on hold nobody knows anything.
        self._waiting = dict.fromkeys(one.id for one in state.pending.values() if one.hold is None)
        self._heap: list[tuple[int, int, int, Foreseen]] = []
        self._seq = 0
        self._named = 0
        #: When class hours began or ended so that a request may run, and so that a lease was reclaimed.
        self._freed: dict[RequestId, int] = {}
        self._reclaimed: dict[LeaseId, int] = {}
        self._tell(ev.Tick())
        for lease in list(self._state.leases.values()):
            self._foresee(lease)

    @property
    def _state(self) -> State:
        return self._scheduler.state

    def run(self, most_steps: int) -> bool:
        """Go on for so many steps at most; whether all that can be known is known."""
        last = self.steps + most_steps
        while self._waiting and self.steps < last:
            tick_ms = self._scheduler.deadline()
            if self._heap and (tick_ms is None or self._heap[0][0] <= tick_ms):
                self.now_ms, _, _, event = heappop(self._heap)
                self.has_ties |= bool(self._heap) and self._heap[0][0] == self.now_ms
                for one in self._events(event):
                    self._tell(one)
            elif tick_ms is not None and tick_ms < self._until_ms:
                self.now_ms = tick_ms
                self._tell(ev.Tick())
            else:
                self._waiting.clear()
        return not self._waiting

    # --- what will happen

    def _plan(self, at_ms: int, event: Foreseen, *, is_last: bool = False) -> None:
        """Plan an event. What happens at the same time does so in the order in which it was known, times the factor.

        One that `is_last` comes after all else then.
        """
        self._seq += 1
        turn = _ORDERED if is_last else self._seq * self._order % _ORDERED
        heappush(self._heap, (max(at_ms, self.now_ms), turn, self._seq, event))

    def _foresee(self, lease: Lease) -> None:
        """Plan what becomes of a lease that is there at the beginning."""
        match lease.phase:
            case Phase.GRANTED:
                self._begin(lease.id)
            case Phase.BUSY:
                self._plan_end(lease)
            case Phase.RECLAIMING if lease.is_pausing:
                self._plan_end(lease)
                self._plan(self.now_ms, ev.PauseDeclined(lease.id))
            case Phase.RECLAIMING:
                self._plan_end(lease)
                self._plan(self._state.alarms[lease.id] - self._state.settings.ask_again_ms, GraceEnds(lease.id))
            case Phase.EVICTING | Phase.ENDING:
                self._plan(self.now_ms, ev.LeaseEnded(lease.id))
            case Phase.HOT | Phase.ENDED:
                pass
            case _:
                assert_never(lease.phase)

    def _begin(self, lease: LeaseId) -> None:
        """Plan that the first cell of a granted lease begins now."""
        self._named += 1
        self._plan(self.now_ms, ev.CellStarted(lease, CellId(f"ahead-{self._named}")))

    def _plan_end(self, lease: Lease) -> None:
        assert lease.cell is not None, "a cell runs there"
        self._plan(lease.since_ms + lease.cell_walltime_ms, WalltimeEnds(lease.id, lease.cell))

    def _events(self, event: Foreseen) -> Iterator[ev.Event]:
        """Yield what the scheduler is told of it: nothing, if it was to happen to a lease that is over by now."""
        match event:
            case GraceEnds() | WalltimeEnds():
                lease = self._state.leases.get(event.lease)
                if lease is None or lease.phase not in (Phase.BUSY, Phase.RECLAIMING):
                    return
                if isinstance(event, GraceEnds):
                    again = self._ask_again(lease)
                    yield ev.LeaseEnded(event.lease)
                    if again is None:
                        return
                    if self._order == 1:
                        yield again
                    else:  # its kernel may ask after what leaves for others in that moment, too
                        self._plan(self.now_ms, again, is_last=True)
                elif lease.cell == event.cell:
                    is_leaving = lease.phase is Phase.RECLAIMING
                    yield ev.CellEnded(event.lease, event.cell)
                    if is_leaving:
                        yield ev.LeaseEnded(event.lease)
            case ev.CellStarted():
                yield event
                started = self._state.leases.get(event.lease)
                if started is not None and started.cell == event.cell:
                    self._plan_end(started)
            case _:
                yield event

    def _ask_again(self, lease: Lease) -> ev.RequestSubmitted | None:
        """Make the request of a cell that was reclaimed, which is to run from its beginning."""
        state = self._state
        if lease.qos not in state.qos or lease.session in state.asking or lease.lane == "own":
            return None  # what somebody does on a node of their own keeps nobody else waiting
        self._named += 1
        return ev.RequestSubmitted(
            request=RequestId(f"ahead-{self._named}"),
            lease=LeaseId(f"ahead-{self._named}"),
            session=lease.session,
            user=lease.user,
            project=lease.home,
            qos=lease.qos,
            gpus=0 if lease.lane == "cpu" and state.slot_catalog.has_gpus else len(lease.slots),
            walltime_ms=min(lease.walltime_ms, most_walltime_ms(state.accounts, lease.project, lease.user, lease.qos)),
            gpu_type=" ".join(lease.kind.words),
            gpu_memory_bytes=lease.kind.memory_bytes,
            cpus=lease.cpus,
            memory_bytes=lease.memory_bytes,
            is_kept=lease.is_kept,
            is_exclusive=lease.is_exclusive,
        )

    # --- what the scheduler says

    def _tell(self, event: ev.Event) -> None:
        self.steps += 1
        turn_ms = self._state.accounts.turns_ms
        is_turn = turn_ms is not None and turn_ms <= self.now_ms
        held_back = self._held_back() if is_turn else []
        actions = self._scheduler.step(event, self.now_ms)
        if is_turn:
            self._freed.update((request, self.now_ms) for request in held_back)
            for request in self._held_back():
                self._freed.pop(request, None)
            reclaimed = [action.lease for action in actions if isinstance(action, Reclaim | Pause)]
            self._reclaimed.update(dict.fromkeys(reclaimed, self.now_ms))
        began_ms = self._reclaimed.get(event.lease) if isinstance(event, ev.LeaseEnded) else None
        for action in actions:
            self._perform(action, began_ms)

    def _perform(self, action: Action, began_ms: int | None) -> None:
        """Let agents do what the scheduler says; `began_ms`: it can say so since class hours began or ended then."""
        match action:
            case Grant():
                if action.request in self._waiting:
                    del self._waiting[action.request]
                    self.starts[action.request] = self.now_ms, began_ms or self._freed.get(action.request)
                self._begin(action.lease)
            case Refuse():
                self._waiting.pop(action.request, None)
            case Evict() | EndLease():
                self._plan(self.now_ms, ev.LeaseEnded(action.lease))
            case Reclaim():
                self._plan(self.now_ms + action.grace_ms, GraceEnds(action.lease))
            case Pause():
                self._plan(self.now_ms, ev.PauseDeclined(action.lease))
            case _:
                assert_never(action)

    def _held_back(self) -> list[RequestId]:
        """List those who may not run now, by a quota, a limit or what others keep."""
        state = self._state
        return [
            request.id
            for request in map(state.pending.get, self._waiting)
            if request is not None and not state.accounts.is_allowed(state.accounts.of(request.project), request.entry)
        ]
