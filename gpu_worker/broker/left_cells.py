"""Cells that go on without their notebook: who waits, and has one in the same line, is told of it. Pure."""

from collections.abc import Callable, Mapping

from bulletin.ids import SHORT, CellId, LeaseId, SessionId
from bulletin.kept_time import is_kept
from bulletin.kernel_names import is_restarted, parse_kernel_name
from gpu_worker.broker.active_lease import ActiveLease, PendingRequest
from gpu_worker.scheduler.actions import count
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.life import Phase

_RUNNING = frozenset({Phase.BUSY, Phase.RECLAIMING})


class LeftCells:
    """Finds the cells of whoever waits whose notebook is gone, or was restarted, and says how to have them."""

    def __init__(self, active_leases: Mapping[LeaseId, ActiveLease], is_gone: Callable[[SessionId], bool]) -> None:
        """`is_gone` tells whether the kernel of a session, whose cell runs, is not heard any more."""
        self._active_leases, self._is_gone = active_leases, is_gone

    def describe(self, request: Request, pending: PendingRequest, leases: Mapping[LeaseId, Lease]) -> str:
        """Say which cells of its user hold what a request waits for, to stand behind a reason; empty where none does.

        `leases` are all that the scheduler knows.
        """
        held: list[tuple[CellId, Lease, ActiveLease]] = []
        for lease in leases.values():
            active = self._active_leases.get(lease.id)
            if lease.user != request.user or lease.lane != request.lane or lease.session == request.session:
                continue
            if active is None or lease.cell is None or is_kept(lease.cell) or lease.phase not in _RUNNING:
                continue
            if is_restarted(active.kernel, pending.kernel) or self._is_gone(active.session):
                held.append((lease.cell, lease, active))
        if not held:
            return ""
        slots = count(sum(len(lease.slots) for _, lease, _ in held), on_cpu=request.lane == "cpu")
        stop = "stop this cell, then " if parse_kernel_name(pending.kernel)[1] == "front" else ""
        if len(held) > 1:
            return (
                f"{len(held)} earlier cells of yours, whose notebooks are gone, still run on {slots}: "
                f"{stop}`%gpu attach` lists them"
            )
        cell, _, active = held[0]
        label = f" [{active.label}]" if active.label else ""
        return (
            f"your earlier cell {cell[:SHORT]}{label}, whose notebook is gone, still runs on {slots}: "
            f"{stop}`%gpu attach {cell[:SHORT]}` brings it here, where the stop button ends it"
        )
