"""Two classes that never borrow in one project that has a node pool: the higher one does not wait for the lower one."""

import pytest

from tests.scheduler.promises.played import GRACE_S, SOON_S, many, names, node, opens, play

H100, L4 = "NVIDIA H100 80GB HBM3", "NVIDIA L4"
CLASSES = (
    '[qos.exam]\nwalltime="2 h"\nmust_be_in_quota=true\npriority=100\n'
    '[qos.reserved]\nqueued_per_user=9\nrunning_per_user=9\n[node_pools.h100]\ngpu="H100"\n'
)
LAB = f"{CLASSES}[projects.lab]\nguaranteed=4\nnode_pools={{h100=2}}\n"


@pytest.mark.parametrize("gpu_type", ["", "H100", "L4"])
@pytest.mark.parametrize("slow", [2, 4])
def test_a_higher_class_takes_back_what_a_lower_one_has_that_never_borrows_either(gpu_type: str, slow: int) -> None:
    """Where a lower class never borrows either, its cells are taken back (3, 12)."""
    day = play(
        LAB, node("fast", 2, H100), node("slow", slow, L4), many(4, 1, "e", "lab", 7000, qos="exam"),
        opens(600, "r", "lab", 300, qos="reserved", gpu_type=gpu_type), last=1500,
    )  # fmt: skip
    assert day.wait("r") <= GRACE_S + SOON_S
    assert len(day.losers()) == 1
    assert day.most() == 4


def test_a_higher_class_has_all_of_it_where_it_asks_for_all() -> None:
    """It has its guarantee, and never more (3)."""
    day = play(
        LAB, node("fast", 2, H100), node("slow", 4, L4), many(4, 1, "e", "lab", 7000, qos="exam"),
        many(4, 600, "r", "lab", 300, qos="reserved"), last=1500,
    )  # fmt: skip
    assert day.waits(*names("r", 4)) <= GRACE_S + SOON_S
    assert day.most() == 4


def test_in_two_labs_each_ones_own_cell_goes() -> None:
    """Nothing that a guarantee covers is taken back but by a higher class of the same project (2)."""
    labs = "".join(f"[projects.{name}]\nguaranteed=3\nnode_pools={{h100=2}}\n" for name in "ab")
    day = play(
        CLASSES + labs, node("fast", 4, H100), node("slow", 4, L4),
        many(3, 1, "a", "a", 7000, qos="exam"), many(3, 2, "b", "b", 7000, qos="exam"),
        opens(600, "x", "a", 300, qos="reserved"), opens(601, "y", "b", 300, qos="reserved"), last=1500,
    )  # fmt: skip
    assert day.waits("x", "y") <= GRACE_S + SOON_S
    assert sorted(name[0] for name in day.losers()) == ["a", "b"]
