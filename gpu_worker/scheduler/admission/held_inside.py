"""When limits let a request through that they are kept for: until then they are used by what is over by then."""

import itertools

from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.kept_limits import first_held_inside, first_late, may_start_by_hand
from gpu_worker.scheduler.accounts.late_lines import FirstByHand, HeldInside
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.placement.feasible import may_hold
from gpu_worker.scheduler.policy.projects import Preemption
from gpu_worker.scheduler.state import State


def note_held_inside(state: State, at: Account) -> None:
    """Note until when who is late waits for a project's limit; and for whom it is kept once one inside lets them in."""
    first = first_late(state.accounts, at)
    until_ms = (
        None if first is None or at.limit is None else _lets_through_ms(state, at, at.limit, state.pending[first])
    )
    until = None if first is None or until_ms is None else (first, until_ms - state.settings.start_ms)
    if until != at.late_until:
        at.late_until = until
        at.note_change()
    name = first_held_inside(state.accounts, at)
    found = None if name is None else _find(state, at, state.pending[name])
    if found != at.held_inside:
        at.held_inside = found
        at.note_change()
    by_hand = _first_by_hand(state, at)
    if by_hand != at.first_by_hand:
        at.first_by_hand = by_hand
        at.note_change()
    if found is None and until is None and at.foremost is None:
        state.patience.noted_limits.pop(at.project.id, None)
    else:
        state.patience.noted_limits[at.project.id] = at.changes


def _first_by_hand(state: State, at: Account) -> FirstByHand | None:
    """Find the request put first that a project's limit holds back; None where it waits for a node instead.

    What the limit keeps from others would idle for as long as that node is busy.
    """
    foremost = at.foremost
    if foremost is None or at.limit is None or foremost.id not in state.pending:
        return None
    if not may_start_by_hand(state.accounts, at) or not _has_room(state, foremost.shape):
        return None
    until_ms = _over_ms(state, at, at.limit, state.pending[foremost.id])
    return FirstByHand(foremost.id, foremost.shape.cost, until_ms - state.settings.start_ms)


def _has_room(state: State, shape: Shape) -> bool:
    """Whether a node has enough that is free, leaving or hot."""
    if state.planned_drains:  # what a node holds depends on the time, too
        return any(may_hold(state, node, shape) for node in state.nodes.values())
    need = shape.lane, shape.need, shape.wants
    return bool(state.room_index.find(need, state.nodes, lambda node: may_hold(state, node, shape)))


def _find(state: State, at: Account, late: Request) -> HeldInside | None:
    inside = itertools.takewhile(lambda one: one is not at, state.accounts.of(late.project).path)
    times = [_lets_through_ms(state, one, one.limit, late) for one in inside if one.limit is not None]
    until_ms = max((at_ms for at_ms in times if at_ms is not None), default=None)
    if until_ms is None or None in times:
        return None
    gone = sum(one.cost for one in _using(state, at) if state.end_ms(one) <= until_ms)
    return HeldInside(late.id, until_ms, max(0, late.entry.shape.cost - gone))


def _lets_through_ms(state: State, at: Account, limit: int, late: Request) -> int | None:
    """When so many cells of a project are over that its limit lets a request through; None where others come before."""
    if late.id not in (first_late(state.accounts, at), first_held_inside(state.accounts, at)):
        return None
    return _over_ms(state, at, limit, late)


def _over_ms(state: State, at: Account, limit: int, late: Request) -> int:
    """When so many cells of a project are over that its limit lets a request through."""
    state.follow_coverage()
    priority = state.qos[late.qos].priority
    staying = [one for one in _using(state, at) if not _gives_way(state, one, late, priority)]
    over, at_ms = sum(one.cost for one in staying) + late.entry.shape.cost - limit, state.accounts.now_ms
    for one in sorted(staying, key=state.end_ms):
        if over <= 0:
            break
        over -= one.cost
        at_ms = max(at_ms, state.end_ms(one))
    return at_ms


def _using(state: State, at: Account) -> list[Lease]:
    return [state.leases[name] for name in state.coverage.uses_in(at) if name in state.leases]


def _gives_way(state: State, lease: Lease, late: Request, priority: int) -> bool:
    """Whether a cell is of a lower class of a request's own project, which takes it back."""
    qos = state.qos.get(lease.qos)
    is_lower = qos is not None and qos.priority < priority and qos.preemption is not Preemption.NEVER
    return is_lower and lease.project == late.project
