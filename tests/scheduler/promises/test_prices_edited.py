"""Prices in the quota file are changed while people wait: nobody waits for what never comes."""

import pytest

from tests.scheduler.promises.played import SOON_S, changes, node, opens, play

TWO_HOURS = '[prices]\nA100={}\n[projects.a]\nbudget="2 GPU-hours per day"\n'


@pytest.mark.parametrize("asked", [{"time": 1800}, {}], ids=["asked", "of the class"])
def test_who_waits_and_became_too_dear_for_the_whole_budget_is_refused_at_once(asked: dict[str, float]) -> None:
    """A request whose walltime is more than the whole budget is refused (9); each refusal says why (15)."""
    day = play(
        TWO_HOURS.format(1), node("n", 1), opens(10, "x", "b", 1800), opens(20, "w", "a", 1800, **asked),
        changes(300, TWO_HOURS.format(3)), changes(600, TWO_HOURS.format(5)), last=2500,
        asks=lambda second: second > 20,
    )  # fmt: skip
    [why] = day.refused("w")
    assert "at the price 5 of NVIDIA A100 for 30 min is more than the 2 GPU-hours that project 'a' has" in why
    assert max(second for second, _ in day.told["w"]) < 600
    assert not day.grants("w")


def test_who_waits_and_became_no_dearer_than_the_whole_budget_goes_on_waiting() -> None:
    """Who is not more than the whole budget runs, at the price that was agreed when it started (9)."""
    day = play(
        TWO_HOURS.format(1), node("n", 1), opens(10, "x", "b", 1800), opens(20, "w", "a", 1800),
        changes(300, TWO_HOURS.format(4)), last=2500,
    )  # fmt: skip
    assert not day.refused("w")
    assert 1810 <= day.grants("w")[0] <= 1810 + SOON_S
