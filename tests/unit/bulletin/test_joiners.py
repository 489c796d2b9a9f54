"""Joiners stay where a name is written with them, and nowhere else."""

import pytest

from bulletin.joiners import joins

#: Each with joiners where they have their place.
WRITTEN = (
    "\U0001f469\u200d\U0001f52c",  # a scientist
    "\U0001f469\U0001f3fd\u200d\U0001f52c",  # of some colour of skin
    "\u2764\ufe0f\u200d\U0001f525",  # a heart on fire
    "\u0915\u094d\u200d\u0937",  # a half form in Devanagari
    "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # as in Sri Lanka, in Sinhala
    "\u0645\u06cc\u200c\u0631\u0648\u0645",  # Persian
)


def joined(words: str) -> list[bool]:
    return [joins(words, at) for at, letter in enumerate(words) if letter in "\u200c\u200d"]


@pytest.mark.parametrize("words", WRITTEN, ids=ascii)
def test_a_joiner_of_a_word_as_people_write_it_stays(words: str) -> None:
    assert joined(words) == [True]


@pytest.mark.parametrize(
    "words",
    ["ad\u200dmin", "\u200dada", "ada\u200c", "\U0001f469\u200d", "\U0001f469\u200d ", "\U0001f469\u200dx"],
    ids=ascii,
)
def test_one_that_only_makes_a_name_look_like_another_does_not(words: str) -> None:
    assert joined(words) == [False]


def test_of_two_in_a_row_none_stays() -> None:
    assert joined("\U0001f469\u200d\u200d\U0001f52c") == [False, False]


def test_no_other_letter_is_one() -> None:
    assert not any(joins(words, at) for words in ("abc", "\u202eabc", "a\u200bb") for at in range(len(words)))
