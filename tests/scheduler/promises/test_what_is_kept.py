"""What lenders keep is theirs at once: inside others, in node pools, and while nodes are drained."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, at
from tests.scheduler.promises.stories import LENDING, LONG, ask, join, look, quotas, waits

NEVER = float("inf")
KEEPS_ALL = "[projects.lab]\nguaranteed = 2\nlending_limit = 0\n"


def test_what_a_part_of_a_department_keeps_is_kept_from_all_outside_too() -> None:
    seen = look(
        quotas('[projects.dep]\nguaranteed = 2\n[projects.lab]\nparent = "dep"\nguaranteed = 2\nlending_limit = 0\n'),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(3))),
        ask(1, 3, "far", 10 * HOUR_S, **LONG),
        ask(600, 2, "lab", 100),
        last=2000,
    )
    assert waits(seen, "lab") == [0, 0]
    assert waits(seen, "far") == [0, NEVER, NEVER]


def test_what_is_kept_of_a_node_pool_is_free_there_whatever_is_free_elsewhere() -> None:
    seen = look(
        quotas(LENDING),
        join(),
        ask(1, 3, "far", 10 * HOUR_S, gpu_type="H100", **LONG),
        ask(600, 3, "lab", 100, gpu_type="H100"),
        last=2000,
    )
    assert waits(seen, "lab") == [0, 0, 0]
    assert waits(seen, "far") == [0, NEVER, NEVER]


def test_a_node_that_is_drained_has_nothing_to_lend() -> None:
    seen = look(
        quotas(KEEPS_ALL),
        [at(0, hi.Joins(AgentId(name), hi.gpus(2))) for name in ("n0", "n1")],
        at(1, hi.Drains(AgentId("n1"), is_drained=True)),
        ask(2, 2, "far", 10 * HOUR_S, **LONG),
        ask(600, 2, "lab", 100),
        last=900,
    )
    assert waits(seen, "lab") == [0, 0]


def test_what_still_runs_on_a_drained_node_keeps_nobody_from_what_is_lent_elsewhere() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\nlending_limit = 0\n"),
        at(0, hi.Joins(AgentId("n1"), hi.gpus(3))),
        ask(1, 2, "far", 10 * HOUR_S, name="runs", **LONG),
        at(10, hi.Drains(AgentId("n1"), is_drained=True)),
        at(20, hi.Joins(AgentId("n0"), hi.gpus(2))),
        ask(100, 1, "far", 100, **LONG),
        ask(150, 1, "lab", 100),
        last=900,
    )
    assert waits(seen, "far") == [0]
    assert waits(seen, "lab") == [0]


def test_a_hot_session_that_never_borrows_has_its_part_of_what_keep_hot_keeps() -> None:
    """Three hot sessions, of which the guarantee has room for two: the older one of those that may borrow leaves."""
    seen = look(
        quotas('[projects.lab]\nguaranteed = 2\nkeep_hot = "30 min"\n'),
        join(2, 1),
        ask(1, 1, "lab", 10, name="own", gpu_type="L4", qos="reserved"),
        ask(20, 1, "lab", 30, name="old", gpu_type="H100"),
        ask(30, 1, "lab", 30, name="new", gpu_type="H100"),
        ask(100, 1, "far", 600, gpu_type="H100"),
        last=1000,
    )
    assert seen.wait("far0") <= 1
    assert seen.asked_to_leave("new0") == seen.asked_to_leave("own0") == []


def test_where_a_lender_would_keep_what_it_gave_back_another_cell_goes() -> None:
    """More is guaranteed than there is: the small lender borrows a part of its GPU, and would keep the other part."""
    seen = look(
        quotas(
            "[projects.small]\nguaranteed = 1\nlending_limit = 0\n[projects.other]\nguaranteed = 1\n[projects.dep]\n"
            '[projects.lab]\nparent = "dep"\nguaranteed = 4\nlending_limit = 1\n'
        ),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(4))),
        ask(1, 1, "dep", 10 * HOUR_S, **LONG),
        ask(225, 1, "small", 1500),
        ask(1000, 1, "dep", 600, name="higher"),
        last=1400,
    )
    assert waits(seen, "higher") == [30]
    assert seen.asked_to_leave("small0") == []
