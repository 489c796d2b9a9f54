"""A node for oneself (`--exclusive`): nobody else is on it meanwhile, and what is guaranteed comes in time."""

import pytest

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler import events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import keeps_all
from tests.scheduler.promises.played import at, node, opens, quotas
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, Seen, see

RULES = (
    "[projects.lab]\nguaranteed = 4\n[projects.ops]\nguaranteed = 2\n[projects.guests]\nlimit = 6\n"
    '[qos.debug]\npriority = 100\nwalltime = "2 h"\nexclusive = true\n'
)
#: A minute and the grace in which a cell that borrows goes.
RECLAIM_S = 95
ALONE = {"qos": "debug", "is_exclusive": True}


def asked(seen: Seen, session: str) -> int:
    """Count how often a notebook asked for a GPU."""
    return sum(isinstance(event, ev.RequestSubmitted) and event.session == session for _, event, _ in seen.log)


def test_who_borrows_a_node_for_themselves_gives_it_back_within_the_reclaim_time() -> None:
    seen = see(
        quotas(RULES), node("a", 4), opens(0, "ann", "guests", 90 * MINUTE_S, gpus=4, time=2 * HOUR_S, **ALONE),
        opens(600, "lab", "lab", 300), opens(600, "lab2", "lab", 300), last=3 * HOUR_S,
    )  # fmt: skip
    assert seen.wait("ann") == 0
    assert max(seen.wait("lab"), seen.wait("lab2")) <= RECLAIM_S
    assert asked(seen, "ann") == 2, "it runs again from its beginning, on a node for itself"
    keeps_all(seen)


def test_who_is_guaranteed_as_many_has_a_whole_node_back_from_those_who_borrow_it() -> None:
    seen = see(
        quotas(RULES), node("a", 4), node("b", 2), [opens(0, f"g{n}", "guests", HOUR_S, time=HOUR_S) for n in range(6)],
        opens(600, "ops", "ops", 300, gpus=2, time=HOUR_S, **ALONE), last=2 * HOUR_S,
    )  # fmt: skip
    assert seen.wait("ops") <= RECLAIM_S
    keeps_all(seen)


@pytest.mark.parametrize("size", [2, 4])
def test_it_waits_for_a_node_of_its_size_while_others_are_free_and_others_use_those(size: int) -> None:
    seen = see(
        quotas(RULES), node("a", 4), node("b", 2),
        opens(0, "tom", "guests", 600, gpus=size, time=HOUR_S),
        opens(0, "sue", "lab", 20, gpus=6 - size, time=600), opens(30, "eve", "guests", 60, gpus=1, time=600),
        opens(1, "ann", "ops" if size == 2 else "lab", 300, gpus=size, time=HOUR_S, **ALONE), last=2 * HOUR_S,
    )  # fmt: skip
    assert seen.wait("ann") <= RECLAIM_S + 600
    keeps_all(seen)


def test_nobody_comes_to_it_between_the_cells_of_one_who_keeps_it() -> None:
    rules = RULES.replace("exclusive = true", 'exclusive = true\nmust_be_in_quota = true\nkeep = "30 min"')
    seen = see(
        quotas(rules), node("a", 4), node("b", 2),
        opens(0, "ops", "ops", 60, 60, 60, think=300, gpus=2, time=HOUR_S, keep_ms=1_200_000, closes_ms=0, **ALONE),
        [opens(30 + n, f"g{n}", "guests", HOUR_S, time=HOUR_S, qos="batch") for n in range(5)], last=2 * HOUR_S,
    )  # fmt: skip
    assert asked(seen, "ops") == 1
    assert [seen.granted(f"g{n}") < 40 for n in range(5)] == [True] * 4 + [False]
    assert seen.granted("g4") >= 60 * 3 + 600
    keeps_all(seen)


def test_what_was_granted_is_given_in_any_class_until_its_time() -> None:
    asks = {"gpus": 4, "is_exclusive": True, "user": "ann"}
    allows = hi.Allows("a", ProjectId("guests"), UserName("ann"), 600_000, gpus=4, is_exclusive=True)
    seen = see(
        quotas(RULES), node("a", 4), opens(0, "before", "guests", 60, **asks), at(60, allows),
        opens(70, "then", "guests", 60, **asks), opens(700, "after", "guests", 60, **asks), last=HOUR_S,
    )  # fmt: skip
    assert seen.wait("then") == 0
    for session in ("before", "after"):
        assert "gives no cell a node for itself" in seen.refused(session)[0]
    keeps_all(seen)


def test_who_was_granted_a_small_node_has_no_large_one() -> None:
    asks = {"is_exclusive": True, "user": "ann"}
    allows = hi.Allows("a", ProjectId("guests"), UserName("ann"), 3_600_000, gpus=1, is_exclusive=True)
    seen = see(
        quotas(RULES), node("small", 1), node("large", 4), at(0, allows),
        opens(60, "large", "guests", 60, gpus=4, **asks), opens(120, "small", "guests", 60, gpus=1, **asks),
        last=HOUR_S,
    )  # fmt: skip
    assert "gives no cell a node for itself" in seen.refused("large")[0]
    assert seen.wait("small") == 0
    keeps_all(seen)
