# ruff: noqa: E501  # settings and histories in one line each
"""A department's limit is full of what others in it borrow: whoever is covered gets theirs within one reclaim time."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, keeps_all
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, LONG, POOL, ask, join, left, look, places, quotas, waits


def department(limit: int, lab: int, more: str = "") -> str:
    return (
        f'[projects.dep]\nlimit = {limit}\n{more}[projects.lab]\nparent = "dep"\nguaranteed = {lab}\n'
        '[projects.sib]\nparent = "dep"\n'
    )


@pytest.mark.parametrize(
    ("limit", "number", "gpus"), [(4, 4, 1), (8, 7, 1), (8, 2, 3), (8, 1, 4), (6, 3, 2), (6, 1, 1)]
)
@pytest.mark.parametrize("free", [0, 1])
def test_all_that_is_asked_for_at_once_is_taken_back_at_once(limit: int, number: int, gpus: int, free: int) -> None:
    seen = look(
        quotas(department(limit, number * gpus)), nodes(2 + free, 4),
        ask(1, limit, "sib", BATCH_S, **LONG),
        ask(2, 8 - limit, "guests", BATCH_S, **LONG),
        ask(700, number, "lab", 900, gpus=gpus),
        last=1500,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert left(seen, "sib") == number * gpus
    assert seen.most_at_once("lab") == number * gpus


@pytest.mark.parametrize("who", ["dep", "sib"])
@pytest.mark.parametrize("qos", ["interactive", "batch", "reserved"])
def test_in_a_deeper_tree_where_two_limits_are_full_one_cell_is_taken_for_both(who: str, qos: str) -> None:
    text = (
        '[projects.faculty]\nlimit = 6\n[projects.dep]\nparent = "faculty"\nlimit = 6\n'
        '[projects.group]\nparent = "dep"\n[projects.lab]\nparent = "group"\nguaranteed = 3\n'
        '[projects.sib]\nparent = "dep"\n'
    )
    seen = look(
        quotas(text), nodes(2, 4),
        ask(1, 6, who, BATCH_S, name="sib", **LONG),
        ask(2, 2, "guests", BATCH_S, **LONG),
        ask(700, 3, "lab", 1200, qos=qos),
        last=2100,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert left(seen, "sib") == 3
    assert left(seen, "guests") == 0


def test_two_limits_that_different_ones_fill_are_both_met_within_one_grace() -> None:
    text = (
        '[projects.faculty]\nlimit = 6\n[projects.dep]\nparent = "faculty"\nlimit = 3\n'
        '[projects.lab]\nparent = "dep"\nguaranteed = 3\n[projects.sib]\nparent = "dep"\n[projects.far]\nparent = "faculty"\n'
    )
    seen = look(
        quotas(text), nodes(2, 4),
        ask(1, 1, "sib", BATCH_S, **LONG),
        ask(2, 5, "far", BATCH_S, **LONG),
        ask(3, 2, "guests", BATCH_S, **LONG),
        ask(700, 3, "lab", 1200),
        last=1800,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert (left(seen, "sib"), left(seen, "far"), left(seen, "guests")) == (1, 2, 0)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_limit_is_full_on_one_type_and_the_other_type_is_lent_to_guests(number: int) -> None:
    """One cell goes for the limit and another for the GPU, at the same time."""
    seen = look(
        quotas(department(4, 3)), join(),
        ask(1, 4, "sib", BATCH_S, gpu_type="L4", **LONG),
        ask(2, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(700, number, "lab", 900, gpu_type="H100"),
        last=1500,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert (left(seen, "sib"), left(seen, "guests")) == (number, number)


def test_of_those_that_fill_the_limit_the_cell_goes_that_has_the_type_too() -> None:
    seen = look(
        quotas(department(4, 2)), join(),
        ask(1, 2, "sib", BATCH_S, gpu_type="H100", **LONG),
        ask(2, 2, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(3, 2, "sib", BATCH_S, gpu_type="L4", name="sib-l4", **LONG),
        ask(700, 2, "lab", 900, gpu_type="H100"),
        last=1500,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert (left(seen, "sib"), left(seen, "sib-l4"), left(seen, "guests")) == (2, 0, 0)


@pytest.mark.parametrize("hot", [1, 2, 4])
def test_hot_sessions_go_first(hot: int) -> None:
    seen = look(
        quotas(department(4, 3)), nodes(1, 8),
        ask(1, hot, "sib", 20, 20, think_s=5000, name="hot"),
        ask(2, 4 - hot, "sib", BATCH_S, name="busy", **LONG),
        ask(700, 3, "lab", 900),
        last=1500,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert waits(seen, "lab")[min(3, hot) - 1] <= 5
    assert left(seen, "busy") == max(0, 3 - hot)


@pytest.mark.parametrize("number", [1, 3])
def test_who_comes_meanwhile_does_not_get_the_free_gpu_that_is_kept_for_who_waits_for_the_limit(number: int) -> None:
    seen = look(
        quotas(department(4, 3)), join(4, 4),
        ask(1, 4, "sib", BATCH_S, gpu_type="L4", **LONG),
        ask(700, number, "lab", 900, gpu_type="H100"),
        ask(710, 4, "guests", 900, gpu_type="H100", **LONG),
        last=1500,
        but=(5,),  # it is free meanwhile
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert left(seen, "guests") == 0
    assert waits(seen, "guests")[3 - number] <= 1


def test_what_is_free_beside_who_waits_for_the_limit_goes_to_others_at_once() -> None:
    seen = look(
        quotas(department(4, 1)), nodes(1, 8),
        ask(1, 4, "sib", BATCH_S, **LONG),
        ask(700, 1, "lab", 900),
        ask(705, 3, "guests", 900, **LONG),
        last=1500,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert waits(seen, "guests")[-1] <= 1


def test_what_no_node_could_hold_takes_nothing_for_the_limit() -> None:
    """Two at once where each node has one that is lent, and another that a guarantee covers."""
    seen = look(
        quotas(department(3, 2) + "[projects.other]\nguaranteed = 3\n"), nodes(3, 2),
        ask(1, 3, "other", BATCH_S, **LONG),
        ask(2, 3, "sib", BATCH_S, **LONG),
        ask(700, 1, "lab", 900, gpus=2),
        last=1500,
    )  # fmt: skip
    if len(set(places(seen, "other"))) == 3:
        assert left(seen, "sib") == 0
    assert left(seen, "other") == 0


@pytest.mark.parametrize("away", [2, 4])
def test_the_owner_of_a_node_pool_in_a_department_with_a_full_limit(away: int) -> None:
    """What it uses elsewhere takes nothing away from what it is guaranteed at home."""
    text = POOL + (
        "[projects.dep]\nlimit = 8\n"
        '[projects.lab]\nparent = "dep"\nnode_pools = { h100 = 2 }\n[projects.sib]\nparent = "dep"\n'
    )
    seen = look(
        quotas(text), join(4, 6),
        ask(1, away, "lab", BATCH_S, gpu_type="L4", name="away", **LONG),
        ask(2, 4, "sib", BATCH_S, gpu_type="H100", **LONG),
        ask(3, 4 - away, "sib", BATCH_S, gpu_type="L4", name="more", **LONG),
        ask(700, 2, "lab", 900, gpu_type="H100"),
        last=1500,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert left(seen, "sib") == 2


def test_who_waits_for_a_node_keeps_no_limit_from_others_while_a_session_leaves() -> None:
    """All H100 are the dean's, who has the place of the session, too: so a guest leaves for whoever takes any GPU."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\nlimit = 1\n[projects.dean]\nguaranteed = 2\n"),
        join(1, 2),
        at(1, notebook("h100", "dean", 3000, gpu_type="H100")),
        at(1, notebook("hot", "lab", 100, gpu_type="L4")),
        at(2, notebook("guest", "guests", 3000, gpu_type="L4")),
        at(200, notebook("typed", "lab", 600, gpu_type="H100")),
        at(200.01, notebook("l4", "dean", 600, gpu_type="L4")),
        at(200.02, notebook("any", "lab", 600)),
        last=HOUR_S,
        evict_ms=5000,
    )
    assert seen.asked_to_leave("hot") == [200]
    assert seen.asked_to_leave("guest") == [200.02]
    keeps_all(seen)


