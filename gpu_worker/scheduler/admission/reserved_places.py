"""Where cells count: in the project that they name or, while a reservation is on, in that for their user.

Whatever waits counts there as soon as it is on, and what runs stays where it is. What counts in a reservation counts in
the project again when it is over.
"""

import msgspec

from bulletin.ids import ProjectId
from gpu_worker.scheduler.events import RequestSubmitted
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.life import RequestStatus
from gpu_worker.scheduler.state import State


def placed(state: State, event: RequestSubmitted) -> RequestSubmitted:
    """Let a request name the account in which it counts now."""
    project = state.accounts.place_of(event.project, event.user)
    return event if project == event.project else msgspec.structs.replace(event, project=project)


def place_anew(state: State) -> None:
    """Let all requests and leases count where they do from now on: a reservation may have begun or ended."""
    accounts = state.accounts
    for request in list(state.pending.values()):
        project = accounts.place_of(request.home, request.user)
        if project != request.project:
            _move(state, request, project)
    for lease in list(state.leases.values()):
        project = accounts.place_lease(lease)
        if project != lease.project:
            state.change(lease, project=project)


def _move(state: State, request: Request, project: ProjectId) -> None:
    """Let a request that waits count in another account. All of its user's go there with it."""
    was, is_late = request.project, not request.entry.key.is_early
    is_queued = request.standing is RequestStatus.QUEUED
    if is_queued:
        state.queue.leave(was, request.entry)
    if is_late:
        state.patience.forget_late(state.accounts, request, is_granted=False)
    request.project = project
    if is_late:
        state.patience.note_late(state.accounts, request)
    if is_queued:
        state.queue.enter(project, request.entry)
    for place in (was, project):
        state.patience.watch(state.accounts, state.pending, (place, request.user))
