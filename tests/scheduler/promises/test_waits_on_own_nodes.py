# settings and histories in one line each
"""On a node that a user has brought they wait for their own cells alone, at most one walltime (22)."""

import pytest

from bulletin.ids import AgentId, UserName
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import Day, at, many, node, opens, play

EVE = opens(1, "eve", "p", *[1790] * 9)  #: she has the only GPU of the pool, cell after cell
WALLTIME_S, SOON_S = 1800, 1


def own(gpus: int, second: float = 0) -> hi.At:
    """A node that Ann has brought."""
    return at(second, hi.Joins(AgentId("anns"), hi.gpus(gpus), owner=UserName("ann")))


def anns(second: float, session: str, *runs: float, **more: object) -> hi.At:
    return opens(second, session, "p", *runs, user="ann", **more)


def full(*happenings: hi.At) -> Day:
    return play("", node("pool", 1), EVE, *happenings, last=3 * WALLTIME_S)


def test_what_is_hot_there_leaves_for_the_next_one_at_once() -> None:
    day = full(own(1), anns(2, "ann1", 600), anns(800, "ann2", 100))
    assert day.wait("ann2") <= SOON_S
    assert day.nodes("ann2") == {"anns"}


@pytest.mark.parametrize("gpus", [1, 2])
def test_sessions_that_run_cell_after_cell_let_the_next_one_in_when_theirs_are_over(gpus: int) -> None:
    mine = [anns(2 + n, f"ann{n}", 300 * (n + 1), *[600] * 9, think=1) for n in range(gpus)]
    day = full(own(gpus), *mine, anns(30, "large", 100, gpus=gpus))
    assert day.wait("large") <= WALLTIME_S + SOON_S
    assert day.nodes("large") == {"anns"}
    assert not day.losers()


def test_whatever_they_ask_after_it_does_not_pass_it() -> None:
    small = many(9, 40, "small", "p", 500, apart=100, user="ann", closes_ms=0)
    day = full(own(2), anns(2, "first", 600), anns(30, "large", 100, gpus=2), *small)
    assert day.grants("large") == [602]


def test_no_class_takes_a_cell_back_there_and_the_pool_serves_whoever_waits() -> None:
    day = full(own(1), anns(2, "night", 9 * 3600, qos="batch"), anns(30, "ann", 100))
    assert day.taken("night") == []
    assert day.nodes("ann") == {"pool"}
    assert day.wait("ann") <= WALLTIME_S + SOON_S


def test_nobody_in_the_pool_waits_for_what_waits_there() -> None:
    mine = [anns(2, "first", 1700), *(anns(10 + n, f"more{n}", 100, gpus=2) for n in range(3))]
    day = full(own(2), *mine, opens(40, "bob", "p", 100))
    assert day.wait("bob") <= WALLTIME_S
    assert day.nodes("more") == {"anns"}
