"""One pass down the line, or a part of it: who starts now, for whom others leave, and who waits."""

from collections.abc import Sequence
from contextlib import closing
from typing import assert_never

from bulletin.ids import RequestId
from gpu_worker.scheduler import departures
from gpu_worker.scheduler.actions import Action, Grant, Right
from gpu_worker.scheduler.leases.leases import Lease, Request, lease_of
from gpu_worker.scheduler.leases.life import Phase, RequestStatus
from gpu_worker.scheduler.leases.resources import LANES, Lane
from gpu_worker.scheduler.leases.shapes import FIRST_MS
from gpu_worker.scheduler.pass_goals import Goal
from gpu_worker.scheduler.placement.ahead import Ahead
from gpu_worker.scheduler.placement.order import decisions
from gpu_worker.scheduler.placement.places import Placement, Start
from gpu_worker.scheduler.queue.patience import lets_pass
from gpu_worker.scheduler.state import State


class SchedulingPass:
    """Decides for the requests of a step, in order, and changes the state by that.

    All that are looked at are added to `looked_at`, what is to be done to `actions`.
    """

    def __init__(self, state: State, looked_at: set[RequestId], now_ms: int) -> None:
        self._state, self._looked_at, self._now_ms = state, looked_at, now_ms
        self.actions: list[Action] = []

    def complete(self) -> bool:
        """Grant what fits, and make room for what is next; whether nobody is granted past who waits, or loses a cell.

        Either changes who is next: another cell of the same project, which a large one stood before, may come to
        stand before it. And where hot sessions leave, what is free there may not be needed by who waits for a grace.
        So the caller does it again until it is so. That ends: each time but the last something is granted, taken back
        or evicted.
        """
        ahead, is_settled = Ahead(self._state), True
        self._looked_at.clear()
        for lane in LANES:
            is_settled &= self._walk(lane, ahead)
        return is_settled

    def until(self, goals: Sequence[Goal]) -> None:
        """Decide for requests until all goals are reached. Of those behind them nobody is looked at.

        Whoever takes for a share looks at every node: that is for a pass that is complete.
        """
        self._state.wakeups.is_for_shares = False
        ahead = Ahead(self._state)
        for lane in LANES:
            self._walk(lane, ahead, goals)

    def _walk(self, lane: Lane, ahead: Ahead, goals: Sequence[Goal] | None = None) -> bool:
        """Take up each request of a lane, in order; whether no one was granted past another, or lost a cell."""
        has_waiting = has_hopeless = False
        is_settled = True
        with closing(decisions(self._state, lane, ahead)) as walk:
            while goals is None or not all(goal.is_reached(self._state, lane) for goal in goals):
                found = next(walk, None)
                if found is None:
                    break
                request, decision = found
                self._looked_at.add(request.id)
                for goal in goals or ():
                    goal.note(request, decision.agent if isinstance(decision, Placement) else None)
                match decision:
                    case Start():
                        self.actions.append(self._give(request, decision))
                        is_settled &= not has_waiting
                    case Placement():
                        self._make_room(request, decision, is_behind=has_hopeless)
                        has_waiting = True
                        is_settled &= not decision.reclaimed
                        # What leaves does as well for who is slow.
                        if decision.victims and decision.agent in ahead.slow:
                            is_settled = False
                    case None:
                        has_waiting = has_hopeless = True
                    case _:
                        assert_never(decision)
        return is_settled

    def _make_room(self, request: Request, place: Placement, *, is_behind: bool) -> None:
        self.actions += [departures.evict(self._state, victim) for victim in place.victims]
        self._stand_before_others(request, place, is_behind=is_behind)
        for victim, right in place.reclaimed:
            if right is Right.SHARE:
                request.took |= {victim.session}
            victim.reclaimed_by, victim.reclaimed_for = right, request.project
            self.actions.append(departures.reclaim(self._state, victim))

    def _stand_before_others(self, request: Request, place: Placement, *, is_behind: bool) -> None:
        """Let a request for which room is made by right have it: whoever comes later has others leave.

        So do those that stand before it, and could not have that themselves, where it takes for its share.
        """
        key = request.entry.key
        is_taking = any(
            is_behind or right is not Right.SHARE or one.project == request.project for one, right in place.reclaimed
        )
        if key.is_early and not key.since_ms and (is_taking or self._state.is_covered(request)):
            self._state.set_key(request, key._replace(since_ms=FIRST_MS + self._now_ms))

    def _give(self, request: Request, start: Start) -> Grant:
        state, shape, slots = self._state, request.entry.shape, start.slots
        node = state.nodes[start.agent]
        passed_for = frozenset(at.project.id for at in lets_pass(state.accounts, request))
        state.drop(request, RequestStatus.GRANTED)
        cost = state.slot_catalog.cost_on(node, shape.lane, slots)
        charged = state.slot_catalog.charge_on(node, slots)
        lease = lease_of(request, node.agent, slots, Phase.GRANTED, self._now_ms, cost, charged, passed_for)
        state.add(lease, self._now_ms + state.settings.start_ms)
        return grant(request.id, lease)


def grant(request_id: RequestId, lease: Lease) -> Grant:
    """Say that a request has a lease."""
    return Grant(request_id, lease.id, lease.session, lease.agent, lease.slots, lease.walltime_ms)
