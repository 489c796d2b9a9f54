"""Budgets at their edge: at midnight, with hot sessions, with a cell in its grace, at prices, in a department."""

from collections.abc import Callable, Collection

import pytest

from bulletin.ids import CellId
from gpu_worker.scheduler import events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import SOON_S, Day, many, node, opens, play

H100, L4 = "NVIDIA H100 80GB HBM3", "NVIDIA L4"
HOUR_S = 3600
PRICES = "[prices]\nH100 = 4.0\nL4 = 0.5\n"
PRICE_OF_NODE = {"fast": 4.0, "slow": 0.5, "mid": 1.0}
THREE_KINDS = [node("fast", 2, H100), node("slow", 2, L4), node("mid", 2)]


def spent(day: Day, projects: Collection[str], price: Callable[[str], float], first: float, last: float) -> float:
    """Add up GPU-hours at their price."""
    total = 0.0
    for session, spans in day.spans.items():
        if day.opened(session).project in projects:
            for span in spans:
                seconds = min(last, last if span.end is None else span.end) - max(first, span.begin)
                total += len(span.slots) * price(span.node) * max(0.0, seconds) / HOUR_S
    return total


def assert_kept(
    day: Day, projects: Collection[str], budget: float, midnight: float, price: Callable[[str], float] = lambda _: 1.0
) -> None:
    """A cell starts only if its whole walltime, with those of all that run, fits what is left (9)."""
    mine = [
        (span, (day.opened(session).walltime_ms or 1_800_000) / 1000)
        for session, spans in day.spans.items()
        if day.opened(session).project in projects
        for span in spans
    ]
    for one, _ in mine:
        begin = one.begin
        promised = sum(
            len(span.slots) * price(span.node) * max(0.0, span.begin + walltime - begin) / HOUR_S
            for span, walltime in mine
            if span.begin <= begin and (span.end is None or span.end > begin)
        )
        before = spent(day, projects, price, midnight if begin >= midnight else -1.0, begin)
        assert before + promised <= budget + 1e-6, one


@pytest.mark.parametrize(
    ("period", "begin"), [("day", "2026-12-02T23:10"), ("week", "2026-11-29T23:10"), ("month", "2026-11-30T23:10")]
)
def test_what_waits_for_the_next_period_starts_when_it_begins(period: str, begin: str) -> None:
    """Days, weeks from Monday and months begin at 0:00 UTC (quota file); nobody waits longer than "at most" (17)."""
    day = play(
        f'[projects.a]\nbudget="1 GPU-hours per {period}"\n', node("n", 4), many(4, 10, "a", "a", 1700, closes_ms=0),
        last=2 * HOUR_S, begin=begin, asks=lambda _: True,
    )  # fmt: skip
    begun = sorted(day.grants(f"a{n}")[0] for n in range(4))
    assert begun[:2] == [10, 10]
    assert all(3000 <= second <= 3000 + SOON_S for second in begun[2:])
    assert_kept(day, {"a"}, 1, 3000)
    for session, said in day.told.items():
        for second, words in said:
            assert words.wait_ms is None or second + words.wait_ms / 1000 + SOON_S >= day.grants(session)[0]


def test_a_cell_that_runs_over_midnight_counts_in_the_new_day() -> None:
    """Its whole walltime, with those of all that run, must fit (9)."""
    day = play(
        '[projects.a]\nbudget="1 GPU-hours per day"\n', node("n", 4),
        opens(10, "a", "a", 3500, qos="batch", time=3600), many(2, 300, "b", "a", 1200, time=1800),
        last=3 * HOUR_S, begin="2026-11-30T23:50",
    )  # fmt: skip
    assert not day.grants("b0") + day.grants("b1")
    assert_kept(day, {"a"}, 1, 600)


def test_a_hot_session_leaves_where_it_stands_in_a_budgets_way() -> None:
    """Hot sessions leave where they stand in the way (9)."""
    day = play(
        '[projects.a]\nbudget="1 GPU-hours per day"\n', node("n", 4),
        opens(10, "x", "a", 1200, time=1800), opens(2000, "y", "a", 1200, time=1800),
        last=8000, delays=hi.Delays(evict_ms=2000),
    )  # fmt: skip
    assert day.wait("y") <= 2 + SOON_S


@pytest.mark.parametrize("asks", [False, True], ids=["nobody asks", "for somebody who asks"])
def test_of_two_hot_sessions_one_leaves_where_a_budget_needs_no_more(asks: bool) -> None:
    """Nobody goes whose GPU is not needed (2), also while whoever goes takes a while."""
    others = [opens(150, "y", "a", 100, time=1500)] if asks else [opens(10, "x", "a", 1000, time=1200)]
    day = play(
        '[projects.a]\nbudget="1 GPU-hours per day"\n', node("n", 6), *others,
        opens(10, "first", "a", 100, time=1200), opens(12, "second", "a", 100, time=1200),
        opens(100, "guest", "b", *[1] * 60, think=1), last=600, delays=hi.Delays(evict_ms=60_000),
    )  # fmt: skip
    assert day.evicted("first")
    assert day.evicted("second") == []


