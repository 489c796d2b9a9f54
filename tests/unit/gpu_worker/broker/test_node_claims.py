"""What a node says of itself that cannot be is refused with the field's name, and harms no other node."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from bulletin.codes import CellOutcome
from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.agent_admission import AgentAdmission
from gpu_worker.broker.node_claims import find_excess, limit_measures
from gpu_worker.node_registry import NodeRegistry
from tests.unit.gpu_worker.broker.broker_parts import ANN, BrokerParts
from tests.unit.gpu_worker.broker.node_reports import done, held

HUGE = 2**63
GPU = wire.SlotOffer(slot=SlotId("gpu-0"), kind="gpu", name="A100")


def offers(**changes: Any) -> tuple[wire.SlotOffer, ...]:
    return (structs.replace(GPU, **changes),)


ODD: list[tuple[dict[str, Any], str]] = [
    ({"cpus": -1}, "cpus is -1"),
    ({"cpus": HUGE}, "cpus is"),
    ({"memory_bytes": -(2**40)}, "memory_bytes is"),
    ({"memory_bytes": HUGE}, "memory_bytes is"),
    ({"leaves_in_ms": -1}, "leaves_in_ms is -1"),
    ({"leaves_in_ms": HUGE}, "leaves_in_ms is"),
    ({"slots": offers(memory_bytes=HUGE)}, "slots.memory_bytes is"),
    ({"slots": offers(memory_bytes=-1)}, "slots.memory_bytes is"),
    ({"slots": offers(name="\x1b[2J")}, "slots.name has characters"),
    ({"slots": offers(slot=SlotId("x" * 300))}, "slots.slot has 300 characters"),
    ({"slots": offers(slot=SlotId(""))}, "slots.slot has 0 characters"),
    ({"slots": (GPU, GPU)}, "the same one twice"),
    ({"slots": tuple(structs.replace(GPU, slot=SlotId(str(n))) for n in range(5000))}, "number of slots is 5000"),
    ({"held": tuple(held(lease=LeaseId(str(n))) for n in range(200))}, "number of held leases is 200"),
    ({"shared_account": "\u202eroot"}, "shared_account has characters"),
    ({"missing_protections": ("x",) * 1000}, "number of missing_protections"),
    ({"missing_protections": ("\x07",)}, "missing_protections has characters"),
    ({"version": "1" * 1000}, "version has 1000"),
    ({"process": "\0"}, "process has characters"),
    ({"address": wire.AgentAddress(address="tcp://\n", public_key="")}, "address has characters"),
    ({"address": wire.AgentAddress(address="", public_key="", door="/x" * 5000)}, "address.door has 10000"),
    ({"address": wire.AgentAddress(address="", public_key="", door_uid=-1)}, "address.door_uid is -1"),
]


@pytest.mark.parametrize(("claimed", "words"), ODD, ids=[words for _, words in ODD])
def test_a_node_that_claims_what_cannot_be_is_told_which_field_and_others_go_on(
    broker: BrokerParts, tmp_path: Path, claimed: dict[str, Any], words: str
) -> None:
    registry = NodeRegistry(tmp_path)
    for name in ("odd", "good"):
        registry.add(name, f"key of {name}", 0, replaces=False)
    broker.admit(AgentAdmission("secret", registry, lambda route: f"key of {route.decode()}", lambda _: None))
    broker.report("odd", structs.replace(broker.registration("odd"), agent=AgentId("odd"), **claimed))
    [(_, said)] = broker.to_routes
    assert isinstance(said, wire.Refusal)
    assert words in said.sentence
    assert "'odd'" in said.sentence
    assert "\n" not in said.sentence
    assert [(one.node, words in one.problem) for one in broker.agents.absent_nodes if one.node == "odd"] == [
        ("odd", True)
    ], "admins read it, too"
    empty = held(slots=())  # which needs no door to be tried first
    broker.report("good", structs.replace(broker.registration("good"), agent=AgentId("good"), held=(empty,)))
    assert list(broker.agents.known) == ["good"]
    broker.submit(ANN, "cell-a")
    assert broker.shell.scheduler.state.pending == {}, "its cell has the good node"


@pytest.mark.parametrize(
    "changes", [{"cpus": -5}, {"memory_bytes": -(2**50)}, {"memory_bytes": HUGE}, {"cell": CellId("c" * 5000)}]
)
def test_a_lease_that_cannot_be_is_left_out_and_its_node_is_there(broker: BrokerParts, changes: dict[str, Any]) -> None:
    other = held(lease=LeaseId("m"), session=SessionId("t"))
    broker.report("n1", structs.replace(broker.registration(), held=(held(**changes), other)))
    assert list(broker.shell.scheduler.state.leases) == ["m"]


def test_names_of_users_and_projects_keep_no_node_out(broker: BrokerParts) -> None:
    """They are the hub's, which allows more than what can be printed."""
    one = held(user=UserName("a\u200db"), project=ProjectId("\u202ex"))
    broker.report("n1", structs.replace(broker.registration(), held=(one,)))
    assert list(broker.shell.scheduler.state.leases) == ["l"]


@given(
    busy=st.none() | st.floats(),
    peak=st.none() | st.integers(-(2**63), 2**64),
    sent=st.integers(-(2**63), 2**64),
    label=st.text(max_size=1000),
)
def test_what_a_node_has_measured_is_within_this_world(
    busy: float | None, peak: int | None, sent: int, label: str
) -> None:
    usage = wire.CellUsage(
        outcome=CellOutcome.RETURNED,
        ran_ms=1,
        held_ms=1,
        peak_memory_bytes=peak,
        mean_utilization=busy,
        bytes_sent=sent,
        bytes_returned=sent,
    )
    cut = limit_measures(done(usage=usage, label=label))
    assert isinstance(cut, wire.CellDone)
    assert cut.usage.mean_utilization is None or 0 <= cut.usage.mean_utilization <= 1
    assert cut.usage.peak_memory_bytes is None or 0 <= cut.usage.peak_memory_bytes <= 2**50
    assert 0 <= cut.usage.bytes_sent <= 2**53
    assert len(cut.label) <= 256
    if busy is not None and math.isfinite(busy) and 0 <= busy <= 1:
        assert cut.usage.mean_utilization == busy


def test_counters_of_a_node_are_few_and_can_be_printed() -> None:
    said = {f"c{number}": HUGE for number in range(10_000)} | {"\x1b[2J": 1, "x" * 10_000: 1}
    cut = limit_measures(wire.Ping(counters=said))
    assert isinstance(cut, wire.Ping)
    assert len(cut.counters) <= 64
    assert max(cut.counters.values()) < HUGE
    assert all(name.isprintable() and len(name) <= 256 for name in cut.counters)


def test_a_clock_that_leaps_puts_no_cell_into_the_past_before_its_node(broker: BrokerParts) -> None:
    broker.now_ms = 10**12
    registration = broker.registration()
    broker.report("n1", registration)
    lease = broker.submit(ANN, "cell-a")
    broker.report("n1", wire.Ping(clock_ms=HUGE))
    broker.report("n1", wire.CellBegan(lease=lease, cell=CellId("cell-a"), clock_ms=0))
    since_ms = broker.shell.scheduler.state.leases[lease].since_ms
    assert broker.now_ms - since_ms <= 10 * 366 * 86_400_000


def test_what_nodes_say_as_they_are_is_no_excess(broker: BrokerParts) -> None:
    assert find_excess(broker.registration(slots=16)) == ""
    assert find_excess(structs.replace(broker.registration(), slots=(), leaves_in_ms=0, cpus=256)) == ""
    assert msgspec.msgpack.encode(broker.registration())
