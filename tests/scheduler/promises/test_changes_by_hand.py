"""What people change by hand reaches as far as they meant it to, and no further."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.one_gpu import ask
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas


def by_hand(second: float, session: str, what: str) -> hi.At:
    return at(second, hi.ByHand(session, what))  # type: ignore[arg-type]


def test_a_hot_session_has_no_cell_to_run_again() -> None:
    seen = look(quotas(""), nodes(1, 1), at(1, notebook("hot", "p", 60)), by_hand(100, "hot", "requeue"), last=200)
    assert seen.asked_to_leave("hot") == []


def test_more_time_is_for_the_cell_that_runs_and_not_for_the_next_one() -> None:
    """Who is not over in time does not pass the larger request."""
    seen = look(
        quotas("[projects.b]\npriority = 5\n"),
        nodes(1, 2),
        at(1, notebook("runs", "a", 60, 600, walltime_ms=600_000, closes_ms=0)),
        by_hand(10, "runs", "extend"),
        ask(70, "large", "b", 100, gpus=2),
        ask(80, "small", "c", 900, walltime_ms=900_000),
        last=2000,
    )
    assert seen.granted("large") == 661


def test_hot_sessions_leave_before_a_cell_that_they_begin_could_run_into_a_drain() -> None:
    seen = look(
        quotas(""),
        nodes(1, 2),
        at(1, notebook("hot", "p", 60, 60, think_s=50 * MINUTE_S, walltime_ms=1_200_000)),
        at(10, hi.PlansDrain(AgentId("n0"), HOUR_S * 1000 - 10_000)),
        last=2 * HOUR_S,
    )
    assert seen.asked_to_leave("hot")[0] <= 40 * MINUTE_S + 1


def test_more_time_is_within_the_budget_of_the_project() -> None:
    seen = look(
        quotas('[projects.p]\nbudget = "1 GPU-hours per day"\n'),
        nodes(1, 1),
        at(1, notebook("runs", "p", 3 * HOUR_S, walltime_ms=1_800_000, closes_ms=0)),
        [by_hand(minute * MINUTE_S, "runs", "extend") for minute in range(10, 20)],
        last=3 * HOUR_S,
    )
    assert HOUR_S / 2 < seen.gpu_seconds("p") <= HOUR_S + MINUTE_S


def test_nobody_takes_a_part_that_a_user_who_is_boosted_would_have_then() -> None:
    """The user who is boosted has both GPUs, and waits with a cell that never borrows; another one waits for a part."""
    seen = look(
        quotas(
            "[projects.p]\nguaranteed = 2\n"
            '[qos.quick]\nwalltime = "1 h"\npriority = 200\nshare_after = "10 s"\ngrace = "0 s"\nmin_runtime = "0 s"\n'
        ),
        nodes(1, 2),
        [at(1 + n, notebook(f"its{n}", "p", 3000, user="ann", qos="quick", closes_ms=0)) for n in range(2)],
        by_hand(90, "its0", "boost"),
        at(91, notebook("waits", "p", 60, user="ann", qos="reserved", closes_ms=0)),
        ask(100, "other", "p", 60, qos="quick"),
        last=500,
        ask_again_ms=0,
    )
    assert seen.asked_to_leave("its0") + seen.asked_to_leave("its1") == []


def test_nobody_takes_a_cell_of_a_user_who_is_boosted() -> None:
    """She would ask again, stand before whoever took it, and have it back, in turn."""
    seen = look(
        quotas(""),
        nodes(1, 1),
        at(1, notebook("runs", "p", 500, user="ann", qos="batch", closes_ms=0)),
        by_hand(3, "runs", "boost"),
        ask(100, "other", "p", 60, qos="interactive"),
        last=HOUR_S,
    )
    assert seen.asked_to_leave("runs") == [501], "when it is hot"
    assert seen.granted("other") == 501
