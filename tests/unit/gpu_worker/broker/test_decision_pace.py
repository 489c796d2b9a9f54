"""A broker whose decisions take long goes on listening: it decides upon several facts at once."""

import asyncio

import pytest

from bulletin.ids import RequestId
from gpu_worker.broker.decision_pace import DecisionPace
from gpu_worker.broker.ledger import Ledger
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, BrokerParts

PATIENCE_S = 60


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_decision_that_took_long_is_followed_by_a_rest_of_the_same_length() -> None:
    clock = Clock()
    pace = DecisionPace(clock)
    assert pace.is_due
    clock.now_s += 0.4
    pace.note_decision(began_s=100.0)
    assert not pace.is_due
    clock.now_s += 0.39
    assert not pace.is_due
    clock.now_s += 0.02
    assert pace.is_due


def test_after_quick_decisions_there_is_no_rest() -> None:
    clock = Clock()
    pace = DecisionPace(clock)
    clock.now_s += 0.01
    pace.note_decision(began_s=100.0)
    assert pace.is_due


def test_what_was_only_noted_wakes_who_sleeps_until_the_next_decision() -> None:
    async def sleeps() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(pace.sleep(10 * PATIENCE_S), note())

    async def note() -> None:
        pace.note_fact()

    pace = DecisionPace(Clock())
    asyncio.run(sleeps())
    pace.note_decision(began_s=100.0)
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(pace.sleep(PATIENCE_S), 0))


def test_a_request_that_a_busy_broker_only_noted_is_granted_with_the_next_tick(ledger: Ledger) -> None:
    broker = BrokerParts(ledger)
    broker.join()
    broker.shell.pace.note_decision(began_s=-1.0)  # it took a second
    broker.submit(ADMIN, "cell")
    state = broker.shell.scheduler.state
    request = RequestId("s-cell/cell")
    assert request in state.pending
    assert broker.shell.scheduler.deadline() == broker.now_ms + 1
    broker.step(events.Tick())
    assert request in state.granted
