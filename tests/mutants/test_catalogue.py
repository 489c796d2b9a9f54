"""Each mutant still says which place of the scheduler it breaks."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.check import TESTS
from tests.mutants.edits import DoesNotApply, mutated
from tests.mutants.trial import SCHEDULER

HERE = Path(__file__).parents[2]

FORMATTED = """
class Account:
    def covers(self, cost):  # a comment
        if (
            self.used + cost  # another one
            <= self.guaranteed
        ):
            note("covered"); return True
        return False

    def is_full(self):
        return self.used + cost <= self.guaranteed
"""


@cache
def read(file: str) -> tuple[str, str]:
    """What a file says, and the same without comments."""
    text = (HERE / SCHEDULER / file).read_text()
    return text, ast.unparse(ast.parse(text)) + "\n"


def edit(old: str, new: str, within: str = "Account.covers") -> str:
    """Write the example with an edit in it."""
    return mutated(FORMATTED, Mutant("example", "account.py", within, old, new, ""))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_mutant_is_one_edit_that_still_applies_and_is_python(mutant: Mutant) -> None:
    text, plain = read(mutant.file)
    broken = mutated(text, mutant)  # where it does not apply, write it anew after what the file says now
    assert broken != plain
    compile(broken, mutant.file, "exec")


def test_mutants_are_many_and_have_names_of_their_own() -> None:
    assert len({one.name for one in MUTANTS}) == len({one[1:5] for one in MUTANTS}) == len(MUTANTS) >= 36


def test_what_is_to_notice_them_is_there() -> None:
    assert [name for name in TESTS if not (HERE / name).exists()] == []


def test_comments_line_breaks_and_other_functions_do_not_count() -> None:
    assert "if self.used + cost < self.guaranteed:" in edit(
        "(self.used + cost) <= self.guaranteed", "self.used + cost < self.guaranteed"
    )


def test_statements_that_follow_one_another_are_one_place() -> None:
    broken = edit("note('covered')\nreturn True", "return None")
    assert "return None" in broken
    assert "note" not in broken


def test_where_all_statements_go_nothing_is_done() -> None:
    assert "        pass\n" in edit("note('covered')\nreturn True", "")


@pytest.mark.parametrize(
    ("old", "within"),
    [
        ("self.used + cost <= self.guaranteed", ""),  # twice in the file
        ("self.used + cost <= self.guaranteed", "Account"),
        ("self.used + cost < self.guaranteed", "Account.covers"),
        ("self.used + cost <= self.guaranteed", "Account.covered"),
        ("self.used + cost <= self.guaranteed", "covers"),
    ],
)
def test_what_is_there_twice_or_not_at_all_does_not_apply(old: str, within: str) -> None:
    with pytest.raises(DoesNotApply):
        edit(old, "True", within)
