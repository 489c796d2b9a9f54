"""What the broker tells of leases, as a meter cuts their time, for hypothesis."""

import msgspec
from hypothesis import strategies as st

from bulletin.codes import LeaseEnd
from gpu_worker.broker.meter import Meter
from gpu_worker.broker.records import LeaseRecord, Record
from tests.unit.gpu_worker.broker.ledger_records import LEASE, record


def history(draw: st.DrawFn, lease: str) -> list[Record]:
    """What the broker tells of one lease, as a meter cuts it, with clocks that stumble."""
    at_ms = draw(st.integers(0, 3 * 86_400_000))
    kind = draw(st.sampled_from(["gpu", "cpu"]))
    user, project = draw(st.sampled_from(["ann", "bob"])), draw(st.sampled_from(["ml", "bio"]))
    slots = tuple(f"{kind}-{number}" for number in range(draw(st.integers(1, 3))))
    milli = draw(st.none() | st.integers(1, 1000 * len(slots)))
    changes = {"lease": lease, "user": user, "project": project, "slots": slots, "kind": kind, "milli": milli}
    grant: LeaseRecord = msgspec.structs.replace(LEASE, granted_at_ms=at_ms, **changes)
    told: list[Record] = [grant]
    meter = Meter(grant)
    steps = st.integers(-50, 40_000_000)
    for number in range(draw(st.integers(0, 4))):
        at_ms += draw(steps)
        cell = f"{lease}-c{number // 2}"
        plain = record(cell, attempt=1 + number % 2, **changes)
        began_ms = at_ms
        if draw(st.booleans()):
            at_ms += draw(steps)
            told += meter.add_earlier(plain, began_ms, at_ms, is_in_quota=draw(st.booleans()), is_refunded=False)
            continue
        meter.begin(cell, is_in_quota=draw(st.booleans()), at_ms=at_ms)  # type: ignore[arg-type]
        for is_in_quota in draw(st.lists(st.booleans(), max_size=3)):
            at_ms += draw(steps)
            meter.turn(is_in_quota=is_in_quota, at_ms=at_ms)
        at_ms += draw(steps)
        told += meter.end(plain, at_ms, is_refunded=draw(st.booleans()))
    if draw(st.booleans()):
        told += meter.close(LeaseEnd.LEFT, at_ms + draw(steps))
    return told


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """What the broker tells of a few leases."""
    return [record for number in range(draw(st.integers(0, 4))) for record in history(draw, f"l{number}")]
