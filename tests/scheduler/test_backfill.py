"""The head of the line holds a node; others pass it where that does it no harm. Each told step by step."""

import pytest

from bulletin.ids import SlotId
from gpu_worker.scheduler import events as ev
from tests.scheduler.bench import MINUTE, SETTINGS, Bench, evicted, granted, slots


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    bench.replay()


def ask(bench: Bench, name: str, **how: object) -> list:
    """Later than all before: what is due within the same ten seconds is put in order by walltime."""
    bench.later(10_000)
    return bench.ask(name, **how)  # type: ignore[arg-type]


def busy(bench: Bench, *names: str, **how: object) -> None:
    for name in names:
        assert granted(ask(bench, name, **how)) == [f"{name}:1"]
        bench.start(f"{name}:1")


def test_a_short_cell_runs_while_the_head_waits_for_a_long_one_and_does_not_delay_it(bench: Bench) -> None:
    bench.join("a", slots(2))
    busy(bench, "ann")
    assert ask(bench, "bob", gpus=2) == []
    assert granted(ask(bench, "cem", walltime_ms=20 * MINUTE)) == ["cem:1"]  # and a minute until it starts
    bench.start("cem:1")
    bench.later(20 * MINUTE)
    assert evicted(bench.end("cem:1")) == ["cem:1"]
    bench.free("cem:1")
    assert granted(bench.free("ann:1")) == ["bob:1"]


@pytest.mark.parametrize(("late_ms", "runs"), [(0, ["cem:1"]), (1, [])])
def test_a_cell_runs_if_it_is_over_in_time_and_not_a_millisecond_later(
    bench: Bench, late_ms: int, runs: list[str]
) -> None:
    bench.join("a", slots(2))
    busy(bench, "ann")
    assert ask(bench, "bob", gpus=2) == []
    bench.later(9 * MINUTE - 10_000 + late_ms)
    assert granted(bench.ask("cem", walltime_ms=20 * MINUTE)) == runs


@pytest.mark.parametrize(("walltime_ms", "runs"), [(15 * MINUTE, ["cem:1"]), (15 * MINUTE + 1, [])])
def test_walltimes_count_in_steps(bench: Bench, walltime_ms: int, runs: list[str]) -> None:
    bench.join("a", slots(2))
    busy(bench, "ann")
    assert ask(bench, "bob", gpus=2) == []
    bench.later(12 * MINUTE)
    assert granted(bench.ask("cem", walltime_ms=walltime_ms)) == runs


def test_a_gap_is_as_long_as_what_a_cell_gets_that_asks_for_no_time(bench: Bench) -> None:
    bench.join("a", slots(2))
    busy(bench, "ann", qos="batch")
    assert ask(bench, "bob", gpus=2, qos="batch") == []
    assert granted(ask(bench, "cem", walltime_ms=20 * MINUTE)) == ["cem:1"]
    bench.start("cem:1")
    bench.later(20 * MINUTE)
    bench.free("cem:1")
    assert ask(bench, "dan", qos="batch") == []
    assert granted(ask(bench, "eve", qos="batch", walltime_ms=60 * MINUTE)) == ["eve:1"]


def test_a_short_cell_passes_those_behind_the_head_as_well(bench: Bench) -> None:
    bench.join("a", slots(2))
    busy(bench, "ann")
    assert ask(bench, "bob", gpus=2) == []
    assert ask(bench, "cem") == []
    assert granted(ask(bench, "dan", walltime_ms=5 * MINUTE)) == ["dan:1"]
    assert bench.free("dan:1") == []
    assert granted(bench.free("ann:1")) == ["bob:1"]


def test_a_session_stays_hot_beside_the_head_while_another_cell_of_it_would_be_over_in_time(bench: Bench) -> None:
    bench.join("a", slots(2))
    busy(bench, "ann")
    assert ask(bench, "bob", gpus=2) == []
    busy(bench, "cem", walltime_ms=5 * MINUTE)
    assert bench.end("cem:1") == []
    assert bench.later(3 * MINUTE) == []  # bob has asked for his share
    at_ms = bench.scheduler.deadline()
    assert at_ms == 10_000 + 25 * MINUTE
    assert bench.later(at_ms - 1 - bench.now_ms) == []
    assert evicted(bench.later(1)) == ["cem:1"]


def test_a_hot_session_that_could_delay_the_head_leaves_at_once_and_one_that_could_not_stays(bench: Bench) -> None:
    bench.join("a", slots(4))
    busy(bench, "ann", gpus=2)
    bench.run("dan")
    bench.run("eve")
    assert evicted(ask(bench, "bob", gpus=3)) == ["dan:1"]
    assert bench.free("dan:1") == []
    assert granted(bench.free("ann:1")) == ["bob:1"]


