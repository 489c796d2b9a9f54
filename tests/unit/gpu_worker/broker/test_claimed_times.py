"""What a node says of how long cells ran charges nobody for more than can be: its own time as a node of this pool."""

from pathlib import Path

import msgspec
import pytest

from bulletin.codes import CellOutcome
from bulletin.ids import CellId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.units import HOUR_MS, MINUTE_MS
from bulletin.wire import console, keys, messages as wire
from gpu_worker.broker.agent_admission import AgentAdmission
from gpu_worker.broker.claimed_times import limit_claims, longest_ms
from gpu_worker.node_registry import NodeRegistry
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, BrokerParts
from tests.unit.gpu_worker.broker.node_reports import held

NOW_MS = 10**12
HUGE = (2**63, 10**17, -(2**63), -1)


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
    message = msgspec.structs.replace(
        broker.registration(slots=2),
        agent="n1",
        held=(held(cell=CellId("c"), running_ms=claimed_ms, held_ms=claimed_ms),),
    )
    broker.report("n1", message)
    [claimed] = broker.ask(ADMIN, console.AskQueue()).running
    assert 0 <= claimed.for_ms <= 16 * MINUTE_MS
    broker.report("n1", done(claimed_ms))
    broker.run(ADMIN, "d", "maths")
    assert broker.ask(ADMIN, console.AskQueue()).waiting == ()


def test_what_a_node_says_last_before_its_connection_ends_is_held_to_its_time_too(
    broker: BrokerParts, tmp_path: Path
) -> None:
    """Its key is known by its connection; what it sent last is read when that is gone."""
    broker.now_ms = NOW_MS
    registry = NodeRegistry(tmp_path)
    registry.add("n1", "its key", NOW_MS - 15 * MINUTE_MS, replaces=False)
    connections = {b"n1": "its key"}
    broker.admit(AgentAdmission("secret", registry, connections.get, lambda _: None))
    broker.report("n1", msgspec.structs.replace(broker.registration(slots=2), agent="n1"))
    connections.clear()
    broker.report("n1", msgspec.structs.replace(done(10**17), ended_ago_ms=0))
    broker.writer.close()
    [row] = broker.ledger.rows_of_user(UserName("ann"), 10)
    assert row["held_ms"] <= 16 * MINUTE_MS


def test_who_has_no_key_that_anybody_knows_of_has_no_time(tmp_path: Path) -> None:
    registry = NodeRegistry(tmp_path)
    registry.add("n1", "its key", NOW_MS - HOUR_MS, replaces=False)
    admission = AgentAdmission("secret", registry, lambda _: None, lambda _: None)
    own = keys.agent_keys("secret").public
    assert admission.since_ms(own, NOW_MS) is None
    assert admission.since_ms("its key", NOW_MS) == NOW_MS - HOUR_MS
    assert {admission.since_ms(nobodys, NOW_MS) for nobodys in (None, "", "another key")} == {NOW_MS}


def test_a_node_that_names_many_slots_has_no_cell_charged_for_more_than_it_has(
    broker: BrokerParts, tmp_path: Path
) -> None:
    broker.now_ms = NOW_MS
    registry = NodeRegistry(tmp_path)
    registry.add("n1", "its key", NOW_MS - HOUR_MS, replaces=False)
    broker.admit(AgentAdmission("secret", registry, lambda _: "its key", lambda _: None))
    broker.report("n1", msgspec.structs.replace(broker.registration(slots=2), agent="n1"))
    names = (*(SlotId(f"made up {number}") for number in range(1000)), SlotId("gpu-0"), SlotId("gpu-0"))
    broker.report("n1", msgspec.structs.replace(done(HOUR_MS), slots=names, ended_ago_ms=0))
    broker.writer.close()
    [row] = broker.ledger.rows_of_user(UserName("ann"), 10)
    assert (row["gpus"], row["charged_milli"]) == (2, 2000)


@pytest.mark.parametrize("claimed_ms", [2 * HOUR_MS, 10**17])
def test_a_broker_whose_clock_was_wrong_when_it_began_cuts_no_cell_of_a_node_that_is_newer(
    broker: BrokerParts, tmp_path: Path, claimed_ms: int
) -> None:
    """It began in the past, before the host had the time; the node was registered by a command that had it."""
    broker.now_ms = NOW_MS
    registry = NodeRegistry(tmp_path)
    registry.add("n1", "its key", NOW_MS + 1000 * HOUR_MS, replaces=False)
    broker.admit(AgentAdmission("secret", registry, lambda _: "its key", lambda _: None))
    broker.report("n1", msgspec.structs.replace(broker.registration(slots=2), agent="n1"))
    broker.now_ms += 2 * HOUR_MS
    broker.report("n1", msgspec.structs.replace(done(claimed_ms), ended_ago_ms=0))
    broker.writer.close()
    [row] = broker.ledger.rows_of_user(UserName("ann"), 10)
    assert 2 * HOUR_MS <= row["held_ms"] <= 2 * HOUR_MS + MINUTE_MS
