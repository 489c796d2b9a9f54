"""Each mutant still says which line of the scheduler it breaks."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.check import SCHEDULER, mutated

HERE = Path(__file__).parents[2]


@cache
def read(file: str) -> tuple[str, str]:
    """What a file says, and its meaning without comments."""
    text = (HERE / SCHEDULER / file).read_text()
    return text, ast.dump(ast.parse(text))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_mutant_is_one_edit_that_still_applies_and_is_python(mutant: Mutant) -> None:
    text, tree = read(mutant.file)
    assert text.count(mutant.old) == 1, f"write it anew after what {mutant.file} says now"
    assert ast.dump(ast.parse(mutated(text, mutant))) != tree


def test_mutants_are_many_and_have_names_of_their_own() -> None:
    assert len({one.name for one in MUTANTS}) == len({one[1:4] for one in MUTANTS}) == len(MUTANTS) >= 36
