"""What people write becomes no formula where a spreadsheet opens it, whatever separates its fields there."""

import csv
import io
import re

import pytest
from hypothesis import given, settings, strategies as st

from gpu_worker.csv_fields import defuse

#: As fields begin, for spreadsheets of whatever country: by comma, semicolon or tab, with spaces or quotes before.
_RUNS = re.compile('^[\\s"]*[=+@\uff1d\uff0b\uff20-]')


@given(st.text(st.sampled_from("=+-@\uff1d ;,\t\r\n\"'ab")))
@settings(deadline=None)
def test_nothing_that_anybody_writes_is_run(text: str) -> None:
    out = io.StringIO(newline="")
    csv.writer(out).writerow(["1", defuse(text), "2"])
    for field in re.split("[;,\t\r\n]", out.getvalue()):
        assert not _RUNS.match(field), field


@pytest.mark.parametrize("text", ["", "week 3", "a;b", "x = 1", "a-b, c+d", "2026-11-01", "ann@example.org", "é"])
def test_what_runs_nowhere_stays_as_it_is(text: str) -> None:
    assert defuse(text) == text
