"""A node that is gone for certain is none that a broker that is started again waits for; one that may come back is."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from bulletin.codes import LeaseEnd
from bulletin.ids import AgentId
from bulletin.wire import messages as wire
from bulletin.wire.messages.engine_broker import EndedNode, EngineNews
from gpu_worker.broker.agent_admission import AgentAdmission
from gpu_worker.broker.engine_reports import EngineReports
from gpu_worker.broker.node_sentences import ANEW, LEFT
from gpu_worker.node_registry import NodeRegistry
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, BrokerParts
from tests.unit.gpu_worker.broker.node_reports import held


def noted(broker: BrokerParts) -> object:
    """Let a second pass; what the ledger is told of the nodes, if it is another thing than before."""
    broker.now_ms += 1_000
    events = broker.agents.notes.take(broker.shell.scheduler.state, broker.now_ms)
    return events[-1].payload["nodes"] if events else None


def lose(broker: BrokerParts) -> None:
    for _ in range(20):
        broker.now_ms += 1_000
        asyncio.run(broker.agents.tidy())
    assert not broker.agents.known


def tell_ended(broker: BrokerParts) -> None:
    news = EngineNews(ended=(EndedNode(node="n1", sentence="Its Slurm job has ended."),))
    asyncio.run(EngineReports(broker.shell, broker.agents, broker.clock_ms).answer(ADMIN, news))


def admit_node(broker: BrokerParts, registry: NodeRegistry, *, is_of_engine: bool) -> None:
    """Let a node in that is registered, by an admin or an engine."""
    registry.add("n1", "its key", 0, replaces=True, is_of_engine=is_of_engine)
    broker.admit(AgentAdmission("secret", registry, lambda _: "its key", lambda _: None))
    broker.report("n1", structs.replace(broker.registration(), agent=AgentId("n1"), held=(held(),)))
    assert noted(broker) == ["n1"]


def test_an_engines_node_that_has_left_is_noted_no_more(broker: BrokerParts, tmp_path: Path) -> None:
    admit_node(broker, NodeRegistry(tmp_path), is_of_engine=True)
    broker.report("n1", wire.Left())
    assert noted(broker) == []


def test_a_registered_node_that_has_left_is_noted_it_may_be_started_again(broker: BrokerParts, tmp_path: Path) -> None:
    admit_node(broker, NodeRegistry(tmp_path), is_of_engine=False)
    broker.report("n1", wire.Left())
    assert noted(broker) is None, "as before"


def leave(broker: BrokerParts) -> None:
    broker.report("n1", wire.Left())


@pytest.mark.parametrize("end", [leave, tell_ended])
def test_whoever_waits_is_not_sent_to_a_node_that_is_gone_for_certain(
    broker: BrokerParts, end: Callable[[BrokerParts], None]
) -> None:
    """It need not have said before that it leaves."""
    broker.join("n1")
    broker.run(ANN, "runs")
    broker.submit(EVE, "waits")
    broker.to_agents.clear()
    end(broker)
    assert not [one for one in broker.to_agents if isinstance(one, wire.Prepare)]
    assert [one.user for one in broker.shell.scheduler.state.pending.values()] == ["eve"]
    broker.join("n1")
    assert [one.session for one in broker.to_agents if isinstance(one, wire.Prepare)] == ["s-waits"]


def test_the_cell_of_a_node_that_is_killed_within_its_grace_runs_again_as_it_was_told(broker: BrokerParts) -> None:
    broker.join("n1")
    lease = broker.run(ANN, "runs")
    broker.report("n1", wire.Leaving())
    lose(broker)
    [told] = [said for _, said in broker.to_sessions if isinstance(said, wire.Revoked)]
    assert (told.lease, told.code, told.sentence) == (lease, LeaseEnd.RECLAIMED, LEFT)


@pytest.mark.parametrize("is_of_engine", [True, False])
def test_the_cell_of_an_engines_node_whose_job_is_started_anew_runs_again(
    broker: BrokerParts, tmp_path: Path, *, is_of_engine: bool
) -> None:
    """Slurm has put the job back into its queue, say. Of a host whose agent somebody starts again, it is lost."""
    registry = NodeRegistry(tmp_path)
    registry.add("n1", "its key", 0, replaces=True, is_of_engine=is_of_engine)
    broker.admit(AgentAdmission("secret", registry, lambda _: "its key", lambda _: None))
    node = structs.replace(broker.registration(), agent=AgentId("n1"), process="one")
    broker.report("n1", node)
    lease = broker.run(ANN, "runs")
    broker.now_ms += 10_000
    broker.report("another route", structs.replace(node, process="another"))
    [told] = [said for _, said in broker.to_sessions if isinstance(said, wire.Revoked)]
    assert (told.lease, told.code) == (lease, LeaseEnd.RECLAIMED if is_of_engine else LeaseEnd.NOT_HELD)
    assert not is_of_engine or told.sentence == ANEW
    broker.submit(EVE, "next")
    assert [one.session for one in broker.to_agents if isinstance(one, wire.Prepare)][-1] == "s-next"


@pytest.mark.parametrize("is_lost", [True, False])
def test_whose_job_has_ended_is_noted_no_more_whether_it_was_lost_before_or_not(
    broker: BrokerParts, *, is_lost: bool
) -> None:
    broker.join("n1")
    assert noted(broker) == ["n1"]
    if is_lost:
        lose(broker)
        assert noted(broker) is None, "as before"
    tell_ended(broker)
    assert noted(broker) == []


def test_a_node_that_an_admin_removes_is_noted_no_more(broker: BrokerParts, tmp_path: Path) -> None:
    registry = NodeRegistry(tmp_path)
    admit_node(broker, registry, is_of_engine=False)
    registry.remove("n1")
    asyncio.run(broker.agents.tidy())
    assert noted(broker) == []
