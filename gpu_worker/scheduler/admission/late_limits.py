"""Hot sessions that leave since what a limit leaves is kept for a request that is late.

A hot session begins its cells without asking: it would go on with what is kept, cell after cell, and a request for more
than one cell leaves would wait for ever.
"""

import itertools
from collections.abc import Iterable, Iterator

from bulletin.ids import ProjectId
from gpu_worker.scheduler import departures
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.branches import Branch
from gpu_worker.scheduler.accounts.kept_limits import first_late
from gpu_worker.scheduler.actions import Action
from gpu_worker.scheduler.admission.held_inside import note_held_inside
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.nodes.capacity import kinds_in_use
from gpu_worker.scheduler.placement.keep_time import is_kept_from
from gpu_worker.scheduler.state import State


def leave_to_late(state: State, projects: Iterable[ProjectId]) -> list[Action]:
    """Evict hot sessions that stand in the way of who is late at a limit of these projects, or of touched leases'.

    What was noted of a limit is found anew where its project has changed: a lease that is gone is touched no more.
    """
    if any(kind.longest_ms is not None for kind in state.accounts.kinds) or state.planned_drains:
        state.accounts.kinds = kinds_in_use(state.nodes.values())  # the time until the drain has become shorter
    touched = (state.leases[name].project for name in state.touched if name in state.leases)
    names = dict.fromkeys([*projects, *touched, *_changed(state)])
    known = (state.accounts.of(name) for name in names if name in state.accounts.by_id)
    accounts = {at.project.id: at for one in known for at in one.path if at.limit is not None}
    for at in accounts.values():
        note_held_inside(state, at)
    in_way = [lease for at in accounts.values() for lease in (*_in_way(state, at), *_in_way_by_then(state, at))]
    return [departures.evict(state, lease) for lease in {lease.id: lease for lease in in_way}.values()]


def _changed(state: State) -> Iterator[ProjectId]:
    """List the projects of whose limit something is noted that may be otherwise now."""
    by_id = state.accounts.by_id
    for name, changes in state.patience.noted_limits.items():
        at = by_id.get(name)
        if at is not None and (at.held_inside is not None or at.foremost is not None or at.changes != changes):
            yield name
    yield from (project for project, _ in state.boosts.until_ms)


def _in_way(state: State, at: Account) -> Iterator[Lease]:
    """List hot sessions that would begin cells with what a project's limit keeps, least recently used first.

    For whom an admin put first those of its own project leave.
    """
    first, by_hand = first_late(state.accounts, at), at.first_by_hand
    if first is not None:
        until_ms = at.late_until[1] if at.late_until is not None and at.late_until[0] == first else None
        yield from _in_way_of(state, at, state.pending[first], until_ms)
    if by_hand is not None and by_hand.request != first:
        late = state.pending[by_hand.request]
        in_way = _in_way_of(state, at, late, by_hand.until_ms)
        yield from (one for one in in_way if one.project == late.project)


def _in_way_of(state: State, at: Account, late: Request, until_ms: int | None) -> Iterator[Lease]:
    """List those that cannot be over before a request is let through; of others the state notes until when."""
    if at.limit is None:
        return
    over = at.used + sum(at.hot.values()) + late.entry.shape.cost - at.limit
    account, cost = state.accounts.of(late.project), late.entry.shape.cost
    for name, amount in at.hot.items():
        if over <= 0:
            return
        if not amount:
            continue
        lease = state.leases[name]
        if _is_covered_inside(state, lease, at, late) or is_kept_from(state, lease, account, cost):
            continue
        last_ms = state.accounts.now_ms - 1 if until_ms is None else until_ms - lease.walltime_ms
        if last_ms < state.accounts.now_ms:
            over -= amount
            yield lease
        else:  # its next cell is over by then
            state.wakeups.note(last_ms + 1)


def _in_way_by_then(state: State, at: Account) -> Iterator[Lease]:
    """List those whose next cells could keep a project's limit from who has it once one inside lets them through.

    Of those that could be over by then the state notes until when.
    """
    held = at.held_inside
    if held is None or at.limit is None:
        return
    late = state.pending[held.request]
    account, cost = state.accounts.of(late.project), late.entry.shape.cost
    over = at.used + sum(at.hot.values()) + held.kept - at.limit
    for name, amount in at.hot.items():
        lease = state.leases[name]
        if over <= 0 or not amount or _is_covered_inside(state, lease, at, late):
            continue
        if is_kept_from(state, lease, account, cost):
            continue
        over -= amount
        last_ms = held.until_ms - lease.walltime_ms
        if last_ms < state.accounts.now_ms:
            yield lease
        else:
            state.wakeups.note(last_ms + 1)


def _is_covered_inside(state: State, lease: Lease, at: Account, late: Request) -> bool:
    """Whether a guarantee inside a project would cover the next cell of a session: nothing is kept from that.

    But for one of the session's own project, behind which it stands.
    """
    account = state.accounts.of(lease.project)
    if lease.project == late.project:
        return False
    if account.children and Branch(account, is_members=True).covers(lease.cost):
        return True
    below = itertools.takewhile(lambda side: side is not at, account.path)
    return any(side.covers(lease.cost) for side in below)
