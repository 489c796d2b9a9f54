"""Cells that ask for more than a number of slots: GPU types and memory, slices, CPUs, host memory. Step by step."""

import pytest

from gpu_worker.scheduler import events as ev
from tests.scheduler.bench import MINUTE, Bench, evicted, granted, models, project, reclaimed, refused, slots
from tests.scheduler.quota_bench import Quotas

GB = 10**9
A100, A10 = "NVIDIA A100-SXM4-80GB", "NVIDIA A10"
SLICE = "NVIDIA A100-SXM4-80GB MIG 1g.10gb"


def slot_of(actions: list) -> str:
    return str(actions[0].slots[0])


def test_a_type_is_part_of_a_name_and_who_asks_for_none_gets_the_least(bench: Bench) -> None:
    bench.join("a", models(1, A100, 80))
    bench.join("b", models(2, A10, 24))
    assert slot_of(bench.ask("ann")) == "A10-0"
    assert slot_of(bench.ask("bob", gpu_type="a100")) == "A100-SXM4-80GB-0"
    assert slot_of(bench.ask("cem", gpu_type="nvidia a10")) == "A10-1"


def test_every_gpu_has_the_memory_that_was_asked_for(bench: Bench) -> None:
    bench.join("a", models(2, A10, 24) + models(2, A100, 80))
    assert slot_of(bench.ask("ann", gpu_memory_bytes=24 * GB)) == "A10-0"
    assert slot_of(bench.ask("bob", gpu_memory_bytes=25 * GB)) == "A100-SXM4-80GB-0"
    assert bench.ask("cem", gpus=2, gpu_memory_bytes=25 * GB) == []
    assert bench.why("cem/1").reason == "no node has 2 GPUs free at once"


def test_nobody_is_passed_for_a_type_that_they_wait_for_but_by_those_who_use_another(bench: Bench) -> None:
    bench.join("a", models(2, A100, 80) + models(1, A10, 24))
    bench.ask("ann", gpu_type="A100")
    bench.start("ann:1")
    assert bench.ask("bob", gpus=2, gpu_type="A100") == []
    assert bench.ask("cem", gpu_type="A100") == []
    assert slot_of(bench.ask("dan", gpu_type="A10")) == "A10-0"
    bench.start("dan:1")
    assert bench.ask("eve", gpu_memory_bytes=40 * GB) == []
    assert granted(bench.free("ann:1")) == ["bob:1"]
    bench.start("bob:1")
    assert granted(bench.free("bob:1")) == ["cem:1", "eve:1"]


def test_who_would_take_anything_does_not_pass_who_needs_a_type_of_the_same_node(bench: Bench) -> None:
    bench.join("a", models(1, A100, 80) + models(1, A10, 24))
    bench.ask("ann", gpus=2)
    bench.start("ann:1")
    bench.ask("bob", gpu_type="A100", walltime_ms=10 * MINUTE)
    bench.ask("cem", gpus=2)
    bench.ask("dan")
    assert granted(bench.free("ann:1")) == ["bob:1"]
    assert bench.why("dan/1").position == 2


def test_a_hot_session_goes_only_where_its_slot_serves_who_waits(bench: Bench) -> None:
    bench.join("a", models(1, A100, 80) + models(1, A10, 24))
    bench.run("ann", gpu_type="A10")
    bench.run("bob", gpu_type="A100")
    assert evicted(bench.ask("cem", gpu_type="A100")) == ["bob:1"]
    assert granted(bench.free("bob:1")) == ["cem:1"]
    bench.start("cem:1")
    assert bench.ask("dan", gpu_type="A100") == []
    assert bench.why("dan/1").reason == "the only GPU of this kind is busy"


def test_two_who_wait_for_a_type_have_two_places_made_and_not_the_same_one(bench: Bench) -> None:
    bench.join("a", models(2, A100, 80) + models(1, A10, 24))
    for name in ("ann", "bob"):
        bench.run(name, gpu_type="A100")
    bench.run("cem", gpu_type="A10")
    assert evicted(bench.ask("dan", gpu_type="A100")) == ["ann:1"]
    assert evicted(bench.ask("eve", gpu_memory_bytes=40 * GB)) == ["bob:1"]
    assert bench.ask("fay", gpu_type="A100", gpus=2) == []
    assert granted(bench.free("ann:1")) == ["dan:1"]
    assert granted(bench.free("bob:1")) == ["eve:1"]


