"""One pass down the line: who starts now, for whom others leave, and who waits."""

from contextlib import closing
from typing import assert_never

from bulletin.ids import RequestId
from gpu_worker.scheduler import departures
from gpu_worker.scheduler.actions import Action, Grant, Right
from gpu_worker.scheduler.deferral import Freed
from gpu_worker.scheduler.leases.leases import LEAVING, Lease, Request, lease_of
from gpu_worker.scheduler.leases.life import Phase, RequestStatus
from gpu_worker.scheduler.leases.resources import LANES, Lane, lane_of
from gpu_worker.scheduler.leases.shapes import FIRST_MS
from gpu_worker.scheduler.placement.ahead import Ahead
from gpu_worker.scheduler.placement.order import decisions
from gpu_worker.scheduler.placement.places import Placement, Start
from gpu_worker.scheduler.state import State

#: Leases of which the slots are somebody else's now, or soon.
_SOON = LEAVING | {Phase.HOT}


class SchedulingPass:
    """Decides for the requests of a step, in order, and changes the state by that.

    All that are looked at are added to `looked_at`.
    """

    def __init__(self, state: State, looked_at: set[RequestId], now_ms: int) -> None:
        self._state, self._looked_at, self._now_ms = state, looked_at, now_ms
        self._actions: list[Action] = []

    def complete(self) -> list[Action]:
        """Grant what fits, and make room for what is next, until nobody is granted past one who waits, or loses a cell.

        Either changes who is next: another cell of the same project, which a large one stood before, may come to
        stand before it. And where hot sessions leave, what is free there may not be needed by who waits for a grace.
        Ends: each walk but the last one grants, takes back or evicts something.
        """
        is_settled = False
        while not is_settled:
            ahead, is_settled = Ahead(self._state), True
            self._looked_at.clear()
            for lane in LANES:
                is_settled &= self._walk(lane, ahead)
        return self._actions

    def fill(self, freed: Freed) -> list[Action]:
        """Decide who is to have slots that have come free. Of those behind them nobody is looked at.

        Whoever takes for a share looks at every node: that is for a pass that is complete.
        """
        self._state.wakeups.is_for_shares = False
        ahead = Ahead(self._state)
        for lane in LANES:
            self._walk(lane, ahead, freed)
        return self._actions

    def _walk(self, lane: Lane, ahead: Ahead, only: Freed | None = None) -> bool:
        """Take up each request of a lane, in order; whether no one was granted past another, or lost a cell.

        With `only` it ends where nothing of these slots is left that nobody is to have.
        """
        has_waiting, is_settled, claimed = False, True, 0
        with closing(decisions(self._state, lane, ahead)) as walk:
            while only is None or self._is_left(only, lane, claimed):
                found = next(walk, None)
                if found is None:
                    break
                request, decision = found
                self._looked_at.add(request.id)
                match decision:
                    case Start():
                        self._actions.append(self._give(request, decision))
                        is_settled &= not has_waiting
                    case Placement():
                        self._make_room(request, decision)
                        claimed += request.entry.shape.need if only and decision.agent == only.agent else 0
                        has_waiting = True
                        is_settled &= not decision.reclaimed
                        # What leaves does as well for who is slow.
                        if decision.victims and decision.agent in ahead.slow:
                            is_settled = False
                    case None:
                        has_waiting = True
                    case _:
                        assert_never(decision)
        return is_settled

    def _is_left(self, freed: Freed, lane: Lane, claimed: int) -> bool:
        """Whether one of these slots is free or hot, and there are more like it, or will be, than are `claimed`."""
        node, leases = self._state.nodes[freed.agent], self._state.leases
        tenants = {slot: node.tenants[slot] for slot in freed.slots if lane_of(node.slots[slot]) == lane}
        if not any(name is None or leases[name].phase is Phase.HOT for name in tenants.values()):
            return False
        names = {node.slots[slot].name for slot in tenants}
        alike = [node.tenants[slot.id] for slot in node.slots.values() if slot.name in names]
        return sum(name is None or leases[name].phase in _SOON for name in alike) > claimed

    def _make_room(self, request: Request, place: Placement) -> None:
        self._actions += [departures.evict(self._state, victim) for victim in place.victims]
        self._stand_before_newcomers(request, place)
        for victim, right in place.reclaimed:
            if right is Right.SHARE:
                request.took |= {victim.session}
            victim.reclaimed_by, victim.reclaimed_for = right, request.project
            self._actions.append(departures.reclaim(self._state, victim))

    def _stand_before_newcomers(self, request: Request, place: Placement) -> None:
        """Let a request for which room is made by right have it: whoever comes later has others leave."""
        key = request.entry.key
        is_taking = any(right is not Right.SHARE or one.project == request.project for one, right in place.reclaimed)
        if key.is_early and not key.since_ms and (is_taking or self._state.is_covered(request)):
            self._state.set_key(request, key._replace(since_ms=FIRST_MS + self._now_ms))

    def _give(self, request: Request, start: Start) -> Grant:
        state, shape, slots = self._state, request.entry.shape, start.slots
        node = state.nodes[start.agent]
        state.drop(request, RequestStatus.GRANTED)
        cost = state.slot_catalog.cost_on(node, shape.lane, slots)
        charged = state.slot_catalog.charge_on(node, slots)
        lease = lease_of(request, node.agent, slots, Phase.GRANTED, self._now_ms, cost, charged)
        state.add(lease, self._now_ms + state.settings.start_ms)
        return grant(request.id, lease)


def grant(request_id: RequestId, lease: Lease) -> Grant:
    """Say that a request has a lease."""
    return Grant(request_id, lease.id, lease.session, lease.agent, lease.slots, lease.walltime_ms)
