# ruff: noqa: E501  # settings and histories in one line each
"""Where two promises meet: guarantees, shares and limits beside drains, class hours, budgets and what people do by hand."""

from bulletin.ids import AgentId, SessionId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, keeps_all
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, left, look, quotas, reserve, running, waits

SCIENCE = '[projects.science]\nguaranteed = 4\n[projects.lab]\nparent = "science"\nguaranteed = 2\n[projects.group]\nparent = "science"\n'
FIRM = '[qos.firm]\nwalltime = "30 h"\nmust_be_in_quota = true\nqueued_per_user = 9\n'
MIDNIGHT_S = 15 * HOUR_S  #: from nine on


def test_a_lab_has_its_own_from_its_department_where_all_others_are_never_taken_back() -> None:
    seen = look(
        quotas(SCIENCE + "[projects.guests]\nguaranteed = 2\n"),
        nodes(3, 2),
        ask(1, 4, "group", BATCH_S, **LONG),
        ask(5, 2, "guests", BATCH_S, qos="reserved", walltime_ms=40_000_000),
        ask(600, 2, "lab", 1000, closes_ms=0),
        last=HOUR_S,
    )
    keeps_all(seen)
    assert waits(seen, "lab")[-1] <= SOON_S
    assert (left(seen, "group"), left(seen, "guests")) == (2, 0)


def test_a_node_that_is_drained_while_room_is_made_there_costs_one_more_grace() -> None:
    drained = (at(610, hi.Drains(AgentId("n0"), True)), at(612, hi.Drains(AgentId("n0"), False)))
    seen = look(
        quotas("[projects.lab]\nguaranteed = 4\n"),
        nodes(2, 4),
        ask(1, 8, "guests", BATCH_S, **LONG),
        at(600, notebook("lab", "lab", 1700, gpus=4)),
        *drained,
        last=1500,
    )
    assert seen.wait("lab") <= 10 + SOON_S


def test_a_node_that_comes_back_gives_both_owners_all_of_theirs() -> None:
    seen = look(
        quotas("[projects.a]\nguaranteed = 4\n[projects.b]\nguaranteed = 4\n"),
        nodes(2, 4),
        at(1, hi.Drains(AgentId("n1"), True)),
        ask(2, 4, "a", BATCH_S, **LONG),
        ask(600, 4, "b", BATCH_S, **LONG),
        at(2000, hi.Drains(AgentId("n1"), False)),
        last=3000,
    )
    keeps_all(seen)
    assert sorted(seen.granted(f"b{n}") for n in range(4))[1] <= 600 + SOON_S
    assert (running(seen, 2010, "a"), running(seen, 2010, "b"), left(seen, "a")) == (4, 4, 2)


def test_of_class_hours_and_a_reservation_the_larger_one_counts_and_not_both() -> None:
    hours = '[projects.cs.class_hours.lecture]\ndays = ["Thu"]\nfrom = "09:00"\nuntil = "11:00"\nguaranteed = 3\ntime_zone = "UTC"\n'
    seen = look(
        quotas(
            "[projects.cs]\n" + hours + "[projects.lab]\nguaranteed = 2\n" + reserve("exam", "cs", 4, "09:10", "09:30")
        ),
        nodes(1, 6),
        ask(1, 6, "guests", BATCH_S, **LONG),
        ask(100, 4, "cs", BATCH_S, **LONG),
        ask(200, 2, "lab", BATCH_S, **LONG),
        last=HOUR_S,
    )
    granted = sorted(seen.granted(f"cs{n}") for n in range(4))
    assert granted[2] <= 100 + SOON_S
    assert granted[3] <= 600 + SOON_S
    assert waits(seen, "lab")[-1] <= SOON_S
    assert left(seen, "lab") == 0


def test_a_new_day_of_a_budget_brings_what_is_guaranteed_and_nobody_goes_before() -> None:
    seen = look(
        quotas('[projects.p]\nguaranteed = 2\nbudget = "1 GPU-hours per day"\n'),
        nodes(1, 2),
        ask(1, 2, "p", 1700, walltime_ms=1_700_000, closes_ms=0),
        ask(30_000, 2, "guests", 11 * HOUR_S, **LONG),
        ask(40_000, 2, "p", 900, name="late", walltime_ms=900_000, closes_ms=0),
        last=MIDNIGHT_S + HOUR_S,
    )
    keeps_all(seen)
    assert all(MIDNIGHT_S <= seen.granted(f"late{n}") <= MIDNIGHT_S + SOON_S for n in range(2))
    assert all(when >= MIDNIGHT_S for n in range(2) for when in seen.asked_to_leave(f"guests{n}"))


