"""What a node says: of a lease that it has, and of a cell that is over."""

from typing import Any

from msgspec import structs

from bulletin.codes import CellOutcome
from bulletin.ids import CellId, KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.units import HOUR_MS
from bulletin.wire import messages as wire

_ANNS = wire.HeldLease(
    lease=LeaseId("l"),
    session=SessionId("s"),
    kernel=KernelId("k"),
    user=UserName("ann"),
    project=ProjectId("maths"),
    qos="interactive",
    slots=(SlotId("gpu-0"),),
    walltime_ms=HOUR_MS,
)


def held(**changes: Any) -> wire.HeldLease:
    """One of ann's, with what is another in it."""
    return structs.replace(_ANNS, **changes)


def done(**changes: Any) -> wire.CellDone:
    """Tell of a cell that ran in that lease for a millisecond, with what is another in it."""
    one = wire.CellDone(
        lease=_ANNS.lease,
        session=_ANNS.session,
        cell=CellId("c"),
        user=_ANNS.user,
        project=_ANNS.project,
        qos=_ANNS.qos,
        slots=_ANNS.slots,
        usage=wire.CellUsage(outcome=CellOutcome.RETURNED, ran_ms=1, held_ms=1),
    )
    return structs.replace(one, **changes)
