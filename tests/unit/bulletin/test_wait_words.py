"""Waits are told in the same words everywhere."""

import pytest

from bulletin.wait_words import describe_place, describe_rest, describe_wait, ordinal, wait_columns


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


def test_places_in_line_are_counted_as_people_count() -> None:
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 22, 103, 112)] == (
        ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "103rd", "112th"]
    )


def test_a_place_is_told_with_what_is_waited_for_how_long_and_why() -> None:
    assert describe_place(0, "a GPU", None, None, "") == "Getting a GPU ready."
    said = describe_place(2, "2 GPUs", 30_000, 720_000, "others are before you")
    assert said == "Waiting for 2 GPUs: 2nd in line, usually about 30 s, at most about 12 min. Others are before you."
