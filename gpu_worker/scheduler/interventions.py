"""What people change by hand about one request or one cell. Of what is gone, or cannot be changed, nothing changes."""

from typing import assert_never

from gpu_worker.scheduler.actions import Action, Right
from gpu_worker.scheduler.departures import reclaim
from gpu_worker.scheduler.events import CellRequeued, Intervention, RequestHeld, RequestPutFirst, RequestReleased
from gpu_worker.scheduler.leases.leases import RequestHold
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.state import State


def intervene(state: State, event: Intervention) -> list[Action]:
    """Do what a person wants, as far as it is possible."""
    match event:
        case RequestHeld():
            if event.request in state.pending:
                state.hold(state.pending[event.request], RequestHold(event.why, event.is_by_admin))
        case RequestReleased():
            if event.request in state.pending:
                state.hold(state.pending[event.request], None)
        case RequestPutFirst():
            if event.request in state.pending:
                state.put_first(state.pending[event.request])
        case CellRequeued():
            lease = state.leases.get(event.lease)
            if lease is not None and lease.phase is Phase.BUSY and lease.qos in state.qos:
                lease.reclaimed_by = Right.ADMIN
                return [reclaim(state, lease)]
        case _:
            assert_never(event)
    return []
