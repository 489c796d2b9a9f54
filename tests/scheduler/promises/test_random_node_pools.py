"""Random histories of node pools with owners keep promise 20."""

import pytest

from tests.scheduler.promises.driver import Driver
from tests.scheduler.promises.pool_rule import PoolJudge
from tests.scheduler.promises.random_node_pools import pools_history

#: Histories in which an owner had what is guaranteed too late.
MENDED = (245,)


@pytest.mark.parametrize("seeds", [range(12), range(12, 24), MENDED])
def test_whoever_owns_a_part_of_a_node_pool_has_it_in_time_and_nobody_is_on_another_ones_node(
    seeds: tuple[int, ...],
) -> None:
    for seed in seeds:
        judge = PoolJudge(pools_history(seed))
        Driver(judge.history, judge).play()
        assert not judge.violations, f"seed {seed}: {judge.violations[0]}"
