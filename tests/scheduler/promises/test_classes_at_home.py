"""Classes that never borrow in a project that has a node pool: a higher one does not wait, and each user has a part."""

import pytest

from tests.scheduler.promises.played import GRACE_S, SOON_S, Day, many, names, node, opens, play

H100, L4 = "NVIDIA H100 80GB HBM3", "NVIDIA L4"
CLASSES = (
    '[qos.exam]\nwalltime="2 h"\nmust_be_in_quota=true\npriority=100\n'
    '[qos.reserved]\nqueued_per_user=9\nrunning_per_user=9\n[node_pools.h100]\ngpu="H100"\n'
)
LAB = f"{CLASSES}[projects.lab]\nguaranteed=4\nnode_pools={{h100=2}}\n"
#: A request that has waited for two minutes takes for its share.
SHARE_S = 120


def most_on(day: Day, name: str) -> int:
    """Find the most cells that ran on a node at once."""
    spans = [span for some in day.spans.values() for span in some if span.node == name]
    return max(
        sum(one.begin <= span.begin and (one.end is None or span.begin < one.end) for one in spans) for span in spans
    )


@pytest.mark.parametrize("gpu_type", ["", "H100", "L4"])
@pytest.mark.parametrize("slow", [2, 4, 6])
def test_a_higher_class_takes_back_what_a_lower_one_has_that_never_borrows_either(gpu_type: str, slow: int) -> None:
    """Where a lower class never borrows either, its cells are taken back (3, 12)."""
    day = play(
        LAB, node("fast", 2, H100), node("slow", slow, L4), many(4, 1, "e", "lab", 7000, qos="exam"),
        opens(600, "r", "lab", 300, qos="reserved", gpu_type=gpu_type), last=1500,
    )  # fmt: skip
    assert day.wait("r") <= GRACE_S + SOON_S
    assert len(day.losers()) == 1
    assert day.most() == 4
    assert most_on(day, "slow") == 2, "what is guaranteed beside the node pool (3)"


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


@pytest.mark.parametrize("home", [0, 2])
def test_elsewhere_a_lower_class_makes_way_though_some_is_left_at_home(home: int) -> None:
    """It never has more elsewhere than is guaranteed beside the node pool (3), and waits for no lower class (12)."""
    day = play(
        LAB, node("fast", 2, H100), node("slow", 6, L4), many(2, 1, "e", "lab", 7000, qos="exam", gpu_type="L4"),
        many(home, 2, "guest", "guests", 7000, qos="batch", gpu_type="H100"),
        opens(600, "r", "lab", 300, qos="reserved", gpu_type="L4"), last=1500,
    )  # fmt: skip
    assert day.wait("r") <= GRACE_S + SOON_S
    assert day.losers() < {"e0", "e1"}
    assert most_on(day, "slow") == 2


@pytest.mark.parametrize("gpu_type", ["", "H100", "L4"])
def test_each_user_has_a_fair_part_of_such_a_class(gpu_type: str) -> None:
    """Also where what is full is the guarantee of a class that never borrows (13), and some of it is a node pool's."""
    day = play(
        LAB.replace("running_per_user=9\n", 'running_per_user=9\npreemption="requeue"\n'),
        node("fast", 2, H100), node("slow", 6, L4),
        many(4, 1, "first", "lab", 7000, qos="reserved", user="first"),
        many(2, 600, "later", "lab", 3000, qos="reserved", user="later", gpu_type=gpu_type), last=1500,
    )  # fmt: skip
    assert day.waits("later0", "later1") <= SHARE_S + 2 * (GRACE_S + SOON_S)
    assert len(day.losers()) == 2
    assert (day.most(), most_on(day, "slow")) == (4, 2)
