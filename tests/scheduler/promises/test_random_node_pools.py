"""Random histories of node pools with owners keep promise 20."""

import pytest

from tests.scheduler.promises.driver import Driver
from tests.scheduler.promises.pool_rule import PoolJudge
from tests.scheduler.promises.random_node_pools import pools_history


@pytest.mark.parametrize("part", range(2))
def test_whoever_owns_a_part_of_a_node_pool_has_it_in_time_and_nobody_is_on_another_ones_node(part: int) -> None:
    for seed in range(part * 12, (part + 1) * 12):
        judge = PoolJudge(pools_history(seed))
        Driver(judge.history, judge).play()
        assert not judge.violations, f"seed {seed}: {judge.violations[0]}"
