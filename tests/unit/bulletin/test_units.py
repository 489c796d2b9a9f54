"""Durations as people read them."""

import pytest

from bulletin.units import DAY_MS, HOUR_MS, MINUTE_MS, parse_duration_ms, show_duration


@pytest.mark.parametrize(
    ("duration_ms", "said"),
    [
        (80, "80 ms"),
        (4_250, "4.2 s"),
        (119_999, "119 s"),
        (90 * MINUTE_MS, "90 min"),
        (47 * HOUR_MS, "47 h"),
        (2 * DAY_MS, "2 days"),
        (188 * HOUR_MS, "7.8 days"),
        (20 * DAY_MS, "20 days"),
    ],
)
def test_a_duration_is_written_as_a_person_says_it(duration_ms: int, said: str) -> None:
    assert show_duration(duration_ms) == said
    assert parse_duration_ms(said) <= duration_ms, "who asks for what is said asks for no more than that"
