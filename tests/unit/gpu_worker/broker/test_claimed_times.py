"""What a node says of how long cells ran charges nobody for more than can be: its own time as a node of this pool."""

from pathlib import Path

import msgspec
import pytest

from bulletin.codes import CellOutcome
from bulletin.ids import CellId, KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.units import HOUR_MS, MINUTE_MS
from bulletin.wire import console, messages as wire
from gpu_worker.broker.agent_admission import AgentAdmission
from gpu_worker.broker.claimed_times import limit_claims, longest_ms
from gpu_worker.node_registry import NodeRegistry
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, BrokerParts

NOW_MS = 10**12
HUGE = (2**63, 10**17, -(2**63), -1)


def held(times_ms: int) -> wire.HeldLease:
    return wire.HeldLease(
        lease=LeaseId("l"),
        session=SessionId("s"),
        kernel=KernelId("k"),
        user=UserName("ann"),
        project=ProjectId("maths"),
        qos="interactive",
        slots=(SlotId("gpu-0"),),
        walltime_ms=30 * MINUTE_MS,
        cell=CellId("c"),
        running_ms=times_ms,
        held_ms=times_ms,
    )


def done(times_ms: int) -> wire.CellDone:
    return wire.CellDone(
        lease=LeaseId("l"),
        session=SessionId("s"),
        cell=CellId("c"),
        user=UserName("ann"),
        project=ProjectId("maths"),
        qos="interactive",
        slots=(SlotId("gpu-0"),),
        usage=wire.CellUsage(outcome=CellOutcome.RETURNED, ran_ms=times_ms, held_ms=times_ms),
        ended_ago_ms=times_ms,
    )


@pytest.mark.parametrize("claimed_ms", HUGE)
def test_no_time_that_a_node_says_is_longer_than_it_is_one_or_less_than_nothing(claimed_ms: int) -> None:
    most_ms = longest_ms(NOW_MS, NOW_MS - HOUR_MS)
    ended = limit_claims(done(claimed_ms), most_ms)
    began = limit_claims(wire.CellBegan(lease=LeaseId("l"), cell=CellId("c"), running_ms=claimed_ms), most_ms)
    assert isinstance(ended, wire.CellDone)
    assert isinstance(began, wire.CellBegan)
    times = (ended.usage.ran_ms, ended.usage.held_ms, ended.ended_ago_ms, began.running_ms)
    assert all(0 <= one <= HOUR_MS + MINUTE_MS for one in times)


def test_what_can_be_stays_as_it_was_said() -> None:
    most_ms = longest_ms(NOW_MS, NOW_MS - HOUR_MS)
    assert limit_claims(done(HOUR_MS), most_ms) == done(HOUR_MS)
    assert limit_claims(done(30 * HOUR_MS), longest_ms(NOW_MS, None)) == done(30 * HOUR_MS)


@pytest.mark.parametrize("claimed_ms", HUGE)
def test_a_node_that_claims_a_cell_of_long_ago_does_not_use_up_a_projects_budget(
    broker: BrokerParts, tmp_path: Path, claimed_ms: int
) -> None:
    """School has 10 GPU-hours of the week, and the node came a quarter of an hour ago."""
    broker.now_ms = NOW_MS
    registry = NodeRegistry(tmp_path)
    registry.add("n1", "its key", NOW_MS - 15 * MINUTE_MS, replaces=False)
    broker.admit(AgentAdmission("secret", registry, lambda _: "its key", lambda _: None))
    message = msgspec.structs.replace(broker.registration(slots=2), agent="n1", held=(held(claimed_ms),))
    broker.report("n1", message)
    [claimed] = broker.ask(ADMIN, console.AskQueue()).running
    assert 0 <= claimed.for_ms <= 16 * MINUTE_MS
    broker.report("n1", done(claimed_ms))
    broker.run(ADMIN, "d", "maths")
    assert broker.ask(ADMIN, console.AskQueue()).waiting == ()
