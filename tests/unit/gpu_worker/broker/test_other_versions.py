"""An agent of another Bulletin: what it says beyond what is known harms nobody; another protocol is refused."""

from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from bulletin.codes import RefusalCode
from bulletin.ids import AgentId
from bulletin.wire import frames, messages as wire
from gpu_worker.broker.agent_admission import AgentAdmission
from gpu_worker.node_registry import NodeRegistry
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (wire.PROTOCOL - 1, "the agent is older than this side and must be upgraded"),
        (wire.PROTOCOL + 1, "this side is older than the agent and must be upgraded"),
    ],
)
def test_who_speaks_another_protocol_is_told_which_side_is_older_and_so_is_who_runs_the_pool(
    broker: BrokerParts, tmp_path: Path, protocol: int, words: str
) -> None:
    registry = NodeRegistry(tmp_path)
    registry.add("n1", "its key", 0, replaces=True)
    broker.admit(AgentAdmission("secret", registry, lambda _: "its key", lambda _: None))
    broker.report("n1", structs.replace(broker.registration(), agent=AgentId("n1"), protocol=protocol))
    [refusal] = [said for _, said in broker.to_routes if isinstance(said, wire.Refusal)]
    assert refusal.code is RefusalCode.VERSION_MISMATCH
    assert words in refusal.sentence
    [absent] = broker.agents.absent_nodes
    assert (absent.node, absent.problem) == ("n1", refusal.sentence)


def test_who_speaks_a_protocol_of_which_nothing_can_be_read_is_told_to_who_runs_the_pool(
    broker: BrokerParts, tmp_path: Path
) -> None:
    registry = NodeRegistry(tmp_path)
    registry.add("n1", "its key", 0, replaces=True)
    broker.admit(AgentAdmission("secret", registry, lambda _: "its key", lambda _: None))
    for newer in (1, 2, 1, 2, 1):
        broker.agents.note_protocol(b"route", wire.PROTOCOL + newer)
    [absent] = broker.agents.absent_nodes
    assert absent.node == "n1"
    assert "this side is older than the agent and must be upgraded" in absent.problem
    assert broker.agents.refused == 1, "said once, however often it comes, and whatever it says of itself"


def test_what_a_newer_agent_says_beside_what_is_known_is_passed_over(broker: BrokerParts) -> None:
    [mark, body] = map(bytes, frames.pack(broker.registration()))
    said = msgspec.msgpack.decode(body) | {"said_since_the_next_version": {"much": [1, 2]}}
    unpacker: frames.Unpacker[wire.FromAgent] = frames.Unpacker(wire.FromAgent)
    message, _ = unpacker.unpack([mark, msgspec.msgpack.encode(said)])
    assert message == broker.registration()