@pytest.mark.parametrize(
    ("run", "think", "walltime", "notebooks"),
    [(50, 40, 900, 2), (200, 1, 1800, 4), (700, 1, 900, 2), (700, 400, 1800, 4)],
)
def test_hot_sessions_never_begin_what_the_budget_has_not(
    run: float, think: float, walltime: float, notebooks: int
) -> None:
    """Never overspent, with those of all that run and of the hot sessions (9)."""
    day = play(
        '[projects.a]\nbudget="1 GPU-hours per day"\n', node("n", 4),
        many(notebooks, 10, "a", "a", *[run] * 20, think=think, time=walltime),
        last=2 * HOUR_S, begin="2026-11-30T22:30",
    )  # fmt: skip
    assert_kept(day, {"a"}, 1, 5400)


@pytest.mark.parametrize(("budget", "think", "gpu_type"), [(2, 1, ""), (5, 60, "H100"), (5, 1, ""), (2, 60, "H100")])
def test_at_prices_of_types_too(budget: float, think: float, gpu_type: str) -> None:
    """A cell counts at the price that was agreed when it started (9)."""
    file = f'{PRICES}[projects.a]\nbudget="{budget} GPU-hours per day"\n[projects.b]\nguaranteed=1\n'
    day = play(
        file, THREE_KINDS,
        many(3, 10, "a", "a", *[300] * 12, think=think, time=1500),
        opens(50, "t", "a", *[300] * 12, think=think, time=600, gpu_type=gpu_type),
        many(3, 300, "b", "b", *[200] * 9, think=30),
        last=2 * HOUR_S, begin="2026-11-30T22:30",
    )  # fmt: skip
    assert_kept(day, {"a"}, budget, 5400, PRICE_OF_NODE.__getitem__)


def test_who_names_a_cheap_type_starts_and_who_names_none_reads_which_was_dear() -> None:
    """Whoever names no type is asked for the price of the dearest that it may get (9)."""
    file = PRICES + '[projects.club]\nbudget="1 GPU-hours per week"\n'
    day = play(
        file, THREE_KINDS[:2],
        opens(10, "u", "club", 60, time=1200), opens(20, "v", "club", 60, time=1200, gpu_type="L4"),
        last=100,
    )  # fmt: skip
    assert "at the price 4 of NVIDIA H100" in day.refused("u")[0]
    assert day.wait("v") == 0


@pytest.mark.parametrize(("students", "guests"), [(1, 3), (3, 1)])
def test_a_departments_budget_is_kept_by_all_in_it_together(students: int, guests: int) -> None:
    """What is left of the budget of its project and of each one that it is in (9)."""
    file = (
        '[projects.dep]\nbudget="2 GPU-hours per day"\n[projects.l1]\nparent="dep"\nbudget="1.5 GPU-hours per day"\n'
        '[projects.l2]\nparent="dep"\n'
    )
    day = play(
        file, node("n", 8), many(students, 10, "x", "l1", *[500] * 9, think=5, time=1200),
        many(guests, 60, "y", "l2", *[300] * 9, think=5, time=900), opens(100, "z", "dep", *[300] * 9, time=900),
        last=2 * HOUR_S, begin="2026-11-30T22:30",
    )  # fmt: skip
    assert_kept(day, {"dep", "l1", "l2"}, 2, 5400)
    assert_kept(day, {"l1"}, 1.5, 5400)


def test_a_shorter_time_starts_sooner() -> None:
    """A shorter `--time` starts sooner (9)."""
    file = '[projects.a]\nbudget="1 GPU-hours per day"\n'
    day = play(
        file, node("n", 4), many(2, 10, "x", "a", 1500, time=1800, closes_ms=0),
        opens(3100, "z", "a", 300, time=1800), opens(3110, "q", "a", 300, time=500), last=8000,
    )  # fmt: skip
    assert not day.grants("z")
    assert day.wait("q") == 0


def test_a_cell_that_lost_its_gpu_at_midnight_runs_again_on_the_new_days_budget() -> None:
    """A new period begins at 0:00 UTC, also for who is in grace then; "at most" is true (17)."""
    file = '[projects.a]\nguaranteed=1\n[projects.g]\nbudget="1 GPU-hours per day"\n'
    day = play(
        file, node("n", 1), opens(100, "x", "g", 3500, time=3000, qos="batch"), opens(585, "a", "a", 60),
        last=6000, begin="2026-11-30T23:50", asks=lambda _: True,
    )  # fmt: skip
    assert day.grants("x")[1] <= 585 + 30 + 60 + SOON_S
    for second, words in day.told["x"]:
        told = second + (words.wait_ms or 0) / 1000 + SOON_S
        assert words.wait_ms is None or any(second <= begun <= told for begun in day.grants("x"))


@pytest.mark.parametrize("more", [600, 1800, 3000])
def test_more_time_by_hand_is_within_the_budget(more: int) -> None:
    """More time for a running cell is within its project's budget (18)."""

    def extend(day: Day) -> None:
        lease = day.lease_of("a0")
        day.tell(ev.CellExtended(lease, CellId("a0/0/0"), more * 1000))
        known = day.driver.scheduler.state.leases[lease].more_ms
        next(iter(day.driver.agents.values())).held[lease].more_ms = known

    day = play(
        '[projects.a]\nbudget="2 GPU-hours per day"\n', node("n", 8),
        many(2, 10, "a", "a", 9000, time=1800), many(2, 1000, "b", "a", 1700, time=1800),
        last=8000, does=[(500, extend)],
    )  # fmt: skip
    assert spent(day, {"a"}, lambda _: 1.0, 0, 8000) <= 2 + 1e-6
