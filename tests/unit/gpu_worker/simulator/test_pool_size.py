"""The search for the fewest GPUs."""

from typing import cast

import pytest
from hypothesis import given, strategies as st

from gpu_worker.simulator.pool_size import Play, find_fewest, find_fewest_for_all
from gpu_worker.simulator.run_report import RunReport


class Weeks:
    """Weeks that need so many GPUs; counts how often each number was tried."""

    def __init__(self, *needs: int) -> None:
        self.needs = needs
        self.tried: list[int] = []

    def play(self, week: int) -> Play:
        def on(gpus: int) -> RunReport:
            self.tried.append(gpus)
            return cast("RunReport", _Run(gpus, gpus >= self.needs[week]))

        return on


class _Run:
    def __init__(self, gpus: int, is_good: bool) -> None:
        self.gpus, self.is_good = gpus, is_good


def is_good(run: RunReport) -> bool:
    return cast("_Run", run).is_good


@given(st.integers(1, 120), st.integers(1, 100), st.one_of(st.none(), st.integers(1, 120)))
def test_the_fewest_are_found_wherever_the_search_begins(need: int, most: int, guess: int | None) -> None:
    weeks = Weeks(need)
    found = find_fewest(weeks.play(0), is_good, most, guess)
    assert found.gpus == min(need, most)
    assert is_good(found) == (need <= most)
    assert len(weeks.tried) == len(set(weeks.tried)) <= 15
    if 1 < need <= most:
        assert need - 1 in weeks.tried  # it was seen to fall short


def test_a_good_guess_saves_runs() -> None:
    near, far = Weeks(57), Weeks(57)
    find_fewest(near.play(0), is_good, 300, guess=56)
    find_fewest(far.play(0), is_good, 300)
    assert len(near.tried) == 2 < len(far.tried)


@pytest.mark.parametrize(("needs", "guess", "gpus"), [((5, 9, 7), 9, 9), ((5, 9, 7), 6, 9), ((5, 40, 7), 38, 38)])
def test_what_suffices_for_all_is_found_from_what_one_needs(needs: tuple[int, ...], guess: int, gpus: int) -> None:
    weeks = Weeks(*needs)
    runs = find_fewest_for_all([weeks.play(at) for at in range(3)], is_good, most=38, guess=guess)
    assert [run.gpus for run in runs] == [gpus] * 3
