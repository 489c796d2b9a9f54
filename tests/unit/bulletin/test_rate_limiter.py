"""Who says too much is not heard for a while, and others are."""

from bulletin.rate_limiter import RateLimiter


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def heard(limiter: RateLimiter[str], key: str, tries: int) -> int:
    """Of so many messages at once, how many are heard."""
    count = 0
    for _ in range(tries):
        if limiter.has_credit(key):
            limiter.charge(key, 1)
            count += 1
    return count


def test_a_burst_is_heard_and_then_so_much_a_second() -> None:
    clock = Clock()
    limiter: RateLimiter[str] = RateLimiter(8, 32, clock)
    assert heard(limiter, "eve", 1000) == 32
    clock.now_s += 2
    assert heard(limiter, "eve", 1000) == 16
    assert heard(limiter, "bob", 5) == 5
    clock.now_s += 100
    assert heard(limiter, "eve", 1000) == 32, "no more than the bucket holds"


def test_what_costs_much_is_paid_back_before_more_is_heard() -> None:
    clock = Clock()
    limiter: RateLimiter[str] = RateLimiter(8, 32, clock)
    limiter.charge("eve", 100)  # 12.5 s, and 4 s are allowed
    clock.now_s += 8.4
    assert not limiter.has_credit("eve")
    clock.now_s += 0.2
    assert limiter.has_credit("eve")


def test_who_is_not_heard_is_told_once_a_second() -> None:
    clock = Clock()
    limiter: RateLimiter[str] = RateLimiter(8, 32, clock)
    assert [limiter.take_telling("eve") for _ in range(3)] == [True, False, False]
    clock.now_s += 1.1
    assert limiter.take_telling("eve")


def test_who_is_quiet_takes_no_memory() -> None:
    clock = Clock()
    limiter: RateLimiter[int] = RateLimiter(8, 32, clock)
    for key in range(1000):
        limiter.charge(key, 1)
        limiter.take_telling(key)
    clock.now_s += 5
    limiter.charge(1000, 1)
    limiter.tidy()
    assert [len(kept) for kept in (limiter._full_at_s, limiter._told_s)] == [1, 0]
