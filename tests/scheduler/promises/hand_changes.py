"""What people change by hand in a history that is played: a request that waits, a cell that runs, a user's turn."""

from gpu_worker.scheduler import events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.actors import HeldLease, Kernel

#: How much longer a cell may run, or a user has their turn, each time.
_MORE_MS = 600_000


def changed_by_hand(
    what: hi.ByHand, kernel: Kernel, held: HeldLease | None, now_ms: int, clock_ms: int
) -> ev.Event | None:
    """Say what the scheduler hears of it; nothing where the session has not what it is about."""
    request = None if kernel.request is None else kernel.request.request
    lease = None if kernel.lease is None else kernel.lease[1]
    match what.what:
        case "boost":
            return ev.UserBoosted(kernel.opened.project, kernel.opened.user, clock_ms + _MORE_MS)
        case "requeue" if lease is not None:
            return ev.CellRequeued(lease)
        case "extend" if lease is not None and held is not None:
            return ev.CellExtended(lease, held.cell, _MORE_MS) if held.cell and _may_go_on(held, now_ms) else None
        case "hold" | "hold-own" if request is not None:
            return ev.RequestHeld(request, "an exam", is_by_admin=what.what == "hold")
        case "release" if request is not None:
            return ev.RequestReleased(request)
        case "put-first" if request is not None:
            return ev.RequestPutFirst(request)
    return None


def _may_go_on(held: HeldLease, now_ms: int) -> bool:
    is_kept = held.opened.keep_ms > 0
    until_ms = held.over_ms if is_kept else held.began_ms + held.grant.walltime_ms + held.more_ms
    return not held.is_leaving and now_ms < until_ms
