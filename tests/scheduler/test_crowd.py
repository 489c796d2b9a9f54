"""Busy pools, each from a seed, judged step by step until everybody was served."""

import pytest

from tests.scheduler.crowd import KINDS, crowd


@pytest.mark.parametrize("kind", KINDS)
def test_a_crowd_is_served_as_it_was_promised(kind: str) -> None:
    pool = crowd(kind)
    pool.live(seed=2, kind=kind, moves=120)
    pool.teardown()
    done = {type(action).__name__ for _, _, actions in pool.bench.journal for action in actions}
    assert {"Grant", "Evict", "Refuse"} <= done, "it was not busy"
