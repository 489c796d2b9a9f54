"""Budgets, limits and lending limits hold."""

import msgspec
import pytest

from bulletin.ids import AgentId
from bulletin.units import HOUR_MS
from gpu_worker.scheduler.policy.projects import Budget, Project, QoS, SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, crowd, keeps_all
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook, see
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, look, quotas

#: Tuesday, 7 October 2025, 0:00 UTC.
_MIDNIGHT_MS = 1_759_795_200_000


def _with_budget(hours: int, period: str) -> SchedulerSettings:
    budget = Budget(hours * HOUR_MS, period)  # type: ignore[arg-type]
    return SchedulerSettings(projects=(Project(id="lab", budget=budget),))  # type: ignore[arg-type]


def test_sixty_cells_do_not_overspend_a_budget_of_one_hour() -> None:
    seen = see(
        _with_budget(1, "day"),
        nodes(10, 6),
        [at(1, one) for one in crowd(60, "lab", 1790)],
        last=HOUR_S,
        begin_ms=_MIDNIGHT_MS,
    )
    assert seen.gpu_seconds("lab") <= HOUR_S + 60 * 60
    assert seen.gpu_seconds("lab") >= HOUR_S / 2
    keeps_all(seen)


def test_what_no_budget_could_pay_is_refused() -> None:
    seen = see(
        _with_budget(1, "day"), nodes(1, 8), at(1, notebook("large", "lab", 9000, qos="long", gpus=8)), last=HOUR_S
    )
    assert len(seen.refused("large")) == 1
    assert "1 GPU-hour" in seen.refused("large")[0]


def test_a_budget_of_a_week_holds_for_batch() -> None:
    seen = see(
        _with_budget(200, "week"),
        nodes(2, 8),
        [at(1, one) for one in crowd(16, "lab", *[23 * HOUR_S] * 3, qos="batch")],
        last=3 * 24 * HOUR_S,
        begin_ms=_MIDNIGHT_MS,
    )
    assert 100 * HOUR_S <= seen.gpu_seconds("lab") <= 200 * HOUR_S + 16 * 60
    keeps_all(seen)


def test_a_new_budget_is_noticed_by_the_timer_alone() -> None:
    seen = see(
        _with_budget(1, "day"),
        nodes(1, 2),
        at(1, notebook("first", "lab", 1700)),
        at(1900, notebook("second", "lab", 1700)),
        at(1901, notebook("third", "lab", 1000)),
        last=4 * HOUR_S,
        begin_ms=_MIDNIGHT_MS - 2 * HOUR_S * 1000,
    )
    assert seen.granted("third") <= 2 * HOUR_S + 2


def test_who_waits_asks_for_as_much_of_a_budget_as_new_settings_let_a_cell_run() -> None:
    longer, shorter = (
        msgspec.structs.replace(
            _with_budget(2, "day"), qos=(QoS(name="batch", priority=100, walltime_ms=ms, queued_per_user=4),)
        )
        for ms in (2 * HOUR_MS, HOUR_MS)
    )
    seen = see(
        longer,
        nodes(1, 2),
        at(1, notebook("first", "lab", 600, qos="batch")),
        at(2, notebook("second", "lab", 600, qos="batch")),
        at(60, hi.Changes(shorter)),
        last=HOUR_S,
    )
    assert seen.granted("second") <= 601 + 2


@pytest.mark.parametrize("limit", [1, 2])
def test_the_limit_of_a_project_that_never_borrows_counts(limit: int) -> None:
    inside = [Project(id=f"p{n}", parent="d", guaranteed_milli=1000) for n in range(3)]  # type: ignore[arg-type]
    around = Project(id="d", limit_milli=limit * 1000, can_borrow=False)  # type: ignore[arg-type]
    seen = see(
        SchedulerSettings(projects=(around, *inside)),
        nodes(1, 4),
        [at(1 + n, notebook(f"s{n}", f"p{n}", 600)) for n in range(3)],
        last=500,
    )
    assert max(sum(now.values()) for _, now in seen.running()) == limit


def test_what_a_lending_limit_keeps_is_there_at_once() -> None:
    keeps = Project(id="p1", guaranteed_milli=1000, lending_limit_milli=0)  # type: ignore[arg-type]
    seen = see(
        SchedulerSettings(projects=(keeps,)),
        at(0, hi.Joins("n0", hi.gpus(1))),  # type: ignore[arg-type]
        at(0, hi.Joins("n1", hi.gpus(3, "NVIDIA L4", 24 * hi.GB))),  # type: ignore[arg-type]
        [at(1, one) for one in crowd(3, "p2", 1700, gpu_type="L4")],
        at(100, notebook("two", "p1", 600, gpus=2, gpu_type="L4")),
        at(101, notebook("any", "p2", 1700)),
        at(110, notebook("mine", "p1", 600)),
        last=HOUR_S,
    )
    assert seen.wait("mine") <= 2
    keeps_all(seen)


def test_what_a_limit_keeps_for_who_has_waited_for_their_patience_is_not_kept_twice_while_room_is_made() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 3\nlimit = 4\n"),
        [at(0, hi.Joins(AgentId(name), hi.gpus(gpus))) for name, gpus in (("n0", 2), ("n1", 1))],
        ask(1, 1, "guests", 9 * HOUR_S, name="other", **LONG),
        ask(2, 1, "lab", BATCH_S, name="own", **LONG),
        ask(3, 1, "guests", 9 * HOUR_S, name="guest", **LONG),
        ask(100, 1, "lab", 600, name="large", gpus=2, **LONG),
        ask(BATCH_S + 3, 1, "lab", 600, name="small", **LONG),
        last=6 * HOUR_S,
    )  # fmt: skip
    assert seen.granted("large0") <= BATCH_S + 2 + SOON_S
    assert seen.wait("small0") <= SOON_S
    keeps_all(seen)