def test_a_slice_serves_only_who_names_it_and_a_gpu_everybody_else(bench: Bench) -> None:
    bench.join("a", models(2, SLICE, 10, "mig", 125) + models(1, A100, 80))
    assert slot_of(bench.ask("ann", gpu_type="mig")) == "1g.10gb-0"
    assert slot_of(bench.ask("bob", gpu_type="MIG 1g.10gb")) == "1g.10gb-1"
    assert slot_of(bench.ask("cem", gpu_type="A100")) == "A100-SXM4-80GB-0"
    for name in ("ann", "bob", "cem"):
        bench.start(f"{name}:1")
    assert bench.ask("dan") == []
    assert bench.ask("eve", gpu_type="1g") == []
    assert granted(bench.free("bob:1")) == ["eve:1"]
    assert granted(bench.free("cem:1")) == ["dan:1"]


def test_in_a_pool_of_slices_they_stand_in_for_gpus_until_there_is_one(bench: Bench) -> None:
    bench.join("a", models(1, SLICE, 10, "mig", 125))
    assert granted(bench.ask("ann")) == ["ann:1"]
    bench.start("ann:1")
    assert bench.ask("bob") == []
    bench.join("b", slots(1))
    bench.start("bob:1")
    assert bench.ask("cem") == []
    assert bench.free("ann:1") == []
    assert granted(bench.ask("dan", gpu_type="mig")) == ["dan:1"]
    assert granted(bench.free("bob:1")) == ["cem:1"]


def test_a_slice_costs_its_part_of_a_guarantee_and_of_a_limit() -> None:
    pool = Quotas(project("lab", guaranteed_milli=250, limit_milli=375))
    pool.join("a", models(4, SLICE, 10, "mig", 125) + models(1, A100, 80))
    for name in ("ann", "bob", "cem"):
        assert granted(pool.ask(name, project="lab", gpu_type="mig")) == [f"{name}:1"]
        pool.start(f"{name}:1")
    assert pool.ask("dan", project="lab", gpu_type="mig") == []
    assert pool.why("dan/1").reason == "project 'lab' uses 0.375 of 0.375 GPUs that it may use"
    assert "0.375 GPUs" in refused(pool.ask("eve", project="lab"))["eve/1"]
    pool.replay()


def test_a_slice_is_taken_back_from_who_borrows_it_and_from_nobody_else() -> None:
    pool = Quotas(project("lab", guaranteed_milli=125), project("school", guaranteed_milli=125))
    pool.join("a", models(3, SLICE, 10, "mig", 125))
    for name, paying in (("ann", "school"), ("bob", "school"), ("cem", "guests")):
        pool.ask(name, project=paying, gpu_type="mig")
        pool.start(f"{name}:1")
        pool.later(1)
    pool.later(5 * MINUTE)
    pool.ask("dan", project="lab", gpu_type="mig")
    assert pool.referee.pool.leases["cem:1"].state == "reclaiming"
    pool.free("cem:1")
    pool.start("dan:1")
    pool.later(5 * MINUTE)
    assert reclaimed(pool.ask("eve", project="school", gpu_type="mig")) == {}
    pool.replay()


def test_nothing_is_taken_from_who_is_within_a_guarantee_of_slices() -> None:
    pool = Quotas(project("lab", guaranteed_milli=125), project("school", guaranteed_milli=250))
    pool.join("a", models(2, SLICE, 10, "mig", 125))
    for name in ("ann", "bob"):
        pool.ask(name, project="school", gpu_type="mig")
        pool.start(f"{name}:1")
    pool.later(5 * MINUTE)
    assert reclaimed(pool.ask("dan", project="lab", gpu_type="mig")) == {}
    pool.replay()


def test_cpus_and_memory_have_one_tenant_and_are_waited_for(bench: Bench) -> None:
    bench.join("a", slots(3), cpus=8, memory_bytes=64 * GB)
    bench.ask("ann", cpus=6)
    bench.ask("bob", memory_bytes=60 * GB)
    bench.start("ann:1")
    bench.start("bob:1")
    assert bench.ask("cem", cpus=4) == []
    assert bench.why("cem/1").reason == "the CPUs or the memory that it asks for are in use"
    assert granted(bench.ask("dan")) == ["dan:1"]  # when ann is gone there is a GPU for cem
    assert bench.ask("eve") == []
    assert granted(bench.free("bob:1")) == ["eve:1"]
    assert granted(bench.free("ann:1")) == ["cem:1"]


