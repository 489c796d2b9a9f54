"""A place that is kept between cells (`--keep`) is one cell that goes on: who waits behind it, and for how long."""

import pytest

from bulletin.ids import AgentId
from bulletin.units import MINUTE_MS
from gpu_worker.scheduler import events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import keeps_all
from tests.scheduler.promises.played import SOON_S, Day, at, node, opens, play, quotas
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, see

#: A class that never borrows, lets its cells keep what they have for an hour in all, and gives it back where asked.
STUDIO = (
    '[qos.studio]\npriority = 150\nwalltime = "1 h"\nmust_be_in_quota = true\nkeep = "20 min"\nrunning_per_user = 1\n'
)
LAB = STUDIO + "[projects.lab]\nguaranteed = 1\n[projects.guests]\n"
KEEP_MS = 20 * MINUTE_MS
#: For an hour and more: a cell of ten seconds, and a minute to read it.
CELLS = [10.0] * 60


def keeps(second: float, session: str, project: str = "lab", *, think: float = 60, **more: object) -> hi.At:
    """Make a notebook that runs a cell each minute or so, and keeps its place between them."""
    more = {"qos": "studio", "keep_ms": KEEP_MS, **more}
    return opens(second, session, project, *CELLS, think=think, **more)


def end_of(day: Day, session: str) -> float:
    """Find when a notebook let its first GPU go."""
    lease = next(event.lease for _, event, _ in day.log if isinstance(event, ev.CellStarted) and session in event.lease)
    return next(at for at, event, _ in day.log if isinstance(event, ev.LeaseEnded) and event.lease == lease)


def test_it_is_over_after_the_walltime_in_all_whatever_runs_there() -> None:
    day = play(LAB, node("a", 1), keeps(0, "kim"), last=2 * HOUR_S)
    assert end_of(day, "kim") == pytest.approx(HOUR_S, abs=SOON_S)


def test_it_is_over_when_no_cell_has_run_for_as_long_as_it_is_kept() -> None:
    day = play(LAB, node("a", 1), opens(0, "kim", "lab", 10, qos="studio", keep_ms=KEEP_MS), last=HOUR_S)
    assert end_of(day, "kim") == pytest.approx(10 + 20 * MINUTE_S, abs=SOON_S)


def test_who_waits_behind_it_is_told_when_it_is_over_however_many_cells_begin_there() -> None:
    day = play(
        LAB, node("a", 1), keeps(0, "kim"), opens(600, "eve", "guests", 60), last=2 * HOUR_S,
        asks=lambda second: second % 300 < 60,
    )  # fmt: skip
    assert end_of(day, "kim") + SOON_S > 600 + day.wait("eve") > HOUR_S - SOON_S
    for second, told in day.told["eve"]:
        assert told.wait_ms is not None
        assert second + told.wait_ms / 1000 == pytest.approx(HOUR_S, abs=SOON_S), f"at {second} s"


def test_nobody_is_let_past_a_larger_request_who_could_be_there_when_a_kept_place_is_over() -> None:
    seen = see(
        quotas(LAB),
        node("a", 2),
        keeps(0, "kim"),
        opens(0, "one", "guests", 50 * MINUTE_S, qos="batch", time=50 * MINUTE_S),
        opens(60, "big", "guests", 60, qos="batch", gpus=2),
        opens(52 * MINUTE_S, "small", "guests", 25 * MINUTE_S, time=25 * MINUTE_S, qos="batch"),
        opens(53 * MINUTE_S, "tiny", "guests", 60, time=120, qos="batch"),
        last=2 * HOUR_S,
    )
    assert seen.granted("big") == pytest.approx(HOUR_S, abs=SOON_S)
    assert seen.granted("tiny") < 54 * MINUTE_S  # it is over before that
    assert seen.granted("small") > HOUR_S
    keeps_all(seen)


