"""Deadline nights: all at once, one person with many notebooks, batch beside typing, whole nodes, labs on Monday."""

import random

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, YOUNG_S, at, many, names, node, opens, play

HOUR_S = 3600
#: After which a request takes back what others have beyond their share.
SHARE_AFTER_S = 120
NO_SHARES = '[qos.batch]\nshare_after="366 d"\n[qos.interactive]\nshare_after="366 d"\n'


@pytest.mark.parametrize(("people", "gpus"), [(500, 64), (97, 8)])
def test_when_all_press_run_at_once_no_gpu_idles_until_the_last_has_run(people: int, gpus: int) -> None:
    """Nothing idles that somebody may use (5); nobody is passed for longer than their patience (6)."""
    run = 90
    day = play(
        "", [node(f"n{n}", 8) for n in range(gpus // 8)], many(people, 10, "s", "class", run, apart=0.01),
        last=people / gpus * run + 200,
    )  # fmt: skip
    last = max(day.grants(name)[0] for name in names("s", people))
    assert last <= 10 + (people // gpus) * run + people * 0.01 + SOON_S


@pytest.mark.parametrize("gpus", [1, 2, 4])
@pytest.mark.parametrize("borrowed", [1, 4, 8])
def test_a_lab_that_lent_all_has_it_on_monday_within_the_grace(gpus: int, borrowed: int) -> None:
    """A covered request gets its GPUs within the reclaim time, however many the project asks for at once (1)."""
    day = play(
        "[projects.lab]\nguaranteed=12\n", node("n0", 8), node("n1", 8),
        many(16 // borrowed, 10, "g", "guests", 90_000, qos="batch", gpus=borrowed),
        many(12 // gpus, 1000, "lab", "lab", 600, gpus=gpus), last=1500,
    )  # fmt: skip
    assert day.waits(*names("lab", 12 // gpus)) <= GRACE_S + SOON_S


@pytest.mark.parametrize("notebooks", [6, 7, 12])
def test_one_person_with_many_notebooks_gives_up_what_is_beyond_a_fair_part(notebooks: int) -> None:
    """A request that has waited for its class's `share_after` takes a cell back from who uses more (13)."""
    day = play(
        "", node("n", 6), many(notebooks, 10, "a", "p", *[1500] * 4, user="ann"), many(3, 300, "b", "p", 1500, apart=1),
        last=1000,
    )  # fmt: skip
    assert day.waits(*names("b", 3)) <= SHARE_AFTER_S + GRACE_S + 2 * SOON_S


def test_who_types_is_next_after_one_short_cell_of_six_notebooks() -> None:
    """Who uses less of the project is next (13)."""
    day = play(
        "", node("n", 4), many(6, 10, "a", "p", *[20] * 25, think=0.1, user="ann"),
        many(3, 100, "b", "p", *[20] * 20, think=3), last=500,
    )  # fmt: skip
    assert day.waits(*names("b", 3)) <= 20 + SOON_S


@pytest.mark.parametrize("user", ["ann", ""])
@pytest.mark.parametrize("young", [5, 40, 500])
def test_typing_takes_back_batch_of_its_own_project(user: str, young: float) -> None:
    """Within that cell's grace and `min_runtime`, its user's own too (12)."""
    mine = {"user": user} if user else {}
    day = play(
        "", node("n", 4), many(4, 1000 - young, "a", "p", 80_000, qos="batch", user="ann"),
        many(4, 1000, "b", "p", 60, **mine), last=1300,
    )  # fmt: skip
    assert day.waits(*names("b", 4)) <= max(0, YOUNG_S - young) + GRACE_S + SOON_S


@pytest.mark.parametrize("walltime", [300, 1800])
def test_a_whole_node_comes_under_a_constant_small_load(walltime: float) -> None:
    """Once it has waited for its patience it waits only for what runs already, at most one walltime (6)."""
    small = [opens(10 + n * 7, f"s{n}", f"p{n % 3}", *[280] * 15, think=1, time=walltime) for n in range(10)]
    day = play("", node("n", 8), small, opens(100, "big", "q", 300, gpus=8, time=900), last=1900 + walltime + 200)
    assert day.wait("big") <= 1800 + walltime + SOON_S


def test_a_guaranteed_whole_node_does_not_wait_for_the_small_ones() -> None:
    """Whatever else stands in line before it, whoever comes after it (1)."""
    small = [opens(10 + n * 7, f"s{n}", f"p{n % 3}", *[120] * 25, think=1) for n in range(12)]
    day = play("[projects.q]\nguaranteed=8\n", node("n", 8), small, opens(500, "big", "q", 300, gpus=8), last=1000)
    assert day.wait("big") <= YOUNG_S + GRACE_S + SOON_S


def test_of_many_requests_of_one_user_one_has_the_right_of_patience_in_each_such_time() -> None:
    """Of several requests of one user one has this right in each such time (6)."""
    file = '[qos.slow]\nwalltime="10 min"\npriority=50\npatience="20 min"\nshare_after="366 d"\n' + NO_SHARES
    busy = [opens(10 + n, f"i{n}", f"p{n % 2}", *[250] * 14, think=1, time=300) for n in range(4)]
    day = play(file, node("n", 2), busy, many(2, 200, "s", "q", 100, qos="slow", apart=1, user="u"), last=4000)
    begun = sorted(day.grants(name)[0] for name in names("s", 2))
    assert begun[0] <= 200 + 1200 + 300 + SOON_S
    assert begun[1] <= 201 + 2 * 1200 + 2 * 300 + SOON_S


@pytest.mark.parametrize("seed", range(2))
def test_large_and_small_ones_mixed_for_hours_starve_nobody(seed: int) -> None:
    """Nobody who may run is passed for longer than their patience, and then waits at most one walltime (6)."""
    draw = random.Random(seed)
    mixed = [
        opens(10 + n * 110, f"s{n}", f"p{n % 4}", draw.randint(60, 800), user=f"u{n}", time=900, gpus=size, closes_ms=0)
        for n, size in enumerate(draw.choices([1, 2, 4, 8], [2, 1, 1, 1], k=60))
    ]
    day = play("", node("n0", 8), node("n1", 8), mixed, last=3 * HOUR_S)
    assert day.waits(*names("s", 60)) <= 1800 + 900 + SOON_S


def test_three_deep_and_overcommitted_each_has_its_part() -> None:
    """All guarantees shrink in proportion, until they are what there is (the words, 7)."""
    file = (
        '[projects.fac]\nguaranteed=8\n[projects.d1]\nparent="fac"\nguaranteed=6\n'
        '[projects.d2]\nparent="fac"\nguaranteed=6\n[projects.l1]\nparent="d1"\nguaranteed=4\n'
        '[projects.l2]\nparent="d1"\nguaranteed=4\n[projects.out]\nguaranteed=4\n'
    )  # twice what there is: d1 is guaranteed 8, fac 14, and all 18
    came = {"out": 1, "l1": 200, "l2": 400, "d2": 600}
    people = [one for name, second in came.items() for one in many(9, second, f"{name}-", name, *[1700] * 3)]
    day = play(file, node("n", 9), people, last=4500)
    got = {name: day.gpu_s(f"{name}-", 1500, 4500) / 3000 for name in came}
    assert got == pytest.approx({"out": 2, "l1": 2, "l2": 2, "d2": 3}, abs=0.35)


@pytest.mark.parametrize("owners_cells", [1, 3])
def test_a_borrower_that_gave_back_gets_at_once_whatever_nobody_else_wants(owners_cells: int) -> None:
    """To have given back costs a place, not a GPU (4)."""
    comes = [one for n in range(owners_cells) for one in many(4, 200 + n * 300, f"c{n}-", "c", 50)]
    day = play(
        "[projects.c]\nguaranteed=4\n", node("n", 4), many(4, 10, "g", "g", 90_000, qos="batch"), comes,
        last=1300, delays=hi.Delays(ask_again_ms=100, evict_ms=1000),
    )  # fmt: skip
    over = 200 + (owners_cells - 1) * 300 + GRACE_S + 50
    assert day.running(over + 3 + 2 * SOON_S, "g") == 4


@pytest.mark.parametrize("think", [5, 100, 290])
def test_a_session_that_is_kept_hot_starts_each_cell_at_once(think: float) -> None:
    """For so long after its last cell a session keeps its GPU from those who borrow (5, quota file)."""
    day = play(
        '[projects.c]\nguaranteed=4\nkeep_hot="5 min"\n', node("n", 4), many(4, 10, "c", "c", *[30] * 5, think=think),
        many(4, 20, "g", "g", 90_000, qos="batch"), last=1500,
    )  # fmt: skip
    assert [len(day.grants(name)) for name in names("c", 4)] == [1] * 4
    assert not any(day.taken(name) for name in names("g", 4))


def test_only_as_many_are_kept_hot_as_the_guarantee_has_room_for_those_used_last() -> None:
    """Those used last, as many as its guarantee has room for beside its cells (5)."""
    day = play(
        '[projects.c]\nguaranteed=2\nkeep_hot="5 min"\n', node("n", 4), many(4, 10, "c", "c", 30, apart=1),
        many(4, 60, "g", "g", 90_000, qos="batch"), last=300,
    )  # fmt: skip
    assert day.running(65, "g") == 2
    assert {name for name in names("c", 4) if day.evicted(name)} == {"c0", "c1"}


def test_cells_on_cpus_wait_for_no_quota() -> None:
    """A cell that costs nothing waits for no quota (11)."""
    slots = at(0, hi.Joins(AgentId("n"), hi.gpus(1) + hi.cpu_slots(4), 8))
    day = play(
        "[projects.a]\nguaranteed=1\nborrow=false\nlimit=1\n", slots, opens(10, "a", "a", 600),
        many(4, 20, "c", "a", 600, gpus=0), last=1000,
    )  # fmt: skip
    assert day.waits(*names("c", 4)) <= SOON_S
