"""Who takes a cell back does not wait for those before them who wait for running cells elsewhere, or for longer."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, at, nodes
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, look, quotas, waits

#: It takes no share, so that it waits until cells are over.
SLOW = '[qos.slow]\nwalltime = "1 h"\npriority = 150\nshare_after = "1 d"\n'
FIRST = "[projects.first]\npriority = 5\n"


def test_who_waits_for_cells_of_one_node_keeps_nobody_from_a_share_on_another_one() -> None:
    seen = look(
        quotas(SLOW + FIRST),
        nodes(2, 2),
        ask(1, 1, "far", 1700, gpus=2, walltime_ms=1_700_000, qos="slow"),
        ask(2, 2, "a", BATCH_S, **LONG),
        ask(100, 1, "first", 600, gpus=2, qos="slow"),
        ask(110, 1, "b", 60, **LONG),
        last=HOUR_S,
    )
    assert waits(seen, "b") == [120 + 30]
    assert seen.granted("first0") == 1701


def test_who_would_stay_too_long_for_those_before_takes_the_place_of_a_cell_that_stays_longer() -> None:
    """Half an hour in the place of five hours of batch is no loss for who waits for the other GPU."""
    seen = look(
        quotas(FIRST),
        nodes(1, 2),
        ask(1, 1, "far", 1700, walltime_ms=1_700_000, closes_ms=0),
        ask(2, 1, "lab", BATCH_S, name="batch", **LONG),
        ask(100, 1, "first", 600),
        ask(130, 1, "lab", 60, name="types"),
        last=HOUR_S,
    )
    assert waits(seen, "types") == [30]
    assert seen.granted("first0") <= 1701


def test_who_borrows_fills_a_gap_from_which_the_larger_one_may_take_it_back_in_time() -> None:
    """A cell of a day that borrows is over before the other GPU comes free: nothing idles, and nobody waits longer."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\n[projects.course]\nguaranteed = 1\n"),
        at(0, hi.Joins(AgentId("one"), hi.gpus(1))),
        at(0, hi.Joins(AgentId("two"), hi.gpus(2))),
        ask(1, 1, "far", BATCH_S, **LONG),
        ask(2, 1, "course", 1700, walltime_ms=1_700_000, closes_ms=0),
        ask(100, 1, "lab", 600, gpus=2),
        ask(200, 1, "guest", BATCH_S, **LONG),
        last=HOUR_S,
    )
    assert waits(seen, "guest") == [0]
    assert seen.granted("lab0") <= 1702 + 30


def test_whose_place_is_that_of_a_cell_beyond_the_wait_of_those_before_may_stay_longer_than_it() -> None:
    """The batch cell could end after an hour, and two hours of typing may: who is first has the other GPU before."""
    seen = look(
        quotas('[qos.typing]\nwalltime = "2 h"\npriority = 150\n' + FIRST),
        nodes(1, 2),
        ask(1, 1, "far", 1700, walltime_ms=1_700_000, closes_ms=0),
        ask(2, 1, "lab", BATCH_S, name="batch", walltime_ms=3_600_000, **LONG),
        ask(100, 1, "first", 600),
        ask(130, 1, "lab", 60, name="types", qos="typing"),
        last=HOUR_S,
    )
    assert waits(seen, "types") == [30]
    assert seen.granted("first0") <= 1701
