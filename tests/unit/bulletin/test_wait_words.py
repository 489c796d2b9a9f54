"""Waits are told in the same words everywhere."""

import pytest

from bulletin.wait_words import describe_rest, describe_wait, wait_columns


@pytest.mark.parametrize(
    ("usual_ms", "most_ms", "said", "columns"),
    [
        (30_000, 720_000, "usually about 30 s, at most about 12 min", ("30 s", "12 min")),
        (None, 720_000, "at most about 12 min", ("not known", "12 min")),
        (30_000, None, "usually about 30 s", ("30 s", "not known")),
        (None, None, "", ("not known", "not known")),
        (30_000, 20_000, "at most about 20 s", ("not known", "20 s")),
        (900, 20_000, "at most about 20 s", ("not known", "20 s")),
        (500, 900, "", ("not known", "900 ms")),
    ],
)
def test_what_is_known_of_a_wait_is_said_where_it_says_something(
    usual_ms: int | None, most_ms: int | None, said: str, columns: tuple[str, str]
) -> None:
    assert describe_wait(usual_ms, most_ms) == said
    assert describe_rest(usual_ms, most_ms) == (f"; from now on {said}" if said else "")
    assert wait_columns(usual_ms, most_ms) == columns
