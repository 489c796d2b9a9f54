# ruff: noqa: E501  # settings and histories in one line each
"""What an owner of a node pool is guaranteed there is not lost to cells that are never taken back, nor lent beyond a limit."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S
from tests.scheduler.promises.seen import HOUR_S, at
from tests.scheduler.promises.stories import BATCH_S, LONG, NESTED, POOL, ask, join, left, look, places, quotas, waits

FIRM = '[qos.firm]\npreemption = "never"\nwalltime = "12 h"\npriority = 20\n'


@pytest.mark.parametrize("owned", [1, 2, 3, 4])
@pytest.mark.parametrize("typed", ["", "H100"])
@pytest.mark.parametrize("qos", ["reserved", "firm"])
def test_as_many_stay_at_the_owners_home_as_are_left_of_it(owned: int, typed: str, qos: str) -> None:
    seen = look(
        quotas(FIRM + POOL + f"[projects.lab]\nnode_pools = {{ h100 = {owned} }}\n[projects.course]\nguaranteed = 4\n"),
        join(4, 4),
        ask(1, 4, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(100, 4, "course", 3 * HOUR_S, qos=qos, gpu_type=typed),
        ask(600, owned, "lab", 1800, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert places(seen, "course").count("fast") == 4 - owned
    assert sum(wait <= SOON_S for wait in waits(seen, "course")) == (4 - owned if typed else 4)
    assert left(seen, "course") == 0


def test_the_owner_itself_has_all_of_it_in_a_class_that_is_never_taken_back() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 4\n"), join(4, 4),
        ask(1, 8, "guests", BATCH_S, **LONG),
        ask(100, 4, "lab", 3 * HOUR_S, qos="reserved"),
        ask(200, 4, "course", 3 * HOUR_S, qos="reserved"),
        last=HOUR_S,
    )  # fmt: skip
    assert (set(places(seen, "lab")), set(places(seen, "course"))) == ({"fast"}, {"slow"})
    assert max(waits(seen, "lab")[-1], waits(seen, "course")[-1]) <= SOON_S


@pytest.mark.parametrize("whose", ["group", "science"])
def test_in_a_department_the_part_of_a_lab_is_left_to_it(whose: str) -> None:
    """Two of the department's four are the lab's."""
    seen = look(
        quotas(NESTED), join(4, 4),
        ask(100, 4, whose, 3 * HOUR_S, qos="reserved", gpu_type="H100", name="firm"),
        ask(600, 2, "lab", 1800, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert places(seen, "firm").count("fast") == 2


def test_hot_sessions_of_such_a_class_count_as_cells() -> None:
    seen = look(
        quotas(FIRM + POOL + "[projects.lab]\nnode_pools = { h100 = 3 }\n"), join(4, 4),
        ask(1, 1, "course", 100, 5000, think_s=500, qos="firm", gpu_type="H100", name="first"),
        ask(300, 1, "course", 3 * HOUR_S, qos="firm", gpu_type="H100", name="second"),
        ask(900, 3, "lab", 1800, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S


def test_who_may_not_start_there_keeps_the_node_from_nobody() -> None:
    """The course waits for an L4, of which all are used by what is never taken back; the H100 that is free is not for it."""
    seen = look(
        quotas(FIRM + POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 4\n"), join(4, 2),
        ask(1, 2, "others", 2 * HOUR_S, gpu_type="L4", qos="firm"),
        ask(100, 2, "course", 600, qos="reserved"),
        ask(200, 4, "guests", 600, **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "guests")[-1] <= 1
    assert waits(seen, "course")[0] > HOUR_S


def test_what_a_lost_node_takes_away_is_the_owners_alone() -> None:
    """Of two nodes one is gone: the owner is guaranteed what is left, and nothing that stays starts there."""
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 2\n"),
        at(0, hi.Joins(AgentId("f0"), hi.gpus(2, "NVIDIA H100"))),
        at(0, hi.Joins(AgentId("f1"), hi.gpus(2, "NVIDIA H100"))),
        at(0, hi.Joins(AgentId("slow"), hi.gpus(2, "NVIDIA L4"))),
        at(50, hi.GoesSilent(AgentId("f1"))),
        ask(100, 2, "course", 3 * HOUR_S, qos="reserved"),
        ask(600, 2, "lab", 1800, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert set(places(seen, "course")) == {"slow"}


@pytest.mark.parametrize(("home", "more", "limit"), [(4, 0, 0), (4, 0, 2), (3, 2, 1), (2, 3, 1), (4, 2, 5)])
@pytest.mark.parametrize("typed", ["", "H100"])
def test_what_is_lent_of_a_node_pool_is_no_more_than_the_limit(home: int, more: int, limit: int, typed: str) -> None:
    text = (
        POOL
        + f"[projects.lab]\nguaranteed = {home + more}\nnode_pools = {{ h100 = {home} }}\nlending_limit = {limit}\n"
    )
    seen = look(
        quotas(text), join(4, 4),
        ask(1, 8, "guests", BATCH_S, gpu_type=typed, **LONG),
        ask(600, home, "lab", 1700, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    kept_there = max(0, home - limit)
    assert seen.most_at_once("guests") == min(4 - kept_there if typed else 8, 8 - max(0, home + more - limit))
    wait = waits(seen, "lab")
    assert wait[-1] <= SOON_S
    assert not kept_there or wait[kept_there - 1] <= 2


def test_what_a_department_lends_of_a_node_pool_is_no_more_than_its_limit() -> None:
    text = POOL + (
        "[projects.science]\nnode_pools = { h100 = 4 }\nlending_limit = 1\n"
        '[projects.lab]\nparent = "science"\nnode_pools = { h100 = 2 }\nlending_limit = 0\n[projects.group]\nparent = "science"\n'
    )
    seen = look(
        quotas(text), join(4, 4),
        ask(1, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(300, 3, "group", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 1, "lab", 1700, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert seen.most_at_once("guests") == 1
    assert seen.most_at_once("group") == 2
    assert waits(seen, "lab")[-1] <= 2


def test_who_is_in_quota_anywhere_is_not_held_back_by_a_lending_limit() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\nlending_limit = 1\n[projects.course]\nguaranteed = 4\n"),
        join(4, 4),
        ask(1, 4, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(100, 4, "course", BATCH_S, gpu_type="H100", **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "course")[-1] <= 1


@pytest.mark.parametrize(("has", "limit"), [(2, 0), (3, 0), (3, 1), (3, 2), (2, None)])
@pytest.mark.parametrize("typed", ["", "H100"])
def test_a_lender_gives_back_what_is_another_ones_at_home(has: int, limit: int | None, typed: str) -> None:
    """The owner has as much elsewhere as it is guaranteed; somebody who borrows is there for the lender."""
    lends = "" if limit is None else f"lending_limit = {limit}"
    text = (
        POOL
        + f"[projects.lender]\nguaranteed = {has}\n{lends}\n[projects.owner]\nguaranteed = 1\nnode_pools = {{ h100 = 1 }}\n"
    )
    seen = look(
        quotas(text), join(2, 2),
        ask(1, 1, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(2, 1, "owner", BATCH_S, gpu_type="L4", name="away", **LONG),
        ask(3, 2, "lender", BATCH_S, gpu_type="H100", **LONG),
        ask(500, 1, "owner", 1700, gpu_type=typed, name="home"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "home")[-1] <= SOON_S


@pytest.mark.parametrize("qos", ["interactive", "reserved"])
@pytest.mark.parametrize("elsewhere", [3, 4, 40])
def test_an_owner_has_its_home_however_much_is_guaranteed_elsewhere(qos: str, elsewhere: int) -> None:
    seen = look(
        quotas(
            POOL
            + f"[projects.owner]\nguaranteed = 1\nnode_pools = {{ h100 = 1 }}\n[projects.others]\nguaranteed = {elsewhere}\n"
        ),
        join(2, 2),
        ask(1, 4, "others", BATCH_S, **LONG),
        ask(500, 1, "owner", 1700, gpu_type="H100", qos=qos),
        ask(600, 1, "owner", 1700, gpu_type="H100", qos=qos, name="more"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "owner")[-1] <= SOON_S
    assert waits(seen, "more")[-1] >= 1700 - 100
