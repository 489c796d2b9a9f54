"""Leases that are to be over and keep their notebook from other nodes: their node is heard, and does not say so."""

from collections.abc import Callable

from bulletin.ids import AgentId, LeaseId, SessionId
from bulletin.units import HOUR_MS, MINUTE_MS
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.state import State

#: An agent that was asked to free slots where no cell runs has that time to say that it did: it takes seconds.
_FREE_MS = 10 * MINUTE_MS
#: And so long after the walltime of a cell, whose results may take their time.
_RETURN_MS = HOUR_MS
#: What goes by between two looks counts up to this: clocks may be set meanwhile, and brokers stopped.
_MOST_BETWEEN_MS = 5_000


class SilentLeases:
    """Counts for how long notebooks that ask for a place have waited for a lease of their own, while its node spoke."""

    def __init__(self, now_ms: int) -> None:
        self._looked_ms = now_ms
        #: By the lease and what was known of it: what its node says of it has the count begin anew.
        self._waited_ms: dict[tuple[LeaseId, Phase, str], int] = {}

    def take_blocked(self, state: State, is_heard: Callable[[AgentId], bool], now_ms: int) -> list[SessionId]:
        """Count what went by since the last call; return the sessions that have waited for longer than is right."""
        passed_ms, self._looked_ms = min(max(0, now_ms - self._looked_ms), _MOST_BETWEEN_MS), now_ms
        before, self._waited_ms = self._waited_ms, {}
        blocked = []
        for session in state.held:
            leases = [state.leases[name] for name in state.leases_of[session]]
            for lease in leases:
                spoken_ms = passed_ms if is_heard(lease.agent) else 0
                self._waited_ms[_known(lease)] = before.get(_known(lease), 0) + spoken_ms
            if all(self._waited_ms[_known(lease)] > _most_ms(lease) for lease in leases):
                blocked.append(session)
        return blocked


def _known(lease: Lease) -> tuple[LeaseId, Phase, str]:
    return lease.id, lease.phase, lease.cell or ""


def _most_ms(lease: Lease) -> int:
    """Return how long an honest node may take until it says that a lease is over, whenever one began to ask."""
    is_running = lease.phase in (Phase.BUSY, Phase.RECLAIMING)
    return lease.walltime_ms + lease.more_ms + _RETURN_MS if is_running else _FREE_MS
