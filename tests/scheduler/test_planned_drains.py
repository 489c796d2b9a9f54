"""A node that is to be drained at a time: until then it is given what is over by then. Step by step."""

from bulletin.ids import AgentId
from gpu_worker.scheduler import events as ev
from tests.scheduler.bench import MINUTE, SETTINGS, Bench, evicted, granted, slots

START = SETTINGS.start_ms  # what a grant may take until its cell begins


def plan(bench: Bench, agent: str, in_ms: int) -> list[object]:
    return list(bench.say(ev.DrainPlanned(AgentId(agent), bench.now_ms + in_ms)))


def test_only_what_is_over_by_then_starts_there(bench: Bench) -> None:
    bench.join("a", slots(2))
    plan(bench, "a", 20 * MINUTE + START)
    assert bench.ask("long", walltime_ms=30 * MINUTE) == []
    assert bench.why("long/1").reason == "node node-a is drained in 21 min, before yours could end"
    assert bench.why("long/1").wait_ms is None
    assert granted(bench.ask("short", walltime_ms=20 * MINUTE)) == ["short:1"]  # it passes nobody who could run there
    bench.start("short:1")
    bench.later(10 * MINUTE)
    assert bench.ask("late", walltime_ms=20 * MINUTE) == []
    assert granted(bench.ask("shorter", walltime_ms=10 * MINUTE)) == ["shorter:1"]


def test_at_its_time_it_is_drained_as_by_hand(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.ask("ann", walltime_ms=10 * MINUTE)
    bench.start("ann:1")
    plan(bench, "a", 15 * MINUTE)
    assert bench.scheduler.deadline() == 15 * MINUTE
    bench.later(15 * MINUTE)
    assert bench.ask("bob", walltime_ms=MINUTE) == []
    assert bench.why("bob/1").reason == "node node-a is being drained"
    assert evicted(bench.end("ann:1")) == ["ann:1"]  # it took longer than its walltime, and is left to end
    bench.free("ann:1")
    assert granted(bench.drain("a", undo=True)) == ["bob:1"]


def test_what_is_hot_leaves_in_time(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.run("ann", walltime_ms=10 * MINUTE)
    plan(bench, "a", 12 * MINUTE)
    due_ms = bench.scheduler.deadline()
    assert due_ms == 2 * MINUTE + 1
    assert bench.later(2 * MINUTE) == []
    assert evicted(bench.later(1)) == ["ann:1"]


def test_who_cannot_run_there_in_time_holds_nobody_back(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.join("b", slots(2))
    plan(bench, "a", 20 * MINUTE)
    bench.ask("one", gpus=2, walltime_ms=30 * MINUTE)
    bench.start("one:1")
    assert bench.ask("two", gpus=2, walltime_ms=30 * MINUTE) == []  # it waits for b
    bench.later(MINUTE)
    assert granted(bench.ask("ann", walltime_ms=5 * MINUTE)) == ["ann:1"]
    assert granted(bench.ask("bob", gpus=1, walltime_ms=10 * MINUTE)) == ["bob:1"]
    bench.end("one:1")
    assert granted(bench.free("one:1")) == ["two:1"]


def test_who_waits_for_a_large_part_of_it_is_passed_once_it_could_not_end_there(bench: Bench) -> None:
    """Time alone takes the node from it: the next one starts then, and not with the next thing that happens."""
    bench.join("a", slots(2))
    bench.ask("busy", walltime_ms=30 * MINUTE)
    bench.start("busy:1")
    plan(bench, "a", 40 * MINUTE)
    bench.ask("large", gpus=2, walltime_ms=20 * MINUTE)
    bench.later(MINUTE)
    assert granted(bench.ask("small", walltime_ms=25 * MINUTE)) == ["small:1"]  # busy may end too late for large


def test_undone_in_time_nothing_is_left_of_it(bench: Bench) -> None:
    bench.join("a", slots(1))
    plan(bench, "a", MINUTE)
    assert bench.ask("ann") == []
    assert granted(bench.drain("a", undo=True)) == ["ann:1"]
    bench.start("ann:1")
    bench.later(2 * MINUTE)
    bench.end("ann:1")
    assert bench.later(MINUTE) == []
    assert bench.scheduler.state.leases


def test_it_holds_for_an_agent_that_is_away_and_planned_for_the_past_it_is_now(bench: Bench) -> None:
    plan(bench, "a", 20 * MINUTE)
    bench.join("a", slots(1))
    assert bench.ask("ann") == []
    bench.lose("a")
    bench.later(21 * MINUTE)
    bench.join("a", slots(1))
    assert bench.why("ann/1").reason == "node node-a is being drained"
    bench.drain("a", undo=True)
    plan(bench, "b", -5)
    bench.join("b", slots(1))
    assert "b" in bench.scheduler.state.drained


def test_the_longest_wait_knows_of_it(bench: Bench) -> None:
    bench.join("a", slots(1))
    bench.join("b", slots(1))
    for name in ("one", "two"):
        bench.ask(name, walltime_ms=30 * MINUTE)
        bench.start(f"{name}:1")
    on = {str(lease.session): str(lease.agent) for lease in bench.scheduler.state.leases.values()}
    plan(bench, "b", 35 * MINUTE)
    bench.ask("ann", walltime_ms=10 * MINUTE)
    bench.ask("bob", walltime_ms=20 * MINUTE)
    assert sorted(on.values()) == ["a", "b"]
    assert bench.why("ann/1").wait_ms == 30 * MINUTE
    assert bench.why("bob/1").wait_ms == 30 * MINUTE + 10 * MINUTE or bench.why("bob/1").wait_ms == 30 * MINUTE