@pytest.mark.parametrize("limit", [1, 2])
def test_what_a_limit_leaves_is_had_at_once_though_who_stands_before_waits_for_a_cell_to_go(limit: int) -> None:
    """The one has the place of that cell, in the lab's limit or in its guarantee, and the other a free one."""
    text = '[projects.dep]\nlimit = 2\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n'
    text += f"limit = {limit}\n"
    text += '[projects.other]\nparent = "dep"\nguaranteed = 1\n'
    seen = look(
        quotas(text + '[qos.firm]\npriority = 100\nwalltime = "10 h"\nmust_be_in_quota = true\n'),
        nodes(1, 4),
        at(1, notebook("low", "lab", HOUR_S, qos="firm")),
        at(100, notebook("high", "lab", 600, qos="reserved")),
        at(105, notebook("asks", "other", 600)),
        last=900,
    )
    assert seen.asked_to_leave("low") == [100]
    assert seen.granted("high") <= 100 + SOON_S
    assert seen.granted("asks") <= 105 + 1
    keeps_all(seen)


def test_who_does_not_fit_a_limit_beside_one_for_whom_a_cell_goes_waits_for_that_one() -> None:
    """All three of the department are to be those of the larger request, as soon as the dean's cell has gone, on a node to drain."""
    seen = look(
        quotas('[projects.dep]\nlimit = 3\n[projects.lab]\nparent = "dep"\nguaranteed = 3\n'),
        join(4, 4),
        at(1, notebook("dean", "dep", HOUR_S, gpu_type="L4")),
        at(2, notebook("first", "lab", 298, gpu_type="L4", closes_ms=0)),
        at(85, notebook("three", "lab", 600, gpus=3, gpu_type="H100")),
        at(150, hi.PlansDrain(AgentId("slow"), 2_400_000)),
        at(305, notebook("next", "lab", 60)),
        last=HOUR_S,
    )
    assert seen.asked_to_leave("dean")[0] == 300
    assert seen.granted("three") <= 300 + SOON_S
    assert seen.granted("next") > seen.granted("three")
    keeps_all(seen)


