"""What is left of a budget, from one day to the next, through new settings, and for all that is inside a project."""

import pytest

from bulletin.ids import AgentId
from gpu_worker.scheduler import events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import DAY_S, HOUR_S, MINUTE_S, Seen, at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas

CLUB = '[projects.club]\nbudget = "1 GPU-hours per day"\n'
INSIDE = CLUB + '[projects.one]\nparent = "club"\n[projects.two]\nparent = "club"\n'
#: Histories begin at nine.
MIDNIGHT_S = 15 * HOUR_S
NEVER = float("inf")


def ask(
    second: float, session: str, walltime_s: float, run_s: float = 0, project: str = "club", **more: object
) -> hi.At:
    more = {"closes_ms": 0, "walltime_ms": round(walltime_s * 1000), "qos": "batch"} | more
    return at(second, notebook(session, project, run_s or walltime_s, **more))


def play(text: str, *happenings: hi.At, last: float = 3 * HOUR_S, **delays: int) -> Seen:
    return look(quotas(text), nodes(1, 8), *happenings, last=last, **delays)


def test_what_runs_over_midnight_is_spent_on_both_days() -> None:
    seen = play(
        CLUB,
        ask(MIDNIGHT_S - 20 * MINUTE_S, "night", 45 * MINUTE_S, 40 * MINUTE_S),
        ask(MIDNIGHT_S + 1500, "long", 41 * MINUTE_S),
        ask(MIDNIGHT_S + 1501, "short", 39 * MINUTE_S),
        last=MIDNIGHT_S + DAY_S + 10,
    )
    assert seen.wait("short") <= 1
    assert seen.granted("long") == MIDNIGHT_S + DAY_S


def test_new_settings_give_no_budget_back() -> None:
    seen = play(
        CLUB,
        ask(1, "first", 45 * MINUTE_S, 40 * MINUTE_S),
        at(2500, hi.Changes(quotas(CLUB + "[projects.new]\nguaranteed = 1\n"))),
        ask(2600, "long", 21 * MINUTE_S),
        ask(2601, "short", 20 * MINUTE_S),
    )
    assert (seen.granted("long"), seen.wait("short")) == (NEVER, 0), "all that is left may be spent"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[projects.club]\n", CLUB),
        (CLUB.replace("day", "week"), CLUB),
        (CLUB + "[projects.one]\n[projects.two]\n", INSIDE),
    ],
)
def test_what_runs_when_a_budget_comes_to_it_has_spent_of_it_since_it_began(before: str, after: str) -> None:
    project = "one" if "one" in before else "club"
    seen = play(
        before,
        ask(1, "runs", 40 * MINUTE_S, project=project),
        at(1201, hi.Changes(quotas(after))),
        ask(1300, "long", 21 * MINUTE_S, project=project),
        ask(1400, "short", 20 * MINUTE_S, project=project),
    )
    assert (seen.granted("long"), seen.wait("short")) == (NEVER, 0)


def test_a_budget_is_of_all_that_is_inside() -> None:
    seen = play(
        INSIDE,
        ask(1, "first", 45 * MINUTE_S, 40 * MINUTE_S, "one"),
        ask(2500, "long", 21 * MINUTE_S, project="two"),
        ask(2501, "short", 20 * MINUTE_S, project="two"),
    )
    assert (seen.granted("long"), seen.wait("short")) == (NEVER, 0)


def test_a_cell_may_ask_for_the_whole_budget_and_no_more() -> None:
    seen = play(CLUB, ask(1, "more", 61 * MINUTE_S), ask(2, "all", 60 * MINUTE_S))
    assert seen.wait("all") == 0
    assert len(seen.refused("more")) == 1


def test_what_runs_keeps_the_rest_of_its_walltime_and_no_more() -> None:
    seen = play(
        CLUB,
        ask(1, "runs", 40 * MINUTE_S),
        ask(1201, "long", 21 * MINUTE_S),
        ask(1202, "short", 20 * MINUTE_S),
    )
    assert (seen.granted("long"), seen.wait("short")) == (NEVER, 0)


