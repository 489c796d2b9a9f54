"""Random histories of limits in limits keep all promises, that of those who are late above all (6)."""

import pytest

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.driver import Driver
from tests.scheduler.promises.judge import Judge
from tests.scheduler.promises.late_limit_rule import LateLimitRule
from tests.scheduler.promises.random_nested_limits import limits_history, losing_nodes
from tests.scheduler.promises.reclaim_time import ReclaimTime

#: Histories in which somebody was passed.
MENDED = (90, 116, 169, 292, 505, 574)


def play_and_judge(history: hi.History) -> None:
    """Play a history: it keeps all promises."""
    judge = Judge(history, most=1)
    judge.rules.append(LateLimitRule(judge.report, ReclaimTime(history.delays)))
    Driver(history, judge).play()
    assert not judge.violations, f"seed {history.seed}: {judge.violations[0]}"


@pytest.mark.parametrize("seeds", [range(12), range(12, 24), MENDED])
def test_nobody_who_is_late_is_passed_at_a_limit(seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        play_and_judge(limits_history(seed))


@pytest.mark.parametrize("seeds", [range(600, 610), (448, 483)])
def test_nobody_who_is_late_is_passed_at_a_limit_where_nodes_are_lost(seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        play_and_judge(losing_nodes(limits_history(seed)))
