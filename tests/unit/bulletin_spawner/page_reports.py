"""A pool of three projects, as the broker reports it to the pages: ada and bob in ml, eve in the guests' project."""

from bulletin.ids import LeaseId, ProjectId, SlotId, UserName
from bulletin.wire.console import ProjectRow, WaitingRow
from bulletin.wire.page_requests import Lender, PoolLease, PoolReport, PoolSlot, UseOf, UsePart, UseReport

ADA, BOB, EVE = UserName("ada"), UserName("bob"), UserName("eve")
ML, VISION, GUESTS = ProjectId("ml"), ProjectId("vision"), ProjectId("guests")


def lease(name: str, user: UserName, project: ProjectId, slot: str, **other: object) -> PoolLease:
    given = {
        "lease": LeaseId(name),
        "cell": None,
        "user": user,
        "project": project,
        "qos": "interactive",
        "node": "n1",
        "slots": (SlotId(slot),),
        "state": "busy",
        "for_ms": 120_000,
        "walltime_ms": 600_000,
        "in_quota": True,
        "label": f"secret of {user}",
    }
    return PoolLease(**{**given, **other})  # type: ignore[arg-type]


def waiting(name: str, user: UserName, project: ProjectId, position: int) -> WaitingRow:
    return WaitingRow(
        lease=LeaseId(name),
        position=position,
        user=user,
        project=project,
        qos="batch",
        gpus=1,
        walltime_ms=1,
        waited_ms=5_000,
        reason=f"project {project} is at its limit",
        wait_ms=9_000,
        in_quota=False,
        label=f"secret of {user}",
        usual_ms=4_000,
    )


def project(name: ProjectId, parent: ProjectId | None = None) -> ProjectRow:
    return ProjectRow(
        project=name, parent=parent, used_milli=1, held_milli=1, guaranteed_milli=2, limit_milli=None, waiting=0
    )


REPORT = PoolReport(
    slots=(
        PoolSlot(node="n1", slot=SlotId("g0"), name="A100", lease=LeaseId("l-ada"), busy_percent=90, used_bytes=7),
        PoolSlot(node="n1", slot=SlotId("g1"), name="A100", lease=LeaseId("l-bob"), busy_percent=0, idle_ms=90_000),
        PoolSlot(node="n1", slot=SlotId("g2"), name="A100", lease=LeaseId("l-eve")),
        PoolSlot(node="n2", slot=SlotId("g3"), name="A100"),
        PoolSlot(node="n2", slot=SlotId("g4"), name="A100", is_drained=True),
    ),
    leases=(
        lease("l-ada", ADA, ML, "g0"),
        lease("l-bob", BOB, VISION, "g1", in_quota=False),
        lease("l-eve", EVE, GUESTS, "g2", state="hot", in_quota=None),
    ),
    waiting=(waiting("w-eve", EVE, GUESTS, 1), waiting("w-bob", BOB, VISION, 2), waiting("w-ada", ADA, ML, 3)),
    waiting_count=3,
    projects=(project(ML), project(VISION, ML), project(GUESTS)),
)
USE = UseReport(
    project=ML,
    stretch="day",
    parts=(UsePart(from_ms=0, until_ms=1, in_quota_ms=5),),
    users=(
        UseOf(name="bob", user=BOB, slot_ms=3, borrowed_ms=1, cells=2),
        UseOf(name="ada", user=ADA, slot_ms=2, borrowed_ms=0, cells=1),
    ),
    labels=(
        UseOf(name="secret of bob", user=BOB, slot_ms=3, borrowed_ms=1, cells=2),
        UseOf(name="secret of ada", user=ADA, slot_ms=2, borrowed_ms=0, cells=1),
    ),
    lenders=(Lender(project=GUESTS, lent_ms=9), Lender(project=ML, lent_ms=4)),
    slot_word="GPU",
)
