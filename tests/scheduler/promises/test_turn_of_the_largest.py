"""One cell needs all that its project is guaranteed, and others of the project never stop asking for one GPU each."""

import pytest

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, YOUNG_S, many, node, opens, play

PATIENCE_S = 1800
#: How long the small ones run, and the minute in which a cell may start.
SMALL_S, START_S = 300, 60


@pytest.mark.parametrize("others", [0, 4])
def test_a_limit_of_the_guarantee_gives_it_a_turn(others: int) -> None:
    """What its own project's `limit` needs for it is kept for it, also from who is covered (6)."""
    day = play(
        "[projects.a]\nguaranteed=4\nlimit=4\n", node("n", 4 + others), many(others, 1, "g", "g", 90_000, qos="batch"),
        many(8, 600, "s", "a", *[SMALL_S] * 30, think=1), opens(900, "large", "a", 600, gpus=4, time=1200),
        last=2 * 3600, delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    assert day.wait("large") <= PATIENCE_S + SMALL_S + START_S + YOUNG_S + GRACE_S + SOON_S


def test_so_it_does_where_small_ones_come_and_go_before_their_gpu_is_free() -> None:
    """Who waits for one for whom a cell goes waits for the next one, too, but not for ever (1, 6)."""
    come_and_go = [opens(600 + 20 * n, f"s{n}", "a", 60, patience_ms=25_000) for n in range(150)]
    day = play(
        "[projects.a]\nguaranteed=2\nlimit=2\n", node("n", 2), many(2, 1, "g", "g", 90_000, qos="batch"), come_and_go,
        opens(605, "large", "a", 60, gpus=2), last=4000, delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    assert day.wait("large") <= PATIENCE_S + 60 + START_S + YOUNG_S + GRACE_S + SOON_S