def test_a_hot_session_gives_its_part_of_a_budget_to_who_waits_and_a_shorter_cell_starts_sooner() -> None:
    seen = look(
        quotas('[projects.p]\nbudget = "1 GPU-hours per day"\n'),
        nodes(1, 4),
        at(1, notebook("ann", "p", 1200)),
        at(1300, notebook("bob", "p", 600, walltime_ms=1_200_000, closes_ms=0)),
        at(1301, notebook("cem", "p", 600, walltime_ms=1_500_000, closes_ms=0)),
        last=4000,
        evict_ms=1000,
    )
    keeps_all(seen)
    assert seen.wait("bob") <= 2
    assert 1900 <= seen.granted("cem") <= 1903


def test_what_was_being_freed_goes_to_the_next_one_when_its_owner_gives_up() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\n"),
        nodes(1, 1),
        at(1, notebook("guest", "guests", BATCH_S, **LONG)),
        at(600, notebook("lab", "lab", 600)),
        at(605, notebook("next", "q", 100, closes_ms=0)),
        at(615, hi.GivesUp(SessionId("lab"))),
        last=2000,
    )
    keeps_all(seen)
    assert seen.granted("next") == 630
    assert left(seen, "guest") == 1
    assert running(seen, 740, "guest") == 1


def test_two_reservations_and_a_guarantee_shrink_together_and_grow_again() -> None:
    text = "[projects.a]\nguaranteed = 2\n[projects.b]\n[projects.c]\n"
    seen = look(
        quotas(text + reserve("one", "b", 4, "09:10", "09:40") + reserve("two", "c", 2, "09:20", "09:50")),
        nodes(1, 4),
        ask(1, 4, "a", BATCH_S, **LONG),
        ask(650, 4, "b", BATCH_S, **LONG),
        ask(1250, 2, "c", BATCH_S, **LONG),
        last=5000,
    )
    assert running(seen, 1190, "b") >= 2
    assert [running(seen, 1340, name) for name in "abc"] == [1, 2, 1]
    assert [running(seen, 2500, name) for name in "abc"] == [2, 0, 2]


def test_a_cell_that_was_taken_back_comes_again_though_its_user_has_as_many_waiting_as_may() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\n"),
        nodes(1, 2),
        [at(1, notebook(f"runs{n}", "p", BATCH_S, user="ann", **LONG)) for n in range(2)],
        [at(10 + n, notebook(f"waits{n}", "p", 600, user="ann", closes_ms=0, **LONG)) for n in range(5)],
        ask(600, 2, "lab", 300, closes_ms=0),
        last=HOUR_S,
    )
    keeps_all(seen)
    assert [bool(seen.refused(f"waits{n}")) for n in range(5)] == [False] * 4 + [True]
    assert not seen.refused("runs0")
    assert running(seen, 940, "runs") == 2


def test_limits_at_three_levels_are_shared_at_each_of_them() -> None:
    text = '[projects.uni]\nlimit = 6\n[projects.one]\nparent = "uni"\nlimit = 4\n[projects.two]\nparent = "uni"\n'
    inside = "".join(
        f'[projects.{name}]\nparent = "{above}"\n' for name, above in (("a", "one"), ("b", "one"), ("c", "two"))
    )
    seen = look(
        quotas(text + inside),
        nodes(1, 12),
        ask(1, 4, "a", BATCH_S, **LONG),
        ask(2, 2, "c", BATCH_S, **LONG),
        ask(600, 4, "b", BATCH_S, **LONG),
        ask(1200, 4, "c", BATCH_S, name="c-more", **LONG),
        last=6000,
    )
    keeps_all(seen)
    assert running(seen, 5500, "c") == 3
    assert sorted(running(seen, 5500, name) for name in "ab") == [1, 2]


def test_three_users_have_a_third_of_a_guarantee_in_a_class_that_never_borrows_and_keep_it() -> None:
    seen = look(
        quotas(FIRM + "[projects.p]\nguaranteed = 3\n"),
        nodes(1, 8),
        [at(1 + n, notebook(f"ann{n}", "p", 30 * HOUR_S, user="ann", qos="firm")) for n in range(4)],
        [at(600 + n, notebook(f"bob{n}", "p", 30 * HOUR_S, user="bob", qos="firm")) for n in range(3)],
        [at(3000 + n, notebook(f"cem{n}", "p", 30 * HOUR_S, user="cem", qos="firm")) for n in range(3)],
        last=10 * HOUR_S,
    )
    keeps_all(seen)
    assert [running(seen, 9 * HOUR_S, name) for name in ("ann", "bob", "cem")] == [1, 1, 1]
    assert left(seen, "") == 2


def test_short_cells_of_others_share_a_node_that_is_to_be_drained() -> None:
    seen = look(
        quotas(""),
        nodes(2, 2),
        at(0, hi.PlansDrain(AgentId("n1"), 2 * HOUR_S * 1000)),
        ask(1, 4, "a", 3000, 3000, walltime_ms=3_000_000, closes_ms=0, **LONG),
        ask(600, 2, "b", 2000, walltime_ms=2_400_000, **LONG),
        last=9000,
    )
    keeps_all(seen)
    assert waits(seen, "b")[-1] <= 3 * MINUTE_S + SOON_S
