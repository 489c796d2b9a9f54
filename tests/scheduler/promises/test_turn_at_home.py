"""One cell needs all that its project is guaranteed of a node pool, and others of the project never stop asking."""

import pytest

from bulletin.ids import SessionId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, YOUNG_S, at, many, node, opens, play

H100, L4 = "NVIDIA H100 80GB HBM3", "NVIDIA L4"
PATIENCE_S = 1800
#: How long the small ones run, the minute in which a cell may start, and how soon whoever is covered has theirs.
SMALL_S, START_S, RECLAIM_S = 300, 60, YOUNG_S + GRACE_S + SOON_S
POOL = '[node_pools.h100]\ngpu="H100"\n'
HOME = POOL + "[projects.a]\nguaranteed=4\nnode_pools={h100=4}\n"
BESIDE = POOL + "[projects.a]\nguaranteed=6\nnode_pools={h100=4}\n"
INSIDE = (
    POOL + '[projects.d]\nguaranteed=8\nnode_pools={h100=4}\n[projects.a]\nparent="d"\nguaranteed=4\n'
    "node_pools={h100=4}\n"
)
OF_ALL = POOL + '[projects.d]\nguaranteed=4\nnode_pools={h100=4}\n[projects.a]\nparent="d"\n'
GUESTS = many(4, 1, "guest", "guests", 90_000, gpu_type="L4", qos="batch")
#: By which an admin has it be first; None waits for its patience.
WAYS = [(None, PATIENCE_S), ("put-first", 100), ("boost", 100)]


@pytest.mark.parametrize(
    ("quota", "way", "after_s"),
    [*((quota, *way) for quota in (HOME, BESIDE, INSIDE) for way in WAYS), (OF_ALL, *WAYS[0])],
)
@pytest.mark.parametrize("gpu_type", ["", "H100"])
def test_what_it_is_guaranteed_there_is_kept_for_it(quota: str, way: str | None, after_s: float, gpu_type: str) -> None:
    """It is late (6), or an admin put it first, or boosted its user (18): what runs there is all that it waits for."""
    by_hand = [] if way is None else [at(1000, hi.ByHand(SessionId("large"), way))]
    day = play(
        quota, node("fast", 4, H100), node("slow", 4, L4), GUESTS,
        many(8, 600, "small", "a", *[SMALL_S] * 30, think=1, gpu_type=gpu_type),
        opens(900, "large", "a", 600, gpus=4, time=1200, gpu_type="H100"), *by_hand, last=5400,
        delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    assert day.wait("large") <= after_s + SMALL_S + START_S + RECLAIM_S
    assert day.nodes("large") == {"fast"}


def test_the_others_go_on_there_before_and_after() -> None:
    """Nothing idles that somebody may use (5)."""
    day = play(
        HOME, node("fast", 4, H100), many(8, 600, "small", "a", *[SMALL_S] * 30, think=1),
        opens(900, "large", "a", 600, gpus=4, time=1200), last=7200, delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    (start_s,) = day.grants("large")
    assert all(day.running(second) == 4 for second in range(610, int(start_s) - SMALL_S - 10, 50))
    assert day.running(start_s + 700, "small") == 4


def test_of_a_type_that_is_elsewhere_nothing_is_kept_at_home() -> None:
    """Whoever is late and cannot run at home is in nobody's way there."""
    day = play(
        BESIDE, node("fast", 4, H100), node("slow", 4, L4), GUESTS,
        many(5, 600, "small", "a", *[SMALL_S] * 30, think=1, gpu_type="H100"),
        opens(900, "large", "a", 600, gpus=4, time=1200, gpu_type="L4"),
        many(4, 2900, "guest-there", "guests", 3000, gpu_type="H100", qos="batch"), last=5400,
        delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    assert day.gpu_s("small", 2900, 5300) >= 0.95 * 4 * 2400
