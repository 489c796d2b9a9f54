"""School days: classes after each other, class hours that overlap, who leaves at the bell and who stays."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import GRACE_S, SOON_S, YOUNG_S, at, many, names, node, opens, play


def hours(name: str, begin: str, end: str, gpus: int) -> str:
    return (
        f'[projects.{name}.class_hours.x]\ndays=["Mon"]\nfrom="{begin}"\nuntil="{end}"\n'
        f'time_zone="UTC"\nguaranteed={gpus}\n'
    )


@pytest.mark.parametrize(("gpus", "late", "run"), [(8, 7, 100), (8, 0, 290), (5, 61, 45)])
def test_each_of_three_classes_has_its_gpus_when_it_meets(gpus: int, late: float, run: float) -> None:
    """They are a guarantee like any other, and come back within the grace when somebody types (quotas, class hours)."""
    file = "".join(hours(f"c{n}", f"{8 + n:02d}:00", f"{9 + n:02d}:00", gpus) for n in range(3))
    classes = [many(gpus, n * 3600 + late, f"c{n}s", f"c{n}", *[run] * 5, think=40) for n in range(3)]
    lab = many(8, 1, "lab", "lab", 90_000, qos="batch")
    day = play(file, node("n0", 4), node("n1", 4), lab, *classes, last=2 * 3600 + 200)
    for n in range(3):
        assert day.waits(*names(f"c{n}s", gpus)) <= YOUNG_S + GRACE_S + SOON_S


def test_nobody_is_sent_home_at_the_bell() -> None:
    """When they end, what runs goes on."""
    day = play(hours("c", "08:00", "09:00", 4), node("n", 4), many(4, 3000, "c", "c", 1700), last=7200)
    assert not day.losers()
    assert [day.covered[name] for name in names("c", 4)] == [[(3000.0, True), (3600.0, False)]] * 4


@pytest.mark.parametrize("come", [3601, 3700, 4500])
def test_who_stays_after_the_bell_gives_back_to_who_comes(come: float) -> None:
    """The guarantee covers less from then on; the rest is borrowed, and goes back in the same way."""
    file = hours("c", "08:00", "09:00", 4) + "[projects.lab]\nguaranteed=2\n"
    day = play(
        file, node("n", 4), many(4, 3000, "c", "c", 1700), many(2, come, "lab", "lab", 600), last=7200
    )  # fmt: skip
    assert day.waits("lab0", "lab1") <= GRACE_S + SOON_S
    assert len(day.losers()) == 2


@pytest.mark.parametrize("come", [100, 900, 1790])
def test_who_never_borrows_waits_for_the_hour_and_knows_it(come: float) -> None:
    """It waits and is told when they begin: "the class hours of project 'cs101' begin at 10:00, in 25 min"."""
    day = play(
        hours("c", "08:30", "09:00", 2),
        node("n", 2),
        many(2, 10, "lab", "lab", 9000, qos="batch"),
        opens(come, "r", "c", 60, qos="reserved"),
        last=3600,
        asks=lambda second: second < 1800,
    )
    begun = day.grants("r")[0]
    assert 1800 <= begun <= 1800 + GRACE_S + SOON_S
    assert "begin at 08:30" in day.told["r"][0][1].reason
    assert all(said.wait_ms is None or second + said.wait_ms / 1000 + SOON_S >= begun for second, said in day.told["r"])


@pytest.mark.parametrize(("first", "second"), [(8, 8), (8, 4), (6, 6)])
def test_hours_that_overlap_shrink_in_proportion(first: int, second: int) -> None:
    """More may be guaranteed than there is: then all guarantees shrink in proportion (the words, 7)."""
    file = hours("a", "08:00", "10:00", first) + hours("b", "09:00", "11:00", second)
    day = play(
        file, node("n0", 4), node("n1", 4),
        many(8, 5, "a", "a", *[200] * 30, think=1), many(8, 3605, "b", "b", *[200] * 30, think=1),
        last=5700,
    )  # fmt: skip
    part = 8 * first / (first + second)
    assert day.gpu_s("a", 3900, 5700) / 1800 == pytest.approx(part, abs=0.6)


def test_a_department_is_guaranteed_what_its_courses_are_at_that_time() -> None:
    """A department is guaranteed at least what its courses are together at that time."""
    file = '[projects.dep]\nguaranteed=2\n[projects.c]\nparent="dep"\n' + hours("c", "08:10", "09:00", 6)
    guests = [node("n0", 4), node("n1", 4), *many(8, 5, "g", "guests", 9000, qos="batch")]
    day = play(file, guests, many(6, 601, "c", "c", 100), last=3600)
    assert day.waits(*names("c", 6)) <= GRACE_S + SOON_S
    day = play(file, guests, many(6, 100, "c", "c", 1000), last=3600)
    begun = sorted(day.grants(name)[0] for name in names("c", 6))
    assert sum(second <= 100 + GRACE_S + SOON_S for second in begun) == 2
    assert begun[5] <= 600 + GRACE_S + SOON_S


@pytest.mark.parametrize("leave_ms", [0, 2000])
def test_the_hot_leave_first_when_the_hour_begins(leave_ms: int) -> None:
    """Whoever waits in class takes GPUs back from those who borrow, hot sessions first."""
    day = play(
        hours("c", "08:10", "09:00", 4), node("n", 4),
        many(2, 5, "g", "guests", 9000, qos="batch"), many(2, 5, "hot", "guests", 20), many(4, 601, "c", "c", 1000),
        last=3600, delays=hi.Delays(evict_ms=leave_ms),
    )  # fmt: skip
    waits = sorted(day.wait(name) for name in names("c", 4))
    assert waits[1] <= leave_ms / 1000 + SOON_S
    assert waits[3] <= GRACE_S + leave_ms / 1000 + SOON_S


def test_a_session_that_never_borrows_leaves_when_the_hours_have_ended_its_guarantee() -> None:
    """It leaves when class hours have ended that, or when its cell is over after that (3)."""
    day = play(
        hours("c", "08:00", "09:00", 2), node("n", 4),
        opens(100, "hot", "c", 100, 100, think=4000, qos="reserved"),
        opens(3000, "runs", "c", 2000, 100, think=5, qos="reserved", time=7000),
        last=9000,
    )  # fmt: skip
    assert 3600 <= day.evicted("hot")[0] <= 3600 + SOON_S
    assert [(span.begin, span.end) for span in day.spans["runs"]] == [(3000, 5000)]


@pytest.mark.parametrize("back", ["returns", "starts anew"])
def test_a_node_that_flaps_costs_a_class_no_more_than_the_reclaim_time(back: str) -> None:
    """A covered request gets its GPUs within the reclaim time, wherever they can be had (1)."""
    again = hi.Returns(AgentId("n1")) if back == "returns" else hi.Joins(AgentId("n1"), hi.gpus(4))
    flaps = [
        one for n in range(10) for one in (at(100 + 60 * n, hi.GoesSilent(AgentId("n1"))), at(130 + 60 * n, again))
    ]
    day = play(
        "[projects.a]\nguaranteed=4\n", node("n0", 4), node("n1", 4), flaps,
        many(6, 10, "g", "g", *[300] * 20, think=1), many(4, 305, "a", "a", 900),
        last=3600, delays=hi.Delays(ask_again_ms=500),
    )  # fmt: skip
    assert day.waits(*names("a", 4)) <= YOUNG_S + GRACE_S + SOON_S
