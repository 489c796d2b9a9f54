"""The table of what may be tried names tests that are there."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
PAGE = (HERE / "docs" / "explanation" / "trust.md").read_text()
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")][2:]
NAMED = sorted({(file, test) for row in ROWS for file, test in re.findall(r"`(tests/[^`:]+)::([^`]+)`", row[2])})
#: What nothing holds, and the limits below the table say so.
OPEN = ["Who has the pool runs code in notebooks"]


def test_each_row_says_what_shows_it() -> None:
    assert len(ROWS) > 30
    assert [len(row) for row in ROWS] == [4] * len(ROWS)
    assert [row[0] for row in ROWS if "::" not in row[2]] == OPEN


@pytest.mark.parametrize(("file", "test"), NAMED, ids=lambda word: word.rpartition("/")[2])
def test_a_test_that_it_names_is_there(file: str, test: str) -> None:
    functions = [one for one in ast.walk(ast.parse((HERE / file).read_text())) if isinstance(one, ast.FunctionDef)]
    assert test in {one.name for one in functions}
