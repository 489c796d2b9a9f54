"""Places that notebooks keep between cells (`--keep`), and may not keep any more: they go once no cell runs there.

What is kept is within its project's guarantee, so that nobody else waits for it. The guarantee may end before the place
does: the quota file is changed, class hours or a reservation are over. Its class is taken back by nobody, and whom the
slots are guaranteed to by then would wait for the whole walltime of what idles. So a place that nothing has covered for
a minute goes when one of these waits, and lacks it (`uncovered_places`). The minute is for a node that is away for a
moment: guarantees may count for less without it.

And the rules may change, or an allowance may end: as a hot session does, a place goes whose next cell would be refused.
"""

import asyncio
from collections.abc import Callable, Iterator

import structlog

from bulletin.ids import LeaseId
from bulletin.kept_time import is_kept
from bulletin.units import MINUTE_MS
from gpu_worker.broker.keep_rules import keeps
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.uncovered_places import choose_places
from gpu_worker.scheduler.accounts.coverage import never_borrows
from gpu_worker.scheduler.admission.cell_rules import is_next_forbidden
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.life import Phase

_EVERY_S = 1.0


class OutdatedPlaces:
    """Has them given back. All times are of the broker's clock, in milliseconds."""

    def __init__(self, shell: SchedulerShell, now_ms: Callable[[], int]) -> None:
        self._shell, self._now_ms = shell, now_ms
        self._state = shell.scheduler.state
        #: Since when no guarantee has covered leases of classes that never borrow.
        self._uncovered_since_ms: dict[LeaseId, int] = {}
        self._log = structlog.get_logger("broker")

    async def run(self) -> None:
        """Review once a second, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.review()

    async def review(self) -> None:
        """Have the sessions end that keep a place which they may not keep any more, and tell them why."""
        now_ms, leases = self._now_ms(), self._state.leases
        self._uncovered_since_ms = {
            lease.id: self._uncovered_since_ms.get(lease.id, now_ms)
            for lease in leases.values()
            if never_borrows(self._state.accounts, lease.qos)
            and lease.phase is Phase.BUSY
            and not self._shell.is_in_quota(lease)
        }
        for lease, why in list(self._find(now_ms)):
            self._log.info("a place may not be kept any more", lease=lease.id, user=lease.user, why=why)
            await self._shell.evict(lease.id, why)

    def _find(self, now_ms: int) -> Iterator[tuple[Lease, str]]:
        uncovered: list[Lease] = []
        for lease in self._state.leases.values():
            if lease.phase is not Phase.BUSY or not is_kept(lease.cell):
                continue
            qos = self._state.qos.get(lease.qos)
            if qos is not None and not keeps(qos):
                yield lease, f"The QoS {lease.qos!r} keeps no place any more."
            elif is_next_forbidden(self._state.accounts, lease):
                yield lease, f"Another cell like the last one is not allowed any more in project {lease.home!r}."
            elif now_ms - self._uncovered_since_ms.get(lease.id, now_ms) >= MINUTE_MS:
                uncovered.append(lease)
        for lease in choose_places(self._state, uncovered, self._shell.is_in_quota):
            yield lease, f"Project {lease.home!r} is not guaranteed your place any more, and somebody waits."
