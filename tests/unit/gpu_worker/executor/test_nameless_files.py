"""Files of the notebook whose names are no text, as old archives leave them."""

import os
from pathlib import Path

import pytest

from tests.unit.gpu_worker.executor.both_folders import Both


def test_a_file_whose_name_is_no_text_is_said_once_not_to_follow(both: Both) -> None:
    both.write({"data/plain.csv": "1"})
    try:
        for name in (b"caf\xe9.csv", b"na\xefve.csv"):
            (both.notebook / "data" / os.fsdecode(name)).write_text("1")
    except OSError:
        pytest.skip("the file system here takes no such names")
    both.begin()
    (note,) = both.run(lambda: None)
    assert note == (
        r"'data/caf\udce9.csv' and 1 more of the notebook's folder cannot follow a cell to a node that does not "
        "share it: a name there is no text."
    )
    assert sorted(path.name for path in both.mirror.here.rglob("*")) == ["data", "plain.csv"]
    both.begin()
    assert both.run(lambda: Path("data").stat()) == []
