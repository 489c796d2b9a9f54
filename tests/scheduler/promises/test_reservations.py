# ruff: noqa: E501  # settings and histories in one line each
"""Reservations as people meet them, from the page alone."""

import pytest

from gpu_worker.scheduler import actions as act, events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S
from tests.scheduler.promises.seen import HOUR_S, at, nodes
from tests.scheduler.promises.stories import BATCH_S, LONG, POOL, ask, join, left, look, quotas, reserve, waits


def test_reservation_begins_while_all_is_borrowed() -> None:
    seen = look(
        quotas("[projects.cs]\n" + reserve("exam", "cs", 4, "09:10", "10:10", "ann", "bob")), nodes(1, 8),
        ask(1, 8, "guests", BATCH_S, **LONG),
        ask(500, 2, "cs", 900, user="ann", name="ann"),
        ask(510, 2, "cs", 900, user="bob", name="bob"),
        ask(520, 2, "cs", 900, user="eve", name="eve"),
        last=HOUR_S,
    )  # fmt: skip
    for name in ("ann0", "ann1", "bob0", "bob1"):
        assert seen.granted(name) <= 600 + SOON_S, name
    assert seen.granted("bob1") >= 600 or left(seen, "guests") <= 8


def test_reservation_of_gpus_that_the_rest_of_the_project_has_in_quota() -> None:
    seen = look(
        quotas("[projects.cs]\nguaranteed = 4\n" + reserve("exam", "cs", 4, "09:10", "10:00", "ann")), nodes(1, 4),
        ask(1, 4, "cs", BATCH_S, **LONG),
        ask(300, 4, "cs", 3000, user="ann", name="ann", walltime_ms=1_800_000),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert all(600 <= seen.granted(f"ann{n}") <= 600 + SOON_S or seen.granted(f"ann{n}") < 600 for n in range(4))
    assert seen.gpu_seconds("cs", 3700, 2 * HOUR_S) >= 0.97 * 4 * (2 * HOUR_S - 3700), "batch goes on afterwards"


def test_reservation_takes_from_a_full_limit_of_its_project() -> None:
    seen = look(
        quotas("[projects.cs]\nlimit = 4\n" + reserve("exam", "cs", 3, "09:10", "10:00", "ann")), nodes(1, 8),
        ask(1, 4, "cs", BATCH_S, **LONG),
        ask(700, 3, "cs", 900, user="ann", name="ann", **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann")[-1] <= SOON_S
    assert seen.most_at_once("cs") <= 4


def test_reservation_and_user_limit() -> None:
    """What is reserved for ann may be more than user_limit gives a user: whichever it is, somebody says so."""
    seen = look(
        quotas("[projects.cs]\nuser_limit = 1\n" + reserve("exam", "cs", 3, "09:10", "10:00", "ann")), nodes(1, 4),
        ask(700, 3, "cs", 900, user="ann", name="ann"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann")[-1] <= SOON_S


def test_reservation_is_within_the_budget_of_its_project() -> None:
    seen = look(
        quotas('[projects.cs]\nbudget = "2 GPU-hours per day"\n' + reserve("exam", "cs", 4, "09:10", "12:00", "ann")),
        nodes(1, 4),
        ask(1, 2, "cs", *[800] * 10, name="other"),
        ask(600, 4, "cs", *[800] * 10, user="ann", name="ann"),
        last=3 * HOUR_S,
    )  # fmt: skip
    spent = seen.gpu_seconds("cs") / 3600
    assert 1.4 <= spent <= 2 + 6 / 60, spent


def test_reservation_ends_while_its_cells_run() -> None:
    seen = look(
        quotas("[projects.cs]\n[projects.lab]\nguaranteed = 4\n" + reserve("exam", "cs", 4, "09:10", "09:30", "ann")),
        nodes(1, 8),
        ask(1, 4, "guests", BATCH_S, **LONG),
        ask(610, 4, "cs", BATCH_S, user="ann", name="ann", **LONG),
        ask(700, 6, "lab", BATCH_S, **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann")[-1] <= SOON_S
    assert waits(seen, "lab")[3] <= SOON_S
    assert min((t for n in range(4) for t in seen.asked_to_leave(f"ann{n}")), default=9e9) >= 1800, "not while it is on"


def test_reservation_end_gives_the_owner_his_gpus_back() -> None:
    """Eight reserved of eight for a while, four of which a lab is guaranteed: both shrink, then the lab has its four."""
    seen = look(
        quotas("[projects.cs]\n[projects.lab]\nguaranteed = 4\n" + reserve("exam", "cs", 4, "09:10", "09:30", "ann")),
        nodes(1, 4),
        ask(610, 4, "cs", BATCH_S, user="ann", name="ann", **LONG),
        ask(700, 4, "lab", BATCH_S, **LONG),
        last=HOUR_S,
    )  # fmt: skip
    granted = sorted(seen.granted(f"lab{n}") for n in range(4))
    assert granted[1] <= 700 + SOON_S, granted
    assert granted[3] <= 1800 + SOON_S, granted


def test_reservations_at_the_same_time_for_two_in_one_project() -> None:
    seen = look(
        quotas(
            "[projects.cs]\nguaranteed = 2\n" + reserve("one", "cs", 2, "09:10", "10:00", "ann")
            + reserve("two", "cs", 3, "09:20", "10:00", "bob") + "[projects.lab]\nguaranteed = 3\n"
        ),
        nodes(1, 8),
        ask(1, 3, "lab", BATCH_S, **LONG),
        ask(2, 5, "cs", BATCH_S, name="rest", **LONG),
        ask(700, 2, "cs", 1700, user="ann", name="ann", **LONG),
        ask(900, 3, "cs", 1700, user="bob", name="bob", **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann")[-1] <= SOON_S
    assert max(seen.granted(f"bob{n}") for n in range(3)) <= 1200 + SOON_S
    assert left(seen, "lab") == 0
    assert left(seen, "ann") == 0


def test_reservation_with_a_node_pool_of_its_project() -> None:
    seen = look(
        quotas(POOL + "[projects.vision]\nnode_pools = { h100 = 4 }\n" + reserve("exam", "vision", 2, "09:10", "10:00", "ann")),
        join(),
        ask(1, 8, "guests", BATCH_S, **LONG),
        ask(700, 2, "vision", 900, user="ann", name="ann", gpu_type="H100"),
        ask(800, 2, "vision", 900, user="bob", name="bob", gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann")[-1] <= SOON_S
    assert waits(seen, "bob")[-1] <= SOON_S


def test_reservation_with_a_node_pool_that_the_rest_of_its_project_fills() -> None:
    """Reserved are two GPUs of any kind; those who are not in it keep none of the H100 from who is."""
    seen = look(
        quotas(POOL + "[projects.vision]\nnode_pools = { h100 = 4 }\n" + reserve("exam", "vision", 4, "09:10", "10:00", "ann")),
        join(4, 1),
        ask(1, 4, "vision", BATCH_S, gpu_type="H100", name="bob", **LONG),
        ask(700, 4, "vision", 900, user="ann", name="ann", gpu_type="H100", **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann")[-1] <= SOON_S


@pytest.mark.parametrize("who", ["ann", ""])
def test_reservation_for_a_class_that_never_borrows(who: str) -> None:
    users = [who] if who else []
    seen = look(
        quotas("[projects.cs]\n" + reserve("exam", "cs", 1, "09:10", "09:40", *users)), nodes(1, 1),
        ask(1, 1, "guests", BATCH_S, **LONG),
        ask(300, 1, "cs", *[300] * 12, think_s=100, user="ann", name="ann", qos="reserved", walltime_ms=600_000),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert 600 <= seen.granted("ann0") <= 600 + SOON_S
    starts = [t for t, e, _ in seen.log if isinstance(e, ev.CellStarted) and e.cell.startswith("ann0/")]
    assert max(starts) < 2400, starts
    assert seen.refused("ann0"), "what can never run is refused, not left waiting"
    assert seen.gpu_seconds("guests", 2800, 2 * HOUR_S) >= 0.97 * (2 * HOUR_S - 2800)


def test_reservation_in_a_project_that_never_borrows_leaves_the_others_theirs() -> None:
    """Two of four are reserved; the others of the static project keep the two that are left."""
    seen = look(
        quotas("[projects.cs]\nguaranteed = 4\nborrow = false\n" + reserve("exam", "cs", 2, "09:10", "10:00", "ann")),
        nodes(1, 8),
        ask(700, 4, "cs", 900, name="rest"),
        ask(760, 2, "cs", 900, user="ann", name="ann"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann")[-1] <= 60 + SOON_S
    assert waits(seen, "rest")[1] <= 2
    assert seen.most_at_once("cs") <= 4


def test_reservation_next_cell_of_a_session_counts_there() -> None:
    seen = look(
        quotas("[projects.cs]\n[projects.lab]\nguaranteed = 2\n" + reserve("exam", "cs", 1, "09:10", "10:00", "ann")),
        nodes(1, 3),
        ask(1, 1, "cs", 30, 2500, think_s=700, user="ann", name="ann", walltime_ms=1_800_000),
        ask(2, 2, "guests", BATCH_S, **LONG),
        ask(1000, 3, "lab", BATCH_S, **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[1] <= SOON_S
    assert left(seen, "ann") == 0


def test_reservation_lending_limit_and_keep_hot_are_those_of_its_project() -> None:
    seen = look(
        quotas('[projects.cs]\nkeep_hot = "10 min"\n' + reserve("exam", "cs", 2, "09:10", "10:00", "ann")), nodes(1, 2),
        ask(610, 2, "cs", 30, 30, 30, think_s=300, user="ann", name="ann"),
        ask(660, 2, "guests", BATCH_S, **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert min(seen.granted(f"guests{n}") for n in range(2)) > 1200


def test_reservation_beside_boost_and_top_of_others_in_its_project() -> None:
    seen = look(
        quotas("[projects.cs]\nguaranteed = 2\n" + reserve("exam", "cs", 2, "09:10", "10:00", "ann")), nodes(1, 2),
        ask(500, 4, "cs", 1700, user="bob", name="bob", **LONG),
        at(501, hi.ByHand("bob0", "boost")),  # type: ignore[arg-type]
        at(502, hi.ByHand("bob2", "put-first")),  # type: ignore[arg-type]
        ask(700, 2, "cs", 900, user="ann", name="ann"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann")[-1] <= SOON_S


def test_reservation_that_is_taken_out_of_the_file_and_one_that_comes_in() -> None:
    base = "[projects.cs]\n[projects.lab]\nguaranteed = 2\n"
    seen = look(
        quotas(base + reserve("exam", "cs", 2, "09:10", "10:00", "ann")), nodes(1, 4),
        ask(1, 2, "guests", BATCH_S, **LONG),
        ask(610, 4, "cs", BATCH_S, user="ann", name="ann", **LONG),
        at(900, hi.Changes(quotas(base))),
        ask(1000, 2, "lab", BATCH_S, **LONG),
        at(1500, hi.Changes(quotas(base + reserve("late", "cs", 2, "09:00", "10:00", "zoe")))),
        ask(1400, 2, "cs", 900, user="zoe", name="zoe", **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert max(seen.granted(f"zoe{n}") for n in range(2)) <= 1500 + SOON_S
    assert left(seen, "lab") == 0


def test_reservation_nothing_is_emptied_before_it_begins_or_kept_when_it_ended() -> None:
    seen = look(
        quotas("[projects.cs]\n" + reserve("exam", "cs", 4, "09:10", "09:20", "ann")), nodes(1, 4),
        ask(1, 4, "guests", *[100] * 40, think_s=0, **LONG),
        ask(2, 8, "guests", *[100] * 40, name="gb", **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert seen.idle_share(4, 5, 3000) <= 0.01
    assert not [a for _, _, actions in seen.log for a in actions if isinstance(a, act.Reclaim)]