@pytest.mark.parametrize("think", [1, 30])
def test_a_higher_class_has_it_after_one_min_runtime_not_one_for_each_cell(think: float) -> None:
    text = LAB + '[qos.studio2]\npriority = 300\nwalltime = "30 min"\n'
    seen = see(
        quotas(text),
        node("a", 1),
        opens(0, "kim", "lab", *[20.0] * 90, think=think, qos="studio", keep_ms=KEEP_MS),
        opens(150, "ann", "lab", 60, qos="studio2"),
        last=HOUR_S,
    )
    assert seen.wait("ann") < 30 + SOON_S
    keeps_all(seen)


def test_an_owner_has_what_class_hours_no_longer_cover_within_the_grace() -> None:
    """The place was covered by class hours, which end: from then on it is borrowed, and its owner asks."""
    hours = (
        '[projects.lab.class_hours.lecture]\ndays = ["Mon"]\nfrom = "08:00"\nuntil = "08:30"\nguaranteed = 1\n'
        'time_zone = "UTC"\n'
    )
    firm = '[qos.firm]\npriority = 100\nwalltime = "2 h"\npreemption = "never"\n'
    text = STUDIO + firm + "[projects.lab]\n" + hours + "[projects.owner]\nguaranteed = 1\n[projects.guests]\n"
    day = play(
        text, node("a", 2), opens(0, "kim", "lab", *[20.0] * 300, think=5, qos="studio", keep_ms=KEEP_MS),
        opens(1, "eve", "guests", 2 * HOUR_S, qos="firm"), opens(31 * MINUTE_S, "ann", "owner", 60), last=HOUR_S,
    )  # fmt: skip
    assert day.wait("ann") < 30 + SOON_S


def test_others_of_a_project_with_a_budget_start_beside_what_it_may_yet_use() -> None:
    """A day's budget of two GPU-hours: fifty minutes are used, ten are kept, and an hour is there for somebody else."""
    text = STUDIO + '[projects.lab]\nguaranteed = 2\nbudget = "2.1 GPU-hours per day"\n'
    seen = see(
        quotas(text), node("a", 2), keeps(0, "kim"), opens(50 * MINUTE_S, "ann", "lab", 60, time=HOUR_S, qos="batch"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert seen.wait("ann") < SOON_S
    keeps_all(seen)


def test_it_ends_when_it_would_have_whatever_becomes_of_the_link_to_its_node() -> None:
    day = play(
        LAB, node("a", 1), keeps(0, "kim"), opens(600, "eve", "guests", 60),
        at(20 * MINUTE_S, hi.Returns(AgentId("a"))), at(40.5 * MINUTE_S, hi.Returns(AgentId("a"))),
        last=2 * HOUR_S, asks=lambda second: second > 20 * MINUTE_S and second % 600 < 60,
    )  # fmt: skip
    assert end_of(day, "kim") == pytest.approx(HOUR_S, abs=SOON_S)
    assert day.told["eve"]
    for second, told in day.told["eve"]:
        assert told.wait_ms is not None
        assert second + told.wait_ms / 1000 == pytest.approx(HOUR_S, abs=SOON_S)


def test_who_gives_a_kept_place_back_stands_where_the_first_cell_there_stood() -> None:
    """Tom asked before the cell that is taken back, and after the first one of its place."""
    day = play(
        LAB + '[qos.first]\npriority = 300\nwalltime = "10 min"\n',
        node("a", 1),
        opens(0, "kim", "lab", *[20.0] * 15, 1000, think=10, qos="studio", keep_ms=KEEP_MS),
        opens(5 * MINUTE_S, "tom", "lab", 60, qos="studio"),
        opens(10 * MINUTE_S, "ann", "lab", 120, qos="first"),
        last=HOUR_S,
    )
    [(second, _)] = day.taken("kim")
    assert second == pytest.approx(10 * MINUTE_S, abs=SOON_S)
    assert day.grants("kim")[1] == pytest.approx(10 * MINUTE_S + 30 + 120, abs=2 * SOON_S)
    assert day.grants("tom")[0] > day.grants("kim")[1]
