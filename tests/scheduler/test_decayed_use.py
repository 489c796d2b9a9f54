"""Use in the past, as arithmetic: what of it counts, and what is forgotten."""

import pytest
from hypothesis import given, strategies as st

from bulletin.units import HOUR_MS
from gpu_worker.scheduler.policy.decayed_use import DecayedUse


def test_use_counts_half_after_a_week_and_not_at_all_in_the_end() -> None:
    used = DecayedUse()
    used.add(1_000_000, 5 * HOUR_MS)
    assert used.at(5 * HOUR_MS) == 1_000_000
    assert used.at(173 * HOUR_MS) == 500_000
    assert used.at(5 * HOUR_MS + 84 * HOUR_MS) == pytest.approx(1_000_000 / 2**0.5, rel=1e-4)
    used.add(500_000, 173 * HOUR_MS)
    assert used.at(173 * HOUR_MS) == 1_000_000
    assert used.at(10_000 * HOUR_MS) == 0


@given(st.lists(st.integers(0, 3 * HOUR_MS * 168), min_size=2, max_size=5).map(sorted))
def test_old_use_never_grows(times: list[int]) -> None:
    used = DecayedUse()
    used.add(10**12, times[0])
    left = [used.at(time) for time in times]
    assert left == sorted(left, reverse=True)
