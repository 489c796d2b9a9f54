"""A node that is drained: nothing new comes there, what runs ends in peace, and who waits is told. Step by step."""

from tests.scheduler.bench import MINUTE, Bench, evicted, granted, held, project, slots
from tests.scheduler.quota_bench import Quotas


def test_a_drained_node_is_given_nothing_and_who_waits_is_told(bench: Bench) -> None:
    bench.join("a", slots(2))
    assert bench.drain("a") == []
    assert bench.ask("ann") == []
    assert bench.why("ann/1").reason == "node node-a is being drained"
    assert bench.why("ann/1").wait_ms is None
    assert granted(bench.drain("a", undo=True)) == ["ann:1"]


def test_what_is_hot_goes_and_what_runs_ends_first(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.run("ann")
    bench.ask("bob")
    bench.start("bob:1")
    assert evicted(bench.drain("a")) == ["ann:1"]
    assert bench.free("ann:1") == []
    assert bench.later(20 * MINUTE) == []
    assert evicted(bench.end("bob:1")) == ["bob:1"]
    assert bench.free("bob:1") == []
    assert bench.ask("cem") == []


def test_a_cell_whose_lease_was_granted_before_may_still_begin(bench: Bench) -> None:
    bench.join("a", slots(1))
    assert granted(bench.ask("ann")) == ["ann:1"]
    assert bench.drain("a") == []
    assert bench.start("ann:1") == []
    assert evicted(bench.end("ann:1")) == ["ann:1"]


def test_others_go_on_and_the_reason_names_the_node_that_would_help(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.join("b", slots(1))
    bench.drain("a")
    assert [action.agent for action in bench.ask("ann")] == ["b"]
    bench.start("ann:1")
    assert bench.ask("bob") == []
    assert bench.why("bob/1").reason == "the only GPU is busy; node node-a is being drained"
    assert bench.why("bob/1").wait_ms == 30 * MINUTE
    assert evicted(bench.end("ann:1")) == ["ann:1"]
    assert granted(bench.free("ann:1")) == ["bob:1"]


def test_a_large_node_that_is_drained_holds_nobody_back_elsewhere(bench: Bench) -> None:
    bench.join("a", slots(4))
    bench.join("b", slots(1))
    bench.drain("a")
    assert bench.ask("ann", gpus=4) == []
    assert granted(bench.ask("bob")) == ["bob:1"]
    assert bench.why("ann/1").reason == "node node-a is being drained"
    assert granted(bench.drain("a", undo=True)) == ["ann:1"]


def test_it_stays_drained_when_its_agent_is_lost_and_comes_back(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.drain("a")
    bench.lose("a")
    bench.join("a", slots(1))
    assert bench.ask("ann") == []
    assert bench.why("ann/1").reason == "node node-a is being drained"
    bench.join("a", slots(1))
    assert bench.why("ann/1").reason == "node node-a is being drained"
    assert granted(bench.drain("a", undo=True)) == ["ann:1"]


def test_a_node_may_be_drained_before_it_joins_and_what_it_then_holds_hot_goes(bench: Bench) -> None:
    assert bench.drain("a") == []
    assert evicted(bench.join("a", slots(2), held("ann"), held("bob", cell="c1", on=("gpu-1",)))) == ["ann:1"]
    assert bench.free("ann:1") == []
    assert evicted(bench.end("bob:1")) == ["bob:1"]


def test_said_twice_it_changes_nothing(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.run("ann")
    assert evicted(bench.drain("a")) == ["ann:1"]
    assert bench.drain("a") == []
    assert bench.drain("a", undo=True) == []
    assert bench.drain("a", undo=True) == []
    assert bench.drain("nowhere", undo=True) == []


def test_running_cells_of_a_drained_node_are_not_reclaimed_for_who_could_not_go_there() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(1))
    pool.busy("guests.eve")
    pool.later(10 * MINUTE)
    assert pool.drain("a") == []
    assert pool.ask("lab.ann", project="lab") == []
    assert pool.later(20 * MINUTE) == []
    assert pool.why("lab.ann/1").reason == "node node-a is being drained"
    pool.replay()


def test_three_or_more_are_counted(bench: Bench) -> None:
    for agent in ("a", "b"):
        bench.join(agent, slots(1))
        bench.drain(agent)
    bench.ask("ann")
    assert bench.why("ann/1").reason == "nodes node-a and node-b are being drained"
    bench.drain("c")
    assert bench.join("c", slots(1)) == []
    assert bench.why("ann/1").reason == "3 nodes are being drained"
