"""One cell needs all that its project is guaranteed, and others of the project never stop asking for one GPU each."""

import pytest

from bulletin.ids import SessionId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.play import play as judged
from tests.scheduler.promises.played import GRACE_S, SOON_S, YOUNG_S, Day, at, many, node, opens, play
from tests.scheduler.promises.random_largest import largest_history

PATIENCE_S = 1800
#: How long the small ones run, the minute in which a cell may start, and how soon whoever is covered has theirs.
SMALL_S, START_S, RECLAIM_S = 300, 60, YOUNG_S + GRACE_S + SOON_S
QUOTA, LIMITED = "[projects.a]\nguaranteed=4\n", "[projects.a]\nguaranteed=4\nlimit=4\n"
INSIDE = '[projects.d]\nguaranteed=6\n[projects.a]\nparent="d"\nguaranteed=4\n'
BESIDE = '[projects.a]\nguaranteed=4\n[projects.i]\nparent="a"\n'


def _crowded(quota: str, others: int, *more: hi.At, until_s: float = 3600) -> Day:
    """Play a day on which eight users of a project use one GPU each, again and again, and one waits for four."""
    return play(
        quota, node("n", 4 + others), many(others, 1, "g", "g", 90_000, qos="batch"),
        many(8, 600, "s", "a", *[SMALL_S] * 30, think=1), opens(900, "large", "a", 600, gpus=4, time=1200),
        *more, last=until_s, delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip


@pytest.mark.parametrize(("quota", "others"), [(QUOTA, 0), (QUOTA, 4), (LIMITED, 4), (INSIDE, 4), (BESIDE, 4)])
def test_what_it_is_guaranteed_is_kept_for_it(quota: str, others: int) -> None:
    """What its project's `limit` and guarantee need for it are kept for it, also from who would be covered (6)."""
    day = _crowded(quota, others)
    assert day.wait("large") <= PATIENCE_S + SMALL_S + START_S + RECLAIM_S
    assert not judged(day.history)[0].violations


@pytest.mark.parametrize("quota", [QUOTA, LIMITED])
def test_so_it_is_where_small_ones_come_and_go_before_their_gpu_is_free(quota: str) -> None:
    """Who waits for one for whom a cell goes waits for the next one, too, but not for ever (1, 6)."""
    come_and_go = [opens(600 + 20 * n, f"s{n}", "a", 60, patience_ms=25_000) for n in range(150)]
    day = play(
        quota.replace("4", "2"), node("n", 2), many(2, 1, "g", "g", 90_000, qos="batch"), come_and_go,
        opens(605, "large", "a", 60, gpus=2), last=4000, delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    assert day.wait("large") <= PATIENCE_S + 60 + START_S + RECLAIM_S


@pytest.mark.parametrize("quota", [QUOTA, LIMITED])
def test_whoever_is_put_first_does_not_wait_for_those_behind(quota: str) -> None:
    """A request that an admin put first stands before all others of its project (18)."""
    day = _crowded(quota, 4, at(1000, hi.ByHand(SessionId("large"), "put-first")))
    assert day.wait("large") <= 100 + SMALL_S + START_S + RECLAIM_S


def test_who_is_boosted_does_not_wait_for_other_users() -> None:
    """Who is boosted stands before the other users of the project (18)."""
    day = _crowded(QUOTA, 4, at(1000, hi.ByHand(SessionId("large"), "boost")))
    assert day.wait("large") <= 100 + SMALL_S + START_S + RECLAIM_S


def test_what_idles_meanwhile_is_used_by_those_from_whom_it_is_kept() -> None:
    """They borrow then, as others do, on nodes that are of no use to who is late (5, 6)."""
    day = play(
        QUOTA + "[projects.o]\nguaranteed=4\n", node("n", 4), node("m", 2), many(4, 1, "o", "o", 80_000),
        many(2, 600, "s", "a", *[SMALL_S] * 30, think=1), opens(900, "large", "a", 600, gpus=4, time=1200), last=6000,
    )  # fmt: skip
    assert day.running(PATIENCE_S + 2000, "s") == 2


@pytest.mark.parametrize(("way", "kept_s"), [(None, 900 + PATIENCE_S), ("put-first", 1050), ("boost", 1050)])
def test_those_who_wait_meanwhile_read_for_whom_it_is_kept(way: str | None, kept_s: float) -> None:
    """The reason is true (17)."""
    by_hand = [] if way is None else [at(1000, hi.ByHand(SessionId("large"), way))]
    day = play(
        QUOTA, node("n", 8), many(4, 1, "g", "g", 90_000, qos="batch"),
        many(8, 600, "s", "a", *[SMALL_S] * 30, think=1), opens(900, "large", "a", 600, gpus=4, time=1200), *by_hand,
        last=kept_s + 10, delays=hi.Delays(ask_again_ms=500), asks=lambda second: kept_s - 1 <= second <= kept_s + 2,
    )  # fmt: skip
    keeps = "guaranteed GPUs, and keeps what is left for a cell of it that asks for 4 GPUs"
    told = {said.reason.split("; ")[0] for name in day.told if name[0] == "s" for _, said in day.told[name]}
    assert {f"project 'a' uses {used} of 4 {keeps}" for used in (2, 3)} <= told
    assert not any(keeps in said.reason for _, said in day.told["large"])


@pytest.mark.parametrize("part", range(2))
def test_so_it_is_on_any_such_day(part: int) -> None:
    for seed in range(part * 25, part * 25 + 25):
        judge, _ = judged(largest_history(seed))
        assert not judge.violations, f"seed {seed}: {judge.violations[0]}"
