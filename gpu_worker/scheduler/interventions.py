"""What people change by hand about requests, cells and users. What is gone, or cannot be changed, stays as it is."""

from typing import assert_never

from bulletin.ids import ProjectId
from bulletin.units import DAY_MS
from gpu_worker.scheduler.actions import Action, Right
from gpu_worker.scheduler.departures import reclaim
from gpu_worker.scheduler.events import (
    CellExtended,
    CellRequeued,
    DrainPlanned,
    Intervention,
    RequestHeld,
    RequestPutFirst,
    RequestReleased,
    UserBoosted,
)
from gpu_worker.scheduler.leases.leases import Lease, Request, RequestHold
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.shapes import DUE_TO_MS
from gpu_worker.scheduler.state import State

#: No cell has more than so much beside its walltime.
MOST_MORE_MS = 30 * DAY_MS


def intervene(state: State, event: Intervention) -> list[Action]:
    """Do what a person wants, as far as it is possible."""
    match event:
        case RequestHeld():
            if event.request in state.pending:
                hold = RequestHold(event.why, event.is_by_admin, event.is_by_lead, state.accounts.now_ms)
                _hold(state, state.pending[event.request], hold)
        case RequestReleased():
            if event.request in state.pending:
                _hold(state, state.pending[event.request], None)
        case RequestPutFirst():
            if event.request in state.pending:
                state.put_first(state.pending[event.request])
                state.patience.note_late(state.accounts, state.pending[event.request])  # with its turn
                state.patience.look_again(state.pending[event.request].project)
        case CellRequeued():
            lease = state.leases.get(event.lease)
            if lease is not None and lease.phase is Phase.BUSY and lease.qos in state.qos:
                lease.reclaimed_by = Right.ADMIN
                return [reclaim(state, lease)]
        case CellExtended():
            lease = state.leases.get(event.lease)
            if lease is not None and lease.cell == event.cell and 0 < event.more_ms <= most_more_ms(state, lease)[0]:
                state.change(lease, more_ms=event.more_ms)
        case UserBoosted():
            owner = event.project, event.user
            is_boosted = state.boosts.set(owner, event.until_ms, state.accounts.now_ms)
            state.queue.boost(*owner, is_boosted=is_boosted)
        case DrainPlanned():
            state.drain(event.agent, is_drained=False)
            state.planned_drains.plan(event.agent, event.at_ms)
            drain_due(state)
            state.planned_drains.limit(state.accounts.now_ms, state.settings.start_ms)
        case _:
            assert_never(event)
    return []


def _hold(state: State, request: Request, hold: RequestHold | None) -> None:
    """Hold a request, by whom this says, or release it. It has waited meanwhile where an admin of the pool has held it.

    Else whoever keeps a request of theirs held, or has the lead of their project do so, could pass all who wait, at any
    time.
    """
    before, key = request.hold, request.entry.key
    if before is not None and (before.is_by_lead or not before.is_by_admin):
        known_ms, held_ms = request.held_ms, state.accounts.now_ms - before.from_ms
        request.held_ms += held_ms
        request.since_ms += held_ms
        steps = request.held_ms // DUE_TO_MS - known_ms // DUE_TO_MS  # of all holds together: many short ones count
        state.set_key(request, key._replace(due=key.due + steps))
    state.hold(request, hold)
    state.patience.look_again(request.project)


def drain_due(state: State) -> None:
    """Drain the nodes whose time has come."""
    for agent in state.planned_drains.pop_due(state.accounts.now_ms):
        state.drain(agent, is_drained=True)


def note_drains(state: State) -> None:
    """Note when to look again since a request that waits may start no more on a node that is to be drained."""
    now_ms, shapes = state.accounts.now_ms, state.queue.shapes
    for _, at_ms in state.planned_drains.nodes:
        lasts = {at_ms - state.settings.start_ms - shape.walltime_ms for shape in shapes}
        first_ms = min((last_ms for last_ms in lasts if last_ms >= now_ms), default=None)
        if first_ms is not None:
            state.wakeups.note(first_ms + 1)


def end_boosts(state: State) -> None:
    """Let users stand where they stood whose boost is over."""
    for owner in state.boosts.pop_over(state.accounts.now_ms):
        state.queue.boost(*owner, is_boosted=False)


def most_more_ms(state: State, lease: Lease) -> tuple[int, ProjectId | None]:
    """Find how much longer the cell of a lease may take, and the project whose budget ends there, if one does.

    That is 0 where no cell runs, or it is to give its slots back, or its walltime is over.
    """
    now_ms = state.accounts.now_ms
    if lease.phase is not Phase.BUSY or now_ms >= state.end_ms(lease):
        return 0, None
    most: tuple[int, ProjectId | None] = MOST_MORE_MS - lease.more_ms, None
    for at in state.accounts.of(lease.project).path if lease.charged else ():
        spendable = at.spendable(now_ms, without_hot=True)
        if spendable is not None and max(0, spendable) // lease.charged < most[0]:
            most = max(0, spendable) // lease.charged, at.project.id
    return most
