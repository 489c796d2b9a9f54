"""Owners of node pools and their guests: of any type, in departments, with slices beside whole GPUs, with lenders."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, at, many, names, node, opens, play

H100, L4 = "NVIDIA H100 80GB HBM3", "NVIDIA L4"
POOL = '[node_pools.h100]\ngpu="H100"\n'
HOUR_S = 3600


def owner(name: str, gpus: int, h100: int, more: str = "") -> str:
    return f"[projects.{name}]\nguaranteed={gpus}\nnode_pools={{h100={h100}}}\n{more}"


@pytest.mark.parametrize("apart", [0, 3])
def test_who_is_sent_from_the_owners_node_has_another_gpu_after_as_long_again(apart: float) -> None:
    """That may be a cell in quota: its project's guarantee is of any GPU, and (1) gives it another one (20)."""
    day = play(
        POOL + owner("vision", 4, 4) + "[projects.any]\nguaranteed=4\n",
        node("fast", 4, H100), many(4, 10, "any", "any", 9000, qos="batch"), node("slow", 4, L4, second=20),
        many(4, 30, "g", "guests", 9000, qos="batch"), many(4, 500, "v", "vision", 600, apart=apart, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert day.waits(*names("v", 4)) <= GRACE_S + SOON_S
    assert day.running(500 + 3 * apart + 2 * GRACE_S + SOON_S, "any") == 4


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("types", [("", ""), ("H100", ""), ("", "L4"), ("H100", "L4")])
def test_two_owners_do_not_take_each_others_home_in_turn(gpus: int, types: tuple[str, str]) -> None:
    """Two owners do not take each other's home in turn; who loses a place to its owner waits as long again (20)."""
    file = f'{POOL}[node_pools.l4]\ngpu="L4"\n{owner("a", 4, 4)}[projects.b]\nguaranteed=4\nnode_pools={{l4=4}}\n'
    day = play(
        file, node("fast", 4, H100), many(4 // gpus, 10, "b", "b", 9000, qos="batch", gpus=gpus),
        node("slow", 4, L4, second=20), many(4 // gpus, 30, "a", "a", 9000, qos="batch", gpus=gpus),
        many(4 // gpus, 600, "c", "a", 600, gpus=gpus, gpu_type=types[0]),
        many(4 // gpus, 605, "d", "b", 600, gpus=gpus, gpu_type=types[1]),
        last=HOUR_S,
    )  # fmt: skip
    assert day.waits(*names("c", 4 // gpus), *names("d", 4 // gpus)) <= 2 * GRACE_S + SOON_S


def test_a_cell_that_is_never_taken_back_starts_only_beside_what_owners_are_guaranteed() -> None:
    """It starts in a node pool only on what is left there beside all that others are guaranteed of it (20)."""
    day = play(
        POOL + owner("vision", 2, 2) + "[projects.any]\nguaranteed=6\n", node("fast", 2, H100), node("slow", 2, L4),
        many(4, 10, "r", "any", 9000, qos="reserved"), many(2, 500, "v", "vision", 600, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert day.nodes("r") == {"slow"}
    assert day.running(400, "r") == 2
    assert day.waits("v0", "v1") == 0


def test_a_lost_node_costs_those_alone_that_are_guaranteed_its_pool() -> None:
    """Nodes that are gone or drained cost those alone that are guaranteed their pool (20)."""
    day = play(
        POOL + owner("a", 4, 4) + owner("b", 4, 4) + "[projects.c]\nguaranteed=4\n",
        node("fast", 4, H100), node("fast2", 4, H100), node("slow", 4, L4), many(4, 10, "c", "c", 9000, qos="batch"),
        many(4, 20, "a", "a", 9000, qos="batch", gpu_type="H100"),
        many(4, 30, "b", "b", *[600] * 20, qos="batch", gpu_type="H100", think=1),
        at(600, hi.GoesSilent(AgentId("fast2"))),
        last=4200, delays=hi.Delays(ask_again_ms=1000),
    )  # fmt: skip
    assert day.running(700, "c") == 4
    assert day.gpu_s("a", 900, 3900) / 3000 == pytest.approx(2, abs=0.4)
    assert day.gpu_s("b", 900, 3900) / 3000 == pytest.approx(2, abs=0.4)


@pytest.mark.parametrize("lends", [0, 1, 3])
def test_what_an_owner_does_not_lend_is_free_at_home_at_once(lends: int) -> None:
    """What is kept of GPUs of a node pool is free there (10)."""
    day = play(
        POOL + owner("vision", 4, 4, f"lending_limit={lends}\n"), node("fast", 4, H100), node("slow", 4, L4),
        many(8, 10, "g", "guests", 9000, qos="batch"), many(4, 500, "v", "vision", 600, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert day.running(400, "g") == 4 + lends
    assert sum(day.wait(name) == 0 for name in names("v", 4)) == 4 - lends
    assert day.waits(*names("v", 4)) <= GRACE_S + SOON_S


def test_of_a_departments_node_pool_a_labs_own_part_comes_first() -> None:
    """Of what a department is guaranteed there, a lab's own part comes first (quotas, node pools)."""
    file = (
        POOL + owner("dep", 6, 4) + owner("l1", 2, 2, 'parent="dep"\n') + '[projects.l2]\nparent="dep"\nguaranteed=2\n'
    )
    day = play(
        file, node("fast", 4, H100), node("slow", 4, L4), many(4, 10, "y", "l2", 9000, gpu_type="H100", qos="batch"),
        many(4, 15, "g", "guests", 9000, qos="batch"), many(2, 500, "x", "l1", 600, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert day.waits("x0", "x1") <= GRACE_S + SOON_S


@pytest.mark.parametrize("words", ["MIG", "1g.10gb"])
def test_slices_are_for_who_names_them_and_count_as_their_part(words: str) -> None:
    """Who names no slice has a whole GPU (16); a slice counts for guarantees as its part of the GPU (quotas)."""
    day = play(
        "[projects.a]\nguaranteed=0.5\n[projects.b]\nguaranteed=1\n",
        at(0, hi.Joins(AgentId("m"), hi.slices(4))), node("n", 1),
        many(4, 10, "g", "guests", 9000, qos="batch", gpu_type="MIG"), opens(12, "whole", "guests", 9000, qos="batch"),
        many(4, 500, "a", "a", 600, gpu_type=words), opens(500, "b", "b", 600),
        last=HOUR_S,
    )  # fmt: skip
    assert day.waits(*names("a", 4), "b") <= GRACE_S + SOON_S
    assert day.nodes("b") == day.nodes("whole") == {"n"}


def test_who_used_the_dearer_gpu_stands_behind() -> None:
    """The one that used less before is next; prices count there (21)."""
    day = play(
        "[prices]\nH100 = 4.0\nL4 = 0.5\n", node("fast", 1, H100), node("slow", 1, L4),
        opens(10, "a", "a", 1700, gpu_type="H100", closes_ms=0), opens(10, "b", "b", 1700, gpu_type="L4", closes_ms=0),
        opens(2000, "x", "x", 500, gpu_type="H100"), opens(2000, "y", "y", 500, gpu_type="L4"),
        opens(2100, "again-a", "a", 100), opens(2101, "again-b", "b", 100),
        last=HOUR_S,
    )  # fmt: skip
    assert day.spans["again-b"][0].begin <= day.spans["again-a"][0].begin
