# ruff: noqa: E501, PT018  # settings and histories in one line each
"""Prices at the edge of budgets, and nodes that are to be drained at a time: from the page alone."""

import random

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at, nodes, notebook
from tests.scheduler.promises.stories import (
    BATCH_S,
    LONG,
    POOL,
    ask,
    charged,
    join,
    left,
    look,
    places,
    priced,
    quotas,
    reserve,
    waits,
)


def test_price_exactly_at_the_edge_runs_and_below_is_refused() -> None:
    cells = [*ask(10, 1, "club", 60, name="any"), *ask(3000, 1, "club", 60, gpu_type="L4", name="cheap")]
    seen = look(priced("2"), join(), cells, last=2 * HOUR_S)
    assert seen.wait("any0") <= 2
    seen = look(priced("1.999"), join(), cells, last=2 * HOUR_S)
    assert "price 4" in seen.refused("any0")[0]
    assert seen.wait("cheap0") <= 2


def test_price_what_runs_on_cheap_ones_leaves_budget_for_more() -> None:
    seen = look(
        priced("4"), join(),
        ask(1, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(10, 3, "club", 1800),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "club")[-1] <= SOON_S, "two on L4 count 0.25 each, 3.5 is left and 2 is asked for"


def test_price_hot_sessions_leave_where_they_stand_in_the_way() -> None:
    seen = look(
        priced("2"), join(),
        ask(10, 1, "club", 10, 10, gpu_type="H100", name="hot", think_s=3000, walltime_ms=1_700_000),
        ask(100, 1, "club", 60, gpu_type="H100", name="new", walltime_ms=1_700_000),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert seen.wait("new0") <= 5


def test_price_that_rises_holds_for_the_next_cell_of_a_session_only() -> None:
    seen = look(
        priced("4"), join(),
        ask(10, 1, "club", 1500, 1500, 1500, 1500, gpu_type="L4", think_s=5),
        at(600, hi.Changes(priced("4", prices="H100 = 4.0\nL4 = 8.0\n"))),
        last=3 * HOUR_S,
    )  # fmt: skip
    hours = seen.gpu_seconds("club") / 3600
    assert hours <= 1500 / 3600 + (4 - 0.21) / 8 + 0.02, hours


@pytest.mark.parametrize("seed", range(6))
def test_price_no_budget_is_overspent(seed: int) -> None:
    draw = random.Random(seed)
    text = (
        '[projects.dep]\nbudget = "9 GPU-hours per day"\n[projects.club]\nparent = "dep"\nguaranteed = 2\n'
        'budget = "6 GPU-hours per day"\n[projects.team]\nparent = "dep"\n[prices]\nH100 = 4.0\nL4 = 0.5\n'
        + reserve("exam", "team", 3, "09:30", "11:00", "team1", "team2", "team3")
    )
    opened = []
    for n in range(40):
        name = draw.choice(("club", "team", "guests"))
        runs = [draw.choice((20, 300, 1000)) for _ in range(draw.randint(1, 5))]
        opened.append(at(draw.uniform(1, 7000), notebook(
            f"{name}{n}", name, *runs, think_s=draw.choice((5, 60)), gpu_type=draw.choice(("", "H100", "L4")),
            qos=draw.choice(("interactive", "interactive", "batch")), user=f"{name}{n % 7}",
            gpus=draw.choice((1, 1, 2)), walltime_ms=draw.choice((600_000, 1_200_000)),
        )))  # fmt: skip
    seen = look(quotas(text), join(), opened, last=3 * HOUR_S)
    prices = {"fast": 4.0, "slow": 0.5}
    club, team = (charged(seen, name, prices) for name in ("club", "team"))
    assert club <= 6.01 and club + team <= 9.01, (club, team)
    assert club + team >= 3, "and it is used"


def test_drain_at_a_time_who_cannot_end_there_takes_nothing_and_who_can_has_it() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n"), join(),
        ask(1, 8, "guests", BATCH_S, **LONG),
        at(300, hi.PlansDrain(AgentId("fast"), 40 * MINUTE_S * 1000)),
        ask(600, 2, "lab", BATCH_S, gpu_type="H100", name="long", **LONG),
        ask(610, 2, "lab", 500, gpu_type="H100", name="short", walltime_ms=600_000),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "short")[-1] <= SOON_S
    assert waits(seen, "long")[0] > HOUR_S
    assert left(seen, "guests") == 2


def test_drain_at_a_time_beside_class_hours() -> None:
    text = (
        '[projects.course]\n[projects.course.class_hours.lecture]\ndays = ["Thu"]\nfrom = "09:10"\nuntil = "09:50"\n'
        'guaranteed = 4\ntime_zone = "UTC"\n[projects.lab]\nguaranteed = 2\n'
    )
    seen = look(
        quotas(text), nodes(2, 4),
        ask(1, 8, "guests", BATCH_S, **LONG),
        at(2, hi.PlansDrain(AgentId("n0"), 30 * MINUTE_S * 1000)),
        ask(300, 4, "course", *[120] * 20, think_s=10, walltime_ms=300_000),
        ask(700, 2, "lab", BATCH_S, **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert max(seen.granted(f"course{n}") for n in range(4)) <= 600 + SOON_S
    assert waits(seen, "lab")[-1] <= SOON_S
    assert seen.gpu_seconds("course", 700, 1700) >= 4 * 1000 * 0.85
    # at 1800 s n0 is gone; six are guaranteed of four: 2.67 and 1.33
    assert seen.gpu_seconds("lab", 1900, 2900) >= 0.97 * 1000


@pytest.mark.parametrize("quota", ["limit = 1\n", "guaranteed = 1\nborrow = false\n"])
def test_drain_at_a_time_who_cannot_end_before_keeps_no_limit_from_others(quota: str) -> None:
    """The usual walltime is half an hour: from then on before the drain, who names none waits for another node."""
    seen = look(
        quotas(f'[qos.interactive]\npatience = "3 min"\n[projects.club]\n{quota}'), nodes(1, 4),
        ask(1, 1, "club", 100, walltime_ms=600_000),
        at(2, hi.PlansDrain(AgentId("n0"), 30 * MINUTE_S * 1000)),
        ask(20, 1, "club", 60, name="long"),
        ask(60, 1, "club", *[60] * 30, name="brief", think_s=5, walltime_ms=300_000, **LONG),
        last=30 * MINUTE_S,
    )  # fmt: skip
    assert seen.wait("brief0") <= 40 + SOON_S
    assert seen.gpu_seconds("club", 110, 1400) >= 0.9 * 1290
    assert not left(seen, "")
    assert len(places(seen, "brief")) == 1, "nothing that it keeps hot is taken for who cannot start"


def test_drain_at_a_time_idles_nothing_for_who_is_over_by_then() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\nlending_limit = 4\n"), join(),
        at(1, hi.PlansDrain(AgentId("fast"), HOUR_S * 1000)),
        ask(5, 6, "lab", BATCH_S, gpu_type="H100", **LONG),
        ask(6, 1, "lab", BATCH_S, gpu_type="H100", gpus=4, name="large", **LONG),
        ask(10, 4, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(20, 6, "other", *[280] * 30, name="brief", walltime_ms=300_000),
        last=3000,
    )  # fmt: skip
    assert seen.idle_share(8, 30, 3000) <= 0.02
    assert not seen.gpu_seconds("lab")


def test_drain_at_a_time_of_the_node_of_a_reservation() -> None:
    seen = look(
        quotas("[projects.cs]\n" + reserve("exam", "cs", 2, "09:10", "11:00", "ann") + "[projects.lab]\nguaranteed = 2\n"),
        nodes(2, 2),
        ask(1, 4, "guests", BATCH_S, **LONG),
        at(2, hi.PlansDrain(AgentId("n0"), 50 * MINUTE_S * 1000)),
        ask(610, 2, "cs", BATCH_S, user="ann", name="ann", walltime_ms=3_600_000, **LONG),
        ask(700, 2, "lab", 1000, walltime_ms=1_200_000),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann")[-1] <= SOON_S
    assert waits(seen, "lab")[-1] <= SOON_S, "they could surely be over in time on the other node"
    assert left(seen, "ann") == 0


def test_drain_at_a_time_of_the_node_of_a_reservation_in_the_other_order() -> None:
    """Short cells in quota stand on the node that stays; long ones that are guaranteed as much come later."""
    seen = look(
        quotas("[projects.cs]\n" + reserve("exam", "cs", 2, "09:10", "11:00", "ann") + "[projects.lab]\nguaranteed = 2\n"),
        nodes(2, 2),
        ask(1, 2, "lab", 1700, 1700, gpus=1),
        ask(2, 2, "guests", BATCH_S, **LONG),
        at(3, hi.PlansDrain(AgentId("n1"), 50 * MINUTE_S * 1000)),
        ask(610, 2, "cs", BATCH_S, user="ann", name="ann", walltime_ms=7_200_000, **LONG),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert left(seen, "lab") == 0, "in quota"
