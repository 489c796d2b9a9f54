"""What is said of a pool: words for people, not the codes that programs use."""

import pytest

from bulletin.codes import CellOutcome
from bulletin.pool_words import describe_outcome, state_words


@pytest.mark.parametrize("outcome", CellOutcome)
def test_how_a_cell_ended_is_said_in_words(outcome: CellOutcome) -> None:
    assert "-" not in describe_outcome(outcome)


def test_a_state_is_said_in_words_also_one_of_a_later_version() -> None:
    assert state_words("hot") == "kept ready"
    assert state_words("of a later version") == "of a later version"
