"""What the engine of a pool is told of those who wait for room."""

import asyncio

import msgspec

from bulletin.wire import console, messages as wire
from bulletin.wire.messages.engine_broker import EngineNews, NodeTime
from gpu_worker.broker.engine_reports import EngineReports
from gpu_worker.broker.ledger import Ledger
from gpu_worker.scheduler import events
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, SchedulerSettings
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, PROJECTS, BrokerParts


def test_who_would_have_a_node_alone_is_told_from_who_would_have_as_many_gpus(ledger: Ledger) -> None:
    pool = BrokerParts(ledger)
    qos = tuple(msgspec.structs.replace(one, can_be_exclusive=True) for one in DEFAULT_QOS)
    pool.step(events.SettingsChanged(SchedulerSettings(projects=PROJECTS, qos=qos)))
    pool.join(slots=2)
    pool.run(ANN, "runs")
    pool.submit(ANN, "alone", gpus=2, is_exclusive=True)
    pool.submit(ANN, "two", gpus=2)
    demand = asyncio.run(EngineReports(pool.shell, pool.agents, pool.clock_ms).answer(ADMIN, EngineNews()))
    assert [(need.slots, need.is_exclusive) for need in demand.waiting] == [(2, True), (2, False)]


def test_a_node_whose_host_is_taken_at_another_time_is_drained_by_then_and_its_agent_is_told(ledger: Ledger) -> None:
    """The way of the message, and that a cluster counts whole seconds, move nothing."""
    pool = BrokerParts(ledger)
    pool.report("n1", msgspec.structs.replace(pool.registration("n1"), follows_host_end=True))
    reports = EngineReports(pool.shell, pool.agents, pool.clock_ms)

    def drained_in(leaves_in_ms: int) -> int | None:
        news = EngineNews(times=(NodeTime(node="n1", leaves_in_ms=leaves_in_ms), NodeTime(node="n2", leaves_in_ms=0)))
        (load,) = asyncio.run(reports.answer(ADMIN, news)).nodes
        return load.leaves_in_ms

    assert [drained_in(ms) for ms in (3_600_000, 3_599_000, 600_000, 7_200_000, 7_201_000)] == [
        *(3_600_000, 3_600_000, 600_000),
        *(7_200_000, 7_200_000),
    ]
    told = [one.leaves_in_ms for one in pool.to_agents if isinstance(one, wire.HostEnds)]
    assert told == [3_600_000, 600_000, 7_200_000]
    pool.ask(ADMIN, console.Drain(node="n1", in_ms=1_000_000))
    assert drained_in(9_000_000) == 1_000_000, "an admin wants it sooner"