def test_who_is_hot_stays_when_nobody_waits_any_more(bench: Bench) -> None:
    bench.join("a", slots(2))
    busy(bench, "ann")
    assert ask(bench, "bob", gpus=2) == []
    busy(bench, "dan", walltime_ms=5 * MINUTE)
    bench.withdraw("bob/1")
    assert bench.end("dan:1") == []
    assert bench.later(29 * MINUTE) == []


def test_others_pass_the_head_on_nodes_where_it_could_not_start_first(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.join("b", slots(2))
    busy(bench, "ann", gpus=2)
    busy(bench, "bob", walltime_ms=20 * MINUTE)
    busy(bench, "dan")
    bench.free("ann:1")
    busy(bench, "eve")
    assert bench.lose("c") == []
    assert ask(bench, "cem", gpus=2) == []
    assert granted(ask(bench, "fay")) == ["fay:1"]
    assert bench.referee.pool.leases["fay:1"].agent == "a"
    bench.free("bob:1")
    assert granted(bench.free("dan:1")) == ["cem:1"]


def test_what_the_head_does_not_need_of_its_node_is_for_everybody(bench: Bench) -> None:
    bench.join("a", slots(4))
    busy(bench, "ann", gpus=2, walltime_ms=10 * MINUTE)
    assert ask(bench, "cem", gpus=3) == []
    assert granted(ask(bench, "dan")) == ["dan:1"]
    bench.start("dan:1")
    assert ask(bench, "eve") == []
    said = bench.end("dan:1")
    assert granted(said) == ["eve:1"]
    assert evicted(said) == ["dan:1"]  # now cem needs that one
    assert bench.free("dan:1") == []
    assert granted(bench.free("ann:1")) == ["cem:1"]


def test_only_the_head_holds_a_node(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.join("b", slots(3))
    busy(bench, "ann", gpus=2)
    busy(bench, "bob", gpus=2)
    assert ask(bench, "cem", gpus=2) == []
    assert ask(bench, "dan", gpus=2) == []
    assert granted(ask(bench, "eve")) == ["eve:1"]
    assert granted(bench.free("ann:1")) == ["cem:1"]


def test_where_the_head_could_not_run_the_next_that_waits_holds_a_node(bench: Bench) -> None:
    bench.join("a", slots(4))
    bench.join("b", slots(2))
    busy(bench, "ann", gpus=4)
    busy(bench, "bob")
    assert ask(bench, "cem", gpus=4) == []
    assert ask(bench, "dan", gpus=2) == []
    assert ask(bench, "fay") == []  # dan would start later
    assert granted(ask(bench, "eve", walltime_ms=MINUTE)) == ["eve:1"]
    bench.free("eve:1")
    assert granted(bench.free("bob:1")) == ["dan:1"]


def test_room_that_is_made_for_one_is_taken_by_nobody(bench: Bench) -> None:
    bench.join("a", slots(3))
    bench.run("ann")
    busy(bench, "bob")
    assert evicted(ask(bench, "cem", gpus=2)) == ["ann:1"]
    assert ask(bench, "fay", gpus=3) == []
    assert ask(bench, "dan", walltime_ms=MINUTE) == []
    assert granted(bench.free("ann:1")) == ["cem:1"]


def test_the_head_holds_another_node_when_its_own_is_lost(bench: Bench) -> None:
    bench.join("a", slots(2))
    bench.join("b", slots(2))
    busy(bench, "ann", gpus=2, walltime_ms=10 * MINUTE)
    busy(bench, "bob", walltime_ms=20 * MINUTE)
    assert ask(bench, "cem", gpus=2) == []
    busy(bench, "dan", walltime_ms=25 * MINUTE)
    bench.free("dan:1")
    bench.lose("a")
    assert ask(bench, "eve", walltime_ms=25 * MINUTE) == []
    assert granted(bench.free("bob:1")) == ["cem:1"]


def test_a_short_cell_runs_beside_the_head_though_room_is_made_for_as_many_as_may_be(bench: Bench) -> None:
    bench.join("a", tuple(ev.Slot(SlotId(f"gpu-{number}"), "gpu", "big", 80 * 10**9) for number in range(2)))
    bench.join("b", slots(SETTINGS.look_ahead))
    busy(bench, "ann", gpu_type="big")
    for number in range(SETTINGS.look_ahead):
        busy(bench, f"hot{number}", gpu_type="model")
        bench.end(f"hot{number}:1")
    assert ask(bench, "bob", gpus=2, gpu_type="big") == []
    gone = [lease for number in range(SETTINGS.look_ahead) for lease in evicted(ask(bench, f"s{number}"))]
    assert len(gone) == SETTINGS.look_ahead
    assert ask(bench, "cem") == []
    assert granted(ask(bench, "dan", walltime_ms=10 * MINUTE)) == ["dan:1"]
