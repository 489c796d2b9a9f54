"""A lease that a node says it has."""

from typing import Any

from msgspec import structs

from bulletin.ids import KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
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
