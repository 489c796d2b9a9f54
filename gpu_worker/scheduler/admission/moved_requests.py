"""A notebook goes on by another session: what it asks for stands where it stood, and has waited for as long."""

import msgspec

from gpu_worker.scheduler.events import RequestMoved
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.life import RequestStatus
from gpu_worker.scheduler.state import State


def move_request(state: State, event: RequestMoved) -> None:
    """Let the session ask for it under the new name. What waits no longer stays as it is."""
    before = state.pending.get(event.request)
    if before is None:
        return
    state.patience.rename_late(state.accounts, before, event.to)
    state.drop(before, RequestStatus.WITHDRAWN)
    entry = msgspec.structs.replace(before.entry, id=event.to)
    request = msgspec.structs.replace(
        before, id=event.to, session=event.session, entry=entry, standing=RequestStatus.QUEUED
    )
    state.submit(request)
    takers: list[Request | Lease] = [*state.pending.values(), *state.leases.values()]
    for taker in takers:  # it takes nothing back from who took from it
        if before.session in taker.took:
            taker.took = taker.took - {before.session} | {event.session}
    state.patience.note_late(state.accounts, request)
    state.patience.watch(state.accounts, state.pending, (request.project, request.user))
