"""Which facts can wait: those after which nobody may start, or have others leave, who could not do so before.

In a busy pool most are of this kind: a cell has begun, one more asks for what is taken, and one of many that nobody had
come to yet asks no more. What they change of the order is decided upon with the next fact that can change more, and at
the latest half a second later.

And in a long line only what has just happened is decided upon at once: who is to have what comes free on a node, and
what becomes of somebody who asks for what a guarantee gives back. What else follows, like what a project may take back
that has less now, can wait as well.
"""

from collections.abc import Collection

from bulletin.ids import RequestId
from gpu_worker.scheduler.events import (
    CellEnded,
    CellStarted,
    Event,
    LeaseEnded,
    RequestSubmitted,
    RequestWithdrawn,
    Tick,
)
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.life import Phase, RequestStatus
from gpu_worker.scheduler.pass_goals import Goal, RequestReached, SlotsGiven
from gpu_worker.scheduler.placement.feasible import may_hold
from gpu_worker.scheduler.placement.reclaim_prospects import ReclaimProspects
from gpu_worker.scheduler.state import State

#: How long a decision is put off at most.
LATEST_MS = 500

#: How many requests a decision has looked at that takes long, so that the next one is better put off.
MANY = 16

#: To find who is next among so many takes as long as to look at one of them.
A_LOOK_FOR = 16


def can_wait(state: State, event: Event, looked_at: Collection[RequestId], *, is_long: bool) -> bool:
    """Whether a fact that is not noted yet may be one of them. Of one who asks `has_prospects` says so afterwards.

    `looked_at` are the requests that were decided upon last, of a line that may be long.
    """
    match event:
        case Tick() | RequestSubmitted():
            return True
        case CellStarted() | RequestWithdrawn() if is_long:
            return True
        case CellStarted():
            return event.lease not in state.leases or state.leases[event.lease].phase is Phase.GRANTED
        case RequestWithdrawn():
            request = state.pending.get(event.request)
            if request is None:
                return event.request not in state.granted
            key = request.entry.key
            return request.id not in looked_at and key.is_early and not key.turn
        case _:
            return False


def goal_after(state: State, event: Event, many: int) -> Goal | None:
    """Find what is to be decided at once after a fact, not noted yet, in a long line; None is all that waits.

    Of those who stand before a new request `many` are looked at.
    """
    match event:
        case CellEnded() | LeaseEnded():
            lease = state.leases.get(event.lease)
            return None if lease is None else SlotsGiven(lease.agent, lease.slots)
        case RequestSubmitted():
            return RequestReached(event.request, many)
        case _:
            return None


def has_prospects(state: State, request: Request) -> bool:
    """Whether a new request might start now, or somebody leave for it."""
    if request.standing is not RequestStatus.QUEUED or len(state.pending) == 1:
        return True
    shape, is_covered = request.entry.shape, state.is_covered(request)
    if state.planned_drains or state.qos[request.qos].must_be_in_quota:
        return True
    prospects = ReclaimProspects(state, shape.lane)
    if prospects.has(state.accounts.of(request.project), request.entry, is_covered=is_covered):
        return True
    need = shape.lane, shape.need, shape.wants
    return bool(state.room_index.find(need, state.nodes, lambda node: may_hold(state, node, shape)))
