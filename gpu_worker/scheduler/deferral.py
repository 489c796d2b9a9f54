"""Which facts can wait: those after which nobody may start, or have others leave, who could not do so before.

In a busy pool most are of this kind: a cell has begun, one more asks for what is taken, and one of many that nobody had
come to yet asks no more. What they change of the order is decided upon with the next fact that can change more, and at
the latest half a second later.

And in a long line, where something comes free on a node, only that is decided upon at once: who is to have it. What
else follows, like what a project may take back that has less now, can wait as well.
"""

from collections.abc import Container
from typing import NamedTuple

from bulletin.ids import AgentId, RequestId, SlotId
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
from gpu_worker.scheduler.placement.feasible import may_hold
from gpu_worker.scheduler.placement.reclaim_prospects import ReclaimProspects
from gpu_worker.scheduler.state import State

#: How long a decision is put off at most.
LATEST_MS = 500

#: How many requests a decision has looked at that takes long, so that the next one is better put off.
MANY = 16


class Freed(NamedTuple):
    """Slots that nobody uses any more."""

    agent: AgentId
    slots: tuple[SlotId, ...]


def can_wait(state: State, event: Event, looked_at: Container[RequestId]) -> bool:
    """Whether a fact that is not noted yet may be one of them. Of one who asks `has_prospects` says so afterwards.

    `looked_at` are the requests that were decided upon last.
    """
    match event:
        case Tick() | RequestSubmitted():
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


def slots_freed(state: State, event: Event) -> Freed | None:
    """Find the slots of a fact, not noted yet, after which nothing but these may have come free."""
    lease = state.leases.get(event.lease) if isinstance(event, CellEnded | LeaseEnded) else None
    return None if lease is None else Freed(lease.agent, lease.slots)


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
