"""Which nodes a pool has is noted, so that a broker that is started again waits for them, and for no others."""

from typing import Literal

import pytest

from bulletin.ids import AgentId, SlotId
from bulletin.units import DAY_MS, HOUR_MS
from gpu_worker.broker import recall
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.node_notes import AWAITED_MS, NodeNotes
from gpu_worker.scheduler.events import AgentJoined, AgentLost, NodesAwaited, Slot
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import SchedulerSettings


class Life:
    """A broker's life, as far as its nodes go."""

    def __init__(self, ledger: Ledger, now_ms: int) -> None:
        self.ledger, self.now_ms, self.notes, self.scheduler = ledger, now_ms, NodeNotes(), Scheduler()
        self.awaited = list[str]()
        for event, at_ms in recall.past(ledger, SchedulerSettings(), (), now_ms):
            self.scheduler.step(event, at_ms)
            if isinstance(event, NodesAwaited):
                assert event.until_ms == now_ms + AWAITED_MS
                self.awaited += event.nodes

    def tick(self, later_ms: int = 1000) -> int:
        """Let time pass; how many notes were made."""
        self.now_ms += later_ms
        found = self.notes.take(self.scheduler.state, self.now_ms)
        self.ledger.record(found, self.now_ms)
        return len(found)

    def join(self, *names: str) -> None:
        for name in names:
            self.scheduler.step(AgentJoined(AgentId(name), f"node-{name}", ()), self.now_ms)
        self.tick()

    def lose(self, name: str) -> None:
        self.scheduler.step(AgentLost(AgentId(name)), self.now_ms)
        self.tick()


def test_the_next_broker_awaits_those_that_were_there_last(ledger: Ledger) -> None:
    first = Life(ledger, 1_000)
    assert first.awaited == []
    first.join("a", "b", "c")
    first.lose("b")
    first.tick(HOUR_MS)
    assert Life(ledger, first.now_ms).awaited == ["node-a", "node-c"]


def test_who_was_lost_a_moment_before_is_awaited_as_well(ledger: Ledger) -> None:
    first = Life(ledger, 1_000)
    first.join("a", "b")
    first.lose("b")
    assert Life(ledger, 60_000).awaited == ["node-a", "node-b"]


def test_who_was_not_back_yet_is_awaited_by_the_one_after_that_too(ledger: Ledger) -> None:
    Life(ledger, 1_000).join("a", "b")
    second = Life(ledger, 60_000)
    second.join("a")
    assert Life(ledger, 90_000).awaited == ["node-a", "node-b"]
    second.scheduler.step(AgentLost(AgentId("none")), 60_000 + AWAITED_MS)
    second.tick(AWAITED_MS)
    assert Life(ledger, 900_000).awaited == ["node-a", "node-b"]
    second.tick(HOUR_MS)
    assert Life(ledger, second.now_ms).awaited == ["node-a"]


def test_a_pool_that_has_lost_all_nodes_awaits_none(ledger: Ledger) -> None:
    first = Life(ledger, 1_000)
    first.join("a")
    first.lose("a")
    first.tick(HOUR_MS)
    assert Life(ledger, first.now_ms).awaited == []


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_the_next_broker_knows_whether_a_gpu_is_to_come_back(ledger: Ledger, kind: Literal["gpu", "cpu"]) -> None:
    first = Life(ledger, 1_000)
    first.scheduler.step(AgentJoined(AgentId("a"), "node-a", (Slot(SlotId("0"), kind, "model", 0),)), 1_000)
    first.tick()
    assert Life(ledger, 60_000).scheduler.state.slot_catalog.has_gpus is (kind == "gpu")


def test_the_same_nodes_are_noted_again_once_a_day(ledger: Ledger) -> None:
    life = Life(ledger, 1_000)
    life.join("a")
    assert [life.tick(), life.tick(DAY_MS), life.tick()] == [0, 1, 0]
