"""The division of GPUs, as arithmetic: what adds up, who gets what, and what is forgotten."""

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from gpu_worker.scheduler.shares import HOUR_MS, Claim, Used, divide, whole

CLAIMS = st.lists(
    st.builds(Claim, st.integers(0, 8000), st.integers(0, 20_000), st.integers(1, 9), st.integers(0, 2)),
    min_size=1,
    max_size=8,
)
AMOUNT = st.integers(0, 40_000)


def test_weights_three_to_one_split_the_surplus_three_to_one() -> None:
    assert divide(8000, [Claim(2000, 8000, 3), Claim(2000, 8000, 1)]) == [5000, 3000]


def test_an_unused_guarantee_goes_to_who_asks() -> None:
    assert divide(8000, [Claim(4000, 1000, 1), Claim(4000, 9000, 1)]) == [1000, 7000]


def test_what_one_cannot_use_goes_on_to_the_others_by_weight() -> None:
    assert divide(10_000, [Claim(0, 1000, 8), Claim(0, 9000, 2), Claim(0, 9000, 1)]) == [1000, 6000, 3000]


def test_the_higher_priority_takes_of_the_surplus_first_and_no_guarantee() -> None:
    assert divide(6000, [Claim(2000, 9000, 1, 0), Claim(0, 3000, 1, 5)]) == [3000, 3000]
    assert divide(6000, [Claim(2000, 9000, 1, 0), Claim(0, 9000, 1, 5)]) == [2000, 4000]


def test_guarantees_that_do_not_fit_are_cut_in_proportion() -> None:
    assert divide(3000, [Claim(4000, 4000, 1), Claim(2000, 2000, 1)]) == [2000, 1000]
    assert divide(0, [Claim(0, 0, 1)]) == [0]


@given(AMOUNT, CLAIMS)
def test_shares_add_up_and_nobody_gets_more_than_is_asked_for(amount: int, claims: list[Claim]) -> None:
    shares = divide(amount, claims)
    assert sum(shares) == min(amount, sum(claim.demand for claim in claims))
    assert all(0 <= share <= claim.demand for share, claim in zip(shares, claims, strict=True))


@given(AMOUNT, CLAIMS)
def test_a_guarantee_is_in_the_share_as_far_as_it_is_asked_for(amount: int, claims: list[Claim]) -> None:
    promised = [min(claim.guaranteed, claim.demand) for claim in claims]
    if sum(promised) <= amount:
        assert all(share >= part for share, part in zip(divide(amount, claims), promised, strict=True))


@given(AMOUNT, CLAIMS)
def test_among_equals_nobody_who_wants_more_has_less_surplus_a_weight(amount: int, claims: list[Claim]) -> None:
    shares = divide(amount, claims)
    if sum(min(claim.guaranteed, claim.demand) for claim in claims) >= amount:
        return
    surplus = [
        (share - min(claim.guaranteed, claim.demand)) / claim.weight
        for share, claim in zip(shares, claims, strict=True)
    ]
    for one, poor in enumerate(claims):
        for other, rich in enumerate(claims):
            if shares[one] < poor.demand:
                if poor.priority == rich.priority:
                    assert surplus[one] >= surplus[other]
                elif poor.priority > rich.priority:
                    assert surplus[other] == 0


@given(AMOUNT, st.integers(0, 9000), CLAIMS)
def test_with_more_to_divide_nobody_gets_less(amount: int, more: int, claims: list[Claim]) -> None:
    before, after = divide(amount, claims), divide(amount + more, claims)
    assert all(one <= other for one, other in zip(before, after, strict=True))


@given(AMOUNT, CLAIMS)
def test_whole_shares_are_whole_near_and_add_up(amount: int, claims: list[Claim]) -> None:
    shares = divide(amount, claims)
    rounded = whole(shares, 1000)
    assert sum(rounded) == int(sum(shares)) // 1000 * 1000
    assert all(part % 1000 == 0 for part in rounded)
    assert all(abs(part - share) < 1000 for part, share in zip(rounded, shares, strict=True))


def test_the_largest_remainder_is_rounded_up() -> None:
    assert whole([Fraction(1400), Fraction(1700), Fraction(900)], 1000) == [1000, 2000, 1000]


def test_use_counts_half_after_a_week_and_not_at_all_in_the_end() -> None:
    used = Used()
    used.add(1_000_000, 5 * HOUR_MS)
    assert used.at(5 * HOUR_MS) == 1_000_000
    assert used.at(173 * HOUR_MS) == 500_000
    assert used.at(5 * HOUR_MS + 84 * HOUR_MS) == pytest.approx(1_000_000 / 2**0.5, rel=1e-4)
    used.add(500_000, 173 * HOUR_MS)
    assert used.at(173 * HOUR_MS) == 1_000_000
    assert used.at(10_000 * HOUR_MS) == 0


@given(st.lists(st.integers(0, 3 * HOUR_MS * 168), min_size=2, max_size=5).map(sorted))
def test_old_use_never_grows(times: list[int]) -> None:
    used = Used()
    used.add(10**12, times[0])
    left = [used.at(time) for time in times]
    assert left == sorted(left, reverse=True)
