"""A node that several want to be empty, an admin and who runs its host: whoever wants it sooner has it so."""

import asyncio

import pytest
from msgspec import structs

from bulletin.ids import AgentId
from bulletin.wire import console, messages as wire
from bulletin.wire.messages.engine_broker import EngineNews, NodeTime
from gpu_worker.broker.engine_reports import EngineReports
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, HOUR_MS, BrokerParts

NODE = AgentId("agent-n1")


def join(broker: BrokerParts, hours: float, route: bytes = b"n1", *, follows_host_end: bool = True) -> None:
    """Let a node in whose host ends after so long; by another route it comes again."""
    message = structs.replace(
        broker.registration("n1"), leaves_in_ms=round(hours * HOUR_MS), follows_host_end=follows_host_end
    )
    asyncio.run(broker.agents.take(route, message))


def tell(broker: BrokerParts, news: EngineNews) -> None:
    """Say what an engine says each second."""
    for _ in range(2):
        asyncio.run(EngineReports(broker.shell, broker.agents, broker.clock_ms).answer(ADMIN, news))


def move(broker: BrokerParts, hours: float) -> None:
    tell(broker, EngineNews(times=(NodeTime(node="n1", leaves_in_ms=round(hours * HOUR_MS)),)))


def planned_hours(broker: BrokerParts) -> float | None:
    """After how long the node is drained; 0 is by now, and None is never."""
    state = broker.shell.scheduler.state
    if NODE in state.drained:
        return 0
    at_ms = state.planned_drains.at_ms.get(NODE)
    return None if at_ms is None else (at_ms - broker.now_ms) / HOUR_MS


@pytest.mark.parametrize("hours", [1, 10])
def test_a_limit_that_is_changed_while_a_node_is_left_out_holds_when_it_is_back(
    broker: BrokerParts, hours: int
) -> None:
    join(broker, 8)
    asyncio.run(broker.agents.unreachable.add(NODE, "n1", "no notebook reaches it"))
    move(broker, hours)
    assert planned_hours(broker) == 0
    asyncio.run(broker.agents.unreachable.remove(NODE, "n1"))
    assert planned_hours(broker) == hours


def test_an_agent_that_found_out_that_its_job_has_another_end_is_planned_for_that(broker: BrokerParts) -> None:
    join(broker, 4)
    for hours in (8, 2):
        ping = wire.Ping(leaves_in_ms=hours * HOUR_MS)
        for _ in range(2):
            asyncio.run(broker.agents.take(b"n1", ping))
        assert planned_hours(broker) == hours
    asyncio.run(broker.agents.take(b"n1", wire.Ping()))
    assert planned_hours(broker) == 2
    asyncio.run(broker.agents.take(b"n1", wire.Ping(leaves_in_ms=-1)))
    assert planned_hours(broker) == 0


def test_an_agent_whose_job_has_no_limit_any_more_is_planned_for_ever(broker: BrokerParts) -> None:
    join(broker, 4)
    for ping, planned in (
        (wire.Ping(leaves_in_ms=wire.NEVER_MS), None),
        (wire.Ping(), None),
        (wire.Ping(leaves_in_ms=2 * HOUR_MS), 2),
        (wire.Ping(leaves_in_ms=2**70), None),
    ):
        asyncio.run(broker.agents.take(b"n1", ping))
        assert planned_hours(broker) == planned


def test_an_engine_takes_back_that_a_host_ends_and_its_agent_is_told_once(broker: BrokerParts) -> None:
    join(broker, 4)
    never = EngineNews(times=(NodeTime(node="n1", leaves_in_ms=wire.NEVER_MS),))
    tell(broker, never)
    assert planned_hours(broker) is None
    assert [one for one in broker.to_agents if isinstance(one, wire.HostEnds)] == [
        wire.HostEnds(leaves_in_ms=wire.NEVER_MS)
    ]
    move(broker, 3)
    broker.ask(ADMIN, console.Drain(node="n1", in_ms=5 * HOUR_MS))
    tell(broker, never)
    assert planned_hours(broker) == 5, "an admin's word is another matter"


