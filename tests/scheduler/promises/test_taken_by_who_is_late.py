"""A lower class has the GPU, and two higher ones wait for it: one that is late, and one that never borrows."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, Day, at, node, opens, play

PATIENCE_S, FREED_S = 1800, 5000
#: The lower class is late as soon as the higher one, and is not young when it begins.
QUOTAS = """
[qos.batch]
walltime = "30 min"
priority = 100
patience = "30 min"
min_runtime = "0 s"
[qos.firm]
walltime = "30 min"
priority = 200
must_be_in_quota = true
[qos.stays]
walltime = "2 h"
priority = 200
preemption = "never"
[projects.lab]
guaranteed = 1
"""
POOL = '[node_pools.a100]\ngpu = "A100"\n[projects.lab.node_pools]\na100 = 1\n'
WAITING = (
    opens(10, "batch", "lab", 1200, qos="batch", closes_ms=0),
    opens(20, "typed", "lab", 600, closes_ms=0),
    opens(4900, "firm", "lab", 600, qos="firm", closes_ms=0),
)
AGENT = AgentId("n")
WAYS = {
    "over": [node("n", 1), opens(1, "stays", "lab", FREED_S - 1, qos="stays", closes_ms=0)],
    "drained": [node("n", 1), at(5, hi.Drains(AGENT, True)), at(FREED_S, hi.Drains(AGENT, False))],
    "away": [node("n", 1), at(5, hi.GoesSilent(AGENT)), at(FREED_S, hi.Returns(AGENT))],
}


def _follows(day: Day) -> None:
    """The late one has the GPU within the grace of the lower class, and then the one that never borrows."""
    assert day.grants("typed")[0] <= FREED_S + GRACE_S + 2 * SOON_S
    assert day.grants("firm")[0] <= day.grants("typed")[0] + 600 + 2 * SOON_S
    assert not day.taken("typed")


@pytest.mark.parametrize("way", WAYS)
def test_who_is_late_takes_the_cell_that_one_who_never_borrows_leaves_to_it(way: str) -> None:
    """Both may take it, and who is late is not passed (12): so it goes for that one, and not for nobody."""
    _follows(play(QUOTAS, WAYS[way], *WAITING, last=9000))


def test_so_it_is_when_they_were_held_until_then() -> None:
    held = [at(30, hi.ByHand(name, "hold")) for name in ("typed", "batch")]  # type: ignore[arg-type]
    released = [at(FREED_S - 5, hi.ByHand(name, "release")) for name in ("typed", "batch")]  # type: ignore[arg-type]
    _follows(play(QUOTAS, WAYS["over"], *WAITING, held, released, last=9000))


def test_so_it_is_at_home_in_a_node_pool() -> None:
    _follows(play(QUOTAS + POOL, WAYS["over"], *WAITING, last=9000))


def test_where_the_late_one_is_of_the_lower_class_itself_no_cell_goes() -> None:
    """It would stand before, and the cell would go for nothing."""
    late = opens(20, "typed", "lab", 600, qos="batch", closes_ms=0)
    day = play(QUOTAS, WAYS["over"], WAITING[0], late, WAITING[2], last=9000)
    assert not day.taken("batch")
    assert day.grants("typed")[0] <= FREED_S + 1200 + 2 * SOON_S