@pytest.mark.parametrize("projects", [("club", "club"), ("one", "one"), ("one", "two")])
def test_hot_sessions_leave_for_a_budget_and_no_more_than_it_takes(projects: tuple[str, str]) -> None:
    seen = play(
        INSIDE,
        *(ask(1 + n, f"hot{n}", 10 * MINUTE_S, 60, projects[0], closes_ms=None) for n in range(3)),
        ask(600, "other", 35 * MINUTE_S, 60, projects[1]),
        evict_ms=5000,
    )
    assert [len(seen.asked_to_leave(f"hot{n}")) for n in range(3)] == [1, 0, 0]
    left = next(when for when, event, _ in seen.log if isinstance(event, ev.LeaseEnded))
    assert 600 < left == seen.granted("other")


def test_a_shorter_time_starts_sooner_and_hot_sessions_stay_for_it() -> None:
    seen = play(
        CLUB,
        ask(1, "hot", 30 * MINUTE_S, 60, closes_ms=None),
        ask(600, "short", 20 * MINUTE_S, 60),
        last=2000,
    )
    assert seen.wait("short") == 0
    assert seen.asked_to_leave("hot") == []


def test_what_costs_nothing_waits_for_no_budget_and_no_guarantee() -> None:
    """The budget is spent, and a little more: the cell has its walltime from when it began."""
    cpus = {"gpus": 0, "project": "club"}
    seen = look(
        quotas(CLUB + "[projects.lab]\n"),
        at(0, hi.Joins(AgentId("n0"), (*hi.gpus(2), *hi.cpu_slots(4)))),
        ask(1, "all", 60 * MINUTE_S),
        at(2, notebook("borrows", "lab", 1700)),
        ask(100, "cpu", 10 * HOUR_S, **cpus),
        ask(101, "reserved", 10 * HOUR_S, project="lab", gpus=0, qos="reserved"),
        last=HOUR_S / 2,
        start_ms=30_000,
    )
    assert (seen.wait("all"), seen.wait("cpu"), seen.wait("reserved")) == (0, 0, 0)


def test_what_runs_keeps_the_price_that_was_agreed() -> None:
    seen = play(
        CLUB,
        ask(1, "runs", 40 * MINUTE_S),
        at(600, hi.Changes(quotas(CLUB + "[prices]\nA100 = 2.0\n"))),
        ask(700, "next", 10 * MINUTE_S),
    )
    assert seen.wait("next") == 0


def test_the_first_price_that_fits_counts() -> None:
    prices = '[prices]\n"NVIDIA A100" = 4.0\nNVIDIA = 1.0\n'
    seen = play(CLUB + prices, ask(1, "more", 16 * MINUTE_S), ask(2, "all", 15 * MINUTE_S))
    assert len(seen.refused("more")) == 1
    assert seen.wait("all") == 0


def test_a_week_begins_on_monday() -> None:
    seen = play(
        '[projects.club]\nbudget = "1 GPU-hours per week"\n',
        ask(1, "all", 60 * MINUTE_S),
        ask(2 * HOUR_S, "next", 60 * MINUTE_S),
        last=MIDNIGHT_S + 4 * DAY_S,
    )
    assert seen.granted("next") == MIDNIGHT_S + 3 * DAY_S


def test_who_waits_for_the_budget_of_an_outer_project_keeps_no_gpu_from_others() -> None:
    """What is left of `club` is too little for the next one of `two`, which has nothing to wait for: others have it."""
    seen = look(
        quotas(INSIDE + "[projects.far]\npriority = 5\n"),
        nodes(1, 2),
        ask(1, "first", 45 * MINUTE_S, 40 * MINUTE_S, "one"),
        ask(2, "runs", 2 * HOUR_S, project="far"),
        ask(2500, "holder", HOUR_S, project="far"),
        ask(2600, "long", 21 * MINUTE_S, project="two", qos="interactive"),
        ask(2601, "other", HOUR_S, project="two", qos="batch"),
        ask(2602, "short", 19 * MINUTE_S, project="two", qos="batch"),
        last=4 * HOUR_S,
    )
    assert seen.granted("long") == seen.granted("other") == NEVER
    assert seen.granted("short") == 2500 + HOUR_S