def test_a_limit_that_is_made_longer_leaves_what_an_admin_has_planned(broker: BrokerParts) -> None:
    join(broker, 3)
    broker.ask(ADMIN, console.Drain(node="n1", in_ms=4 * HOUR_MS))
    join(broker, 3, b"again")
    assert planned_hours(broker) == 3
    move(broker, 10)
    assert planned_hours(broker) == 4


def test_a_limit_that_is_made_longer_holds_for_a_node_that_has_come_again(broker: BrokerParts) -> None:
    join(broker, 3)
    join(broker, 3.001, b"again")
    move(broker, 10)
    assert planned_hours(broker) == 10


@pytest.mark.parametrize("in_ms", [None, HOUR_MS, 4 * HOUR_MS])
@pytest.mark.parametrize("is_left_out", [True, False])
def test_an_admins_word_does_not_make_a_host_stay(broker: BrokerParts, in_ms: int | None, *, is_left_out: bool) -> None:
    join(broker, 2)
    if is_left_out:
        asyncio.run(broker.agents.unreachable.add(NODE, "n1", "no notebook reaches it"))
    broker.ask(ADMIN, console.Drain(node="n1", in_ms=in_ms))
    if not is_left_out:
        assert planned_hours(broker) == min(2, 0 if in_ms is None else in_ms / HOUR_MS)
    broker.ask(ADMIN, console.Drain(node="n1", is_undone=True))
    move(broker, 2)
    asyncio.run(broker.agents.unreachable.remove(NODE, "n1"))
    assert planned_hours(broker) == 2


def test_a_node_that_its_engine_ends_stays_drained_whatever_becomes_of_its_limit(broker: BrokerParts) -> None:
    join(broker, 2)
    tell(broker, EngineNews(leaving=("n1",), times=(NodeTime(node="n1", leaves_in_ms=9 * HOUR_MS),)))
    assert planned_hours(broker) == 0


def test_an_agent_that_cannot_be_told_of_its_hosts_end_is_given_nothing_that_is_over_after_it_leaves(
    broker: BrokerParts,
) -> None:
    join(broker, 2, follows_host_end=False)
    for hours, planned in ((10, 2), (1, 1), (1.5, 1.5), (10, 2)):
        move(broker, hours)
        assert planned_hours(broker) == planned
    tell(broker, EngineNews(times=(NodeTime(node="n1", leaves_in_ms=wire.NEVER_MS),)))
    assert planned_hours(broker) == 2
    assert not [one for one in broker.to_agents if isinstance(one, wire.HostEnds)], "it does not know the word"


def test_the_end_of_a_host_is_forgotten_with_the_node_and_an_admins_word_is_not(broker: BrokerParts) -> None:
    join(broker, 2)
    broker.ask(ADMIN, console.Drain(node="n1", in_ms=4 * HOUR_MS))
    broker.report("n1", wire.Left())
    assert planned_hours(broker) == 4
    broker.join("n1")
    assert planned_hours(broker) == 4


def test_an_admins_reason_stands_beside_the_admins_drain_and_beside_no_other(broker: BrokerParts) -> None:
    drains = broker.console.drains
    join(broker, 2)
    broker.ask(ADMIN, console.Drain(node="n1", in_ms=4 * HOUR_MS, why="new disks"))
    assert drains.why(NODE) == "", "its host ends before"
    move(broker, 9)
    assert drains.why(NODE) == "new disks"
    asyncio.run(broker.agents.unreachable.add(NODE, "n1", "no notebook reaches it"))
    assert drains.why(NODE) == "", "it is given nothing by now, for another reason"
    broker.now_ms = 4 * HOUR_MS
    assert drains.why(NODE) == "new disks"
