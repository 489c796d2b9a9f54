"""Access that is taken away is gone: the tokens behind leases are asked again, as long as the leases hold.

A hot session goes straight to its agent, and asks the broker for nothing. So once a minute the hub is asked whether who
holds a lease may still use the pool. A hub that does not answer takes nothing from anybody. A server that has stopped
has lost its token, and its cell may be one that outlives it: such a cell ends as it would, and no other begins.
"""

import asyncio
from collections.abc import Callable

import structlog

from bulletin.errors import NotAllowed
from bulletin.ids import CellId, LeaseId
from gpu_worker.broker.identity import HubSilent, Identity, TokenUnknown
from gpu_worker.broker.kernels import Kernels
from gpu_worker.broker.scheduler_shell import SchedulerShell

_EVERY_S = 60.0


class AccessReview:
    """Ends what is held by tokens that the hub no longer knows, or that may not use the pool any more."""

    def __init__(self, identity: Identity, shell: SchedulerShell, kernels: Kernels, now_ms: Callable[[], int]) -> None:
        self._identity, self._shell, self._kernels, self._now_ms = identity, shell, kernels, now_ms
        #: Of leases whose token the hub does not know any more, the cell that ran when that was found.
        self._spared: dict[LeaseId, CellId | None] = {}
        self._log = structlog.get_logger("broker")

    async def run(self) -> None:
        """Review once a minute, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.review()

    async def review(self) -> None:
        """Ask for each token behind a lease once, one after the other: the hub has others to answer."""
        held: dict[str, list[LeaseId]] = {}
        for name, active in self._shell.active_leases.items():
            if active.token:
                held.setdefault(active.token, []).append(name)
        for token, names in held.items():
            try:
                await self._identity.identify(token, self._now_ms())
            except HubSilent:
                return
            except NotAllowed as error:
                await self._kernels.forget_token(token)
                for name in names:
                    await self._end(name, error)
        self._spared = {name: cell for name, cell in self._spared.items() if name in self._shell.active_leases}

    async def _end(self, name: LeaseId, error: NotAllowed) -> None:
        """Interrupt the cell of a lease, and end it the next time; let an idle session go at once."""
        lease = self._shell.scheduler.state.leases.get(name)
        if lease is None or name not in self._shell.active_leases:
            return
        spared = self._spared.setdefault(name, lease.cell) if isinstance(error, TokenUnknown) else None
        if spared is not None and spared == lease.cell:
            return
        self._log.info("access has been taken away", lease=name, user=lease.user, cell=lease.cell)
        if lease.cell is not None:
            await self._shell.cancel_cell(name, error.problem)
        else:
            await self._shell.evict(name)