def test_a_hot_session_gives_up_the_cpus_that_it_holds(bench: Bench) -> None:
    bench.join("a", slots(2), cpus=8)
    bench.run("ann", cpus=6)
    assert evicted(bench.ask("bob", cpus=4)) == ["ann:1"]
    assert granted(bench.free("ann:1")) == ["bob:1"]


def test_a_hot_session_on_a_cpu_slot_gives_up_the_cpus_that_a_gpu_cell_wants(bench: Bench) -> None:
    bench.join("a", slots(1, "cpu") + slots(1), cpus=8)
    bench.run("ann", gpus=0, cpus=8)
    assert evicted(bench.ask("bob", cpus=4)) == ["ann:1"]
    assert bench.ask("cem", gpus=0, cpus=2) == []
    assert granted(bench.free("ann:1")) == ["bob:1", "cem:1"]


def test_cells_on_cpu_slots_do_not_pass_a_gpu_cell_that_waits_for_cpus(bench: Bench) -> None:
    bench.join("a", slots(2, "cpu") + slots(2), cpus=8)
    bench.ask("ann", cpus=6)
    bench.start("ann:1")
    assert bench.ask("bob", cpus=4) == []
    assert granted(bench.ask("dan", gpus=0)) == ["dan:1"]
    assert bench.ask("cem", gpus=0, cpus=2) == []
    assert granted(bench.free("ann:1")) == ["bob:1", "cem:1"]


def test_who_waits_for_cpus_closes_the_node_to_others_who_want_some_whatever_gpus_they_use(bench: Bench) -> None:
    bench.join("a", models(2, A100, 80) + models(2, A10, 24), cpus=8)
    bench.ask("ann", gpu_type="A100", cpus=6)
    bench.start("ann:1")
    assert bench.ask("bob", gpu_type="A100", cpus=8) == []
    assert granted(bench.ask("dan", gpu_type="A10")) == ["dan:1"]
    assert bench.ask("cem", gpu_type="A10", cpus=2) == []
    assert granted(bench.free("ann:1")) == ["bob:1"]


def test_one_that_stands_for_another_closes_no_less(bench: Bench) -> None:
    bench.join("a", models(3, A100, 80) + models(1, A10, 24), cpus=8)
    bench.ask("ann", gpus=3, gpu_type="A100", cpus=4)
    bench.start("ann:1")
    bench.ask("bob", gpu_type="A100", cpus=8)
    bench.ask("cem", gpu_type="A100")
    assert bench.ask("dan", gpu_type="A10", cpus=2) == []
    assert granted(bench.free("ann:1")) == ["bob:1", "cem:1"]


def test_what_a_lease_holds_is_known_again_after_a_restart(bench: Bench) -> None:
    held = ev.ReportedLease("ann:1", "ann", "ann", "p", "interactive", ("gpu-0",), "c1", 30 * MINUTE, 0, 6, 10 * GB)  # type: ignore[arg-type]
    bench.join("a", slots(2), held, cpus=8, memory_bytes=64 * GB)
    assert bench.ask("bob", cpus=4) == []
    assert granted(bench.free("ann:1")) == ["bob:1"]


def test_a_guarantee_takes_back_the_cpus_beside_the_gpu() -> None:
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(3), cpus=8)
    pool.ask("eve", project="guests", cpus=6)
    pool.start("eve:1")
    pool.ask("tom", project="guests", cpus=2)
    pool.start("tom:1")
    pool.later(5 * MINUTE)
    assert list(reclaimed(pool.ask("ann", project="lab", cpus=4))) == ["eve:1"]
    pool.replay()


