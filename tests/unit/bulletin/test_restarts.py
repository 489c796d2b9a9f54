"""A process that keeps dying is started again within a second, then less and less often; one that was well, soon."""

from bulletin.restarts import LONGEST_DELAY_S, RestartDelays


def test_the_delay_starts_within_a_second_and_doubles_to_a_limit() -> None:
    delays = RestartDelays(0.5, healthy_after_s=30)
    assert [delays.record_exit(lived_s=1) for _ in range(7)] == [0.5, 1, 2, 4, 8, LONGEST_DELAY_S, LONGEST_DELAY_S]
    assert not delays.was_healthy


def test_after_a_life_that_was_long_enough_the_delays_begin_anew() -> None:
    delays = RestartDelays(0.5, healthy_after_s=30)
    assert [delays.record_exit(lived_s) for lived_s in (30, 30, 31, 30)] == [0.5, 1, 0.5, 1]
    assert delays.was_healthy