def test_who_is_not_covered_beside_one_for_whom_a_cell_goes_has_its_place_when_that_one_gives_up() -> None:
    """The guarantee is for one of the two; the cell on the H100 may go later, and then at once."""
    rules = '[qos.batch]\nmin_runtime = "10 min"\ngrace = "0 s"\n[qos.interactive]\ngrace = "10 min"\n'
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\n" + rules),
        join(1, 1),
        at(1, notebook("old", "guests", HOUR_S, gpu_type="L4")),
        at(400, notebook("young", "guests", BATCH_S, gpu_type="H100", **LONG)),
        at(500, notebook("typed", "lab", 600, gpu_type="H100")),
        at(900, notebook("other", "lab", 600, gpu_type="L4", patience_ms=300_000)),
        last=2000,
    )
    assert seen.asked_to_leave("old") == [900]
    assert seen.asked_to_leave("young") == [1200]
    assert seen.granted("typed") <= 1202
    keeps_all(seen)


def test_the_gpu_that_comes_with_a_guarantee_is_kept_while_a_user_beside_the_project_gives_theirs_back() -> None:
    """What the department is guaranteed is the dean's, whose share goes for who never borrows; the H100 waits for it."""
    seen = look(
        quotas(
            '[projects.dep]\n[projects.lab]\nparent = "dep"\npriority = 5\n'
            '[projects.sib]\nparent = "dep"\nguaranteed = 1\n'
        ),
        join(1, 1),
        at(1, notebook("fast", "lab", 500, 900, think_s=5, gpu_type="H100")),
        at(2, notebook("dean", "dep", HOUR_S, gpu_type="L4")),
        at(200, notebook("firm", "lab", 600, qos="reserved", gpu_type="H100")),
        last=2000,
    )
    assert seen.asked_to_leave("dean")[0] == 501
    assert seen.granted("firm") <= 501 + SOON_S
    keeps_all(seen)