def test_what_no_node_has_is_refused_with_the_most_there_is(bench: Bench) -> None:
    bench.join("a", models(2, A100, 80), cpus=16, memory_bytes=100 * GB)
    bench.join("b", models(1, A10, 24), cpus=64, memory_bytes=50 * GB)
    no_type = refused(bench.ask("ann", gpu_type="H100"))["ann/1"]
    assert no_type == (
        "no GPU of this pool is of type 'H100'. Choose one with words of its name, as in --gpu-type \"A100\": "
        'NVIDIA A10, NVIDIA A100-SXM4-80GB. A slice is given to who names it, as in --gpu-type "MIG 1g.10gb".'
    )
    assert refused(bench.ask("ann", n=2, gpu_memory_bytes=100 * GB))["ann/2"] == (
        "--gpu-memory asks for 100 GB, and the most that one GPU of this pool has is 80 GB. Ask for less."
    )
    assert refused(bench.ask("ann", n=3, gpu_type="A10", gpus=2))["ann/3"] == (
        "2 GPUs of type 'A10' on one node were asked for, and the largest node of this pool has 1. Ask for 1 or fewer "
        "with --gpus."
    )
    assert refused(bench.ask("ann", n=4, cpus=65))["ann/4"] == (
        "--cpus asks for 65 CPUs, and the most that one node of this pool has is 64 CPUs. Ask for less."
    )
    assert refused(bench.ask("ann", n=5, memory_bytes=200 * GB))["ann/5"] == (
        "--memory asks for 200 GB, and the most that one node of this pool has is 100 GB. Ask for less."
    )
    assert refused(bench.ask("ann", n=6, gpu_type="A100", cpus=64))["ann/6"] == (
        "no node of this pool has all that was asked for, though each of it is there. Ask for less of one."
    )


def test_a_pool_without_gpus_says_so_to_who_asks_for_one(bench: Bench) -> None:
    bench.join("a", slots(2, "cpu"), cpus=4)
    assert refused(bench.ask("ann", gpu_type="A100"))["ann/1"] == (
        "this pool offers CPU slots for such a cell, and no GPU. Leave --gpu-type and --gpu-memory out."
    )
    assert granted(bench.ask("bob", cpus=4)) == ["bob:1"]


def test_what_waited_without_a_node_is_refused_when_one_comes_that_is_too_small(bench: Bench) -> None:
    bench.ask("ann", cpus=9)
    bench.ask("bob", cpus=8)
    actions = bench.join("a", slots(1), cpus=8)
    assert list(refused(actions)) == ["ann/1"]
    assert granted(actions) == ["bob:1"]


def test_who_waits_for_cpus_keeps_nobody_from_a_node_without_enough_of_them(bench: Bench) -> None:
    bench.join("a", slots(2), cpus=8)
    bench.join("b", slots(1), cpus=2)
    bench.ask("ann", cpus=8)
    bench.start("ann:1")
    assert bench.ask("bob", cpus=4) == []
    assert granted(bench.ask("cem")) == ["cem:1"]


def test_who_waits_for_more_memory_holds_nobody_back_from_a_gpu_with_less(bench: Bench) -> None:
    bench.join("a", models(1, A100, 80))
    bench.join("b", models(1, A10, 24))
    bench.ask("ann", gpu_type="A100")
    bench.start("ann:1")
    assert bench.ask("bob", gpu_memory_bytes=40 * GB) == []
    assert granted(bench.ask("cem")) == ["cem:1"]
    assert granted(bench.free("ann:1")) == ["bob:1"]


def test_a_node_with_too_few_cpus_is_none_that_a_cell_could_wait_for(bench: Bench) -> None:
    bench.join("a", models(1, A100, 80), cpus=4)
    bench.join("b", models(1, A100, 80), cpus=8)
    bench.lose("b")
    assert bench.ask("ann", cpus=8) == []
    assert bench.why("ann/1").reason == "no connected node has all that it asks for"
    assert bench.why("ann/1").wait_ms is None


@pytest.mark.parametrize(("cpus", "says"), [(2, " (2 slices are free: --gpu-type MIG)"), (4, "")])
def test_who_waits_reads_of_slices_only_where_their_node_has_what_else_is_asked_for(cpus: int, says: str) -> None:
    bench = Bench()
    bench.join("whole", slots(1), cpus=8)
    bench.join("parts", slots(2, "mig"), cpus=2)
    bench.ask("eve")
    bench.start("eve:1")
    bench.ask("ann", cpus=cpus)
    assert bench.why("ann/1").reason == f"the only GPU is busy{says}"
