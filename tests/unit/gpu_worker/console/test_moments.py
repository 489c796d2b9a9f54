"""Times that people write at a command line."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from bulletin.errors import BadConfig
from gpu_worker.console.moments import ms_from_now, show_moment


def test_from_now_on_and_by_the_clock() -> None:
    assert ms_from_now("+2h", "--until") == 2 * 3_600_000
    later = datetime.now().astimezone() + timedelta(days=3)
    assert abs(ms_from_now(later.isoformat(timespec="minutes"), "--at") - 3 * 86_400_000) < 2 * 3_600_000 + 60_000


@pytest.mark.parametrize("text", ["", "+", "+0s", "tomorrow", "2020-01-01T08:00", "2026-13-01", "+2 weeks", "9" * 5000])
def test_what_is_no_time_or_has_passed_is_said_with_an_example(text: str) -> None:
    with pytest.raises(BadConfig, match="2026-12-01T08:00") as said:
        ms_from_now(text, "--at")
    assert len(str(said.value)) < 300


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A computer whose clock is not that of the pool's."""
    with monkeypatch.context() as here:
        here.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_a_moment_has_its_day_and_says_whose_clock_it_is() -> None:
    *day, clock, zone = show_moment(86_400_000).split()
    assert (len(day), len(clock)) == (3, 5)
    assert zone in ("CET", "CEST")
