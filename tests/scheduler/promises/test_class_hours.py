"""Class hours are a guarantee like any other from when they begin until they end, by the clock on the wall."""

import pytest

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import keeps_all
from tests.scheduler.promises.seen import DAY_S, HOUR_S, Seen, at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas

#: Histories begin on Thursday, the 9th of October, at nine; the lecture is from ten to eleven.
TEN_S, ELEVEN_S = HOUR_S, 2 * HOUR_S
LONG = 11 * HOUR_S


def hours(name: str = "lecture", gpus: int = 2, begin: str = "10:00", end: str = "11:00", more: str = "") -> str:
    return (
        f'[projects.cs.class_hours.{name}]\ndays = ["Mon", "Thu"]\nfrom = "{begin}"\nuntil = "{end}"\n'
        f"guaranteed = {gpus}\n" + (more or 'time_zone = "UTC"\n')
    )


def batch(second: float, session: str, project: str, run_s: float = LONG, **more: object) -> hi.At:
    return at(second, notebook(session, project, run_s, **({"qos": "batch", "closes_ms": 0} | more)))


def play(text: str, *happenings: hi.At, gpus: int = 2, begin: float = 0, last: float = 3 * HOUR_S) -> Seen:
    """Guests fill the pool; somebody of the class asks for a GPU half an hour later."""
    guests = [batch(begin + 1 + n, f"guest{n}", "guests") for n in range(gpus)]
    asks = batch(begin + 100, "cs", "cs")
    return look(
        quotas('[qos.batch]\nwalltime = "1 d"\nshare_after = "1 d"\n' + text),
        nodes(1, gpus),
        guests,
        asks,
        *happenings,
        last=begin + last,
    )


def test_they_begin_when_the_clock_says_so_though_nothing_happens() -> None:
    seen = play(hours())
    assert seen.asked_to_leave("guest1") == [TEN_S]


@pytest.mark.parametrize(("day", "is_on"), [("2025-10-08", False), ("2025-10-09", True)])
def test_they_end_with_their_last_day(day: str, *, is_on: bool) -> None:
    seen = play(hours(more=f'time_zone = "UTC"\nlast_day = "{day}"\n'))
    assert bool(seen.asked_to_leave("guest1")) == is_on


def test_where_two_overlap_the_larger_one_counts() -> None:
    seen = play(hours("small", 1) + hours(), batch(200, "cs2", "cs"))
    assert seen.asked_to_leave("guest0") == seen.asked_to_leave("guest1") == [TEN_S]


@pytest.mark.parametrize(("day", "begins"), [(0, TEN_S), (18, ELEVEN_S)])
def test_they_are_by_the_clock_on_the_wall_in_winter_as_in_summer(day: int, begins: float) -> None:
    """The clocks are set back before the 18th day after the first."""
    zone = 'time_zone = "Europe/Berlin"\n'
    seen = play(hours(begin="12:00", end="13:00", more=zone), begin=day * DAY_S)
    assert seen.asked_to_leave("guest1") == [day * DAY_S + begins]


def test_who_may_run_in_them_alone_waits_for_them_and_is_refused_when_the_last_are_over() -> None:
    text = "[projects.cs]\nborrow = false\n" + hours(gpus=1, more='time_zone = "UTC"\nlast_day = "2025-10-09"\n')
    seen = play(text, batch(200, "late", "cs"))
    assert seen.granted("cs") == TEN_S + 30
    assert len(seen.refused("late")) == 1


def test_what_runs_when_they_begin_is_covered_until_they_end() -> None:
    """A cell that is never taken back has the third GPU."""
    fixed = '[qos.fixed]\nwalltime = "1 d"\npreemption = "never"\n'
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\n" + fixed + hours()),
        nodes(1, 3),
        batch(1, "far", "far", qos="fixed"),
        [batch(2 + n, f"cs{n}", "cs") for n in range(2)],
        batch(TEN_S + 100, "lab", "lab", 1000),
        last=ELEVEN_S + 100,
    )
    assert seen.asked_to_leave("cs1") == [ELEVEN_S]
    assert seen.granted("lab") == ELEVEN_S + 30


@pytest.mark.parametrize("small", [1, 200])
def test_what_the_department_pays_for_in_them_does_not_borrow_beside_other_cells_of_the_course(small: float) -> None:
    """Two GPUs are the course's in its hours; a cell that never borrows has all three of the department."""
    calm = '[qos.calm]\npriority = 150\nwalltime = "2 h"\nmust_be_in_quota = true\n'
    projects = '[projects.dep]\nguaranteed = 3\n[projects.cs]\nparent = "dep"\n[projects.owner]\nguaranteed = 1\n'
    seen = look(
        quotas(calm + projects + hours(begin="08:00")),
        nodes(1, 4),
        batch(small, "small", "cs"),
        at(100, notebook("large", "cs", 3000, qos="calm", gpus=3)),
        at(300, notebook("owner", "owner", 600)),
        last=HOUR_S,
    )
    assert (seen.asked_to_leave("large"), seen.asked_to_leave("small")) == ([], [300])
    keeps_all(seen)
