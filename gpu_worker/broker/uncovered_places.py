"""Places that notebooks keep between cells (`--keep`), and that no guarantee covers any more: they go for who waits.

What is kept is within its project's guarantee, so that nobody else waits for it. The guarantee may end before the place
does: the quota file is changed, class hours or a reservation are over. Its class is taken back by nobody, and whom the
slots are guaranteed to by then would wait for the whole walltime of what idles. So a place that nothing has covered for
a minute goes when somebody waits; a cell that runs there ends as it would. The minute is for a node that is away for a
moment: guarantees may count for less without it.
"""

import asyncio
from collections.abc import Callable

import structlog

from bulletin.ids import LeaseId
from bulletin.kept_time import is_kept
from bulletin.units import MINUTE_MS
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler.accounts.coverage import never_borrows
from gpu_worker.scheduler.leases.life import Phase

_EVERY_S = 1.0


class UncoveredPlaces:
    """Has those go that nothing covers. All times are of the broker's clock, in milliseconds."""

    def __init__(self, shell: SchedulerShell, now_ms: Callable[[], int]) -> None:
        self._shell, self._now_ms = shell, now_ms
        #: Since when no guarantee has covered leases of classes that never borrow.
        self._uncovered_since_ms: dict[LeaseId, int] = {}
        self._log = structlog.get_logger("broker")

    async def run(self) -> None:
        """Review once a second, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.review()

    async def review(self) -> None:
        """Have the sessions end that keep a place which nothing has covered for a minute, if somebody waits."""
        state, now_ms = self._shell.scheduler.state, self._now_ms()
        self._uncovered_since_ms = {
            lease.id: self._uncovered_since_ms.get(lease.id, now_ms)
            for lease in state.leases.values()
            if never_borrows(state.accounts, lease.qos)
            and lease.phase is Phase.BUSY
            and not self._shell.is_in_quota(lease)
        }
        if all(request.hold is not None for request in state.pending.values()):
            return
        for name, since_ms in self._uncovered_since_ms.items():
            lease = state.leases.get(name)
            if lease is not None and is_kept(lease.cell) and now_ms - since_ms >= MINUTE_MS:
                self._log.info("a kept place that no guarantee covers is given back", lease=name, user=lease.user)
                await self._shell.evict(name)
