"""All that cells leave in a folder is found, whatever they have made there beside it."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_worker.executor.folder_walk import walk


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[int]:
    """So many folders in each other, more than calls of Python go deep; with a file beside and one at the bottom."""
    depth, at = 1_100, Path.cwd()
    os.chdir(tmp_path)
    Path("made").touch()
    for _ in range(depth):
        Path("z").mkdir()
        os.chdir("z")
    Path("bottom").touch()
    os.chdir(at)
    yield depth
    subprocess.run(["rm", "-rf", tmp_path / "z"], check=True)  # pytest does not come to the end of it


def test_folders_in_folders_deeper_than_calls_go_hide_nothing(tmp_path: Path, deep: int) -> None:
    unread: list[str] = []
    found = [one.path for one in walk(tmp_path, is_followed=lambda _: True, unread=unread)]
    assert len(found) == deep + 2
    assert "made" in found
    assert found[-1] == "z/" * deep + "bottom"
    assert found.index("z") < found.index("z/z"), "a folder comes before what is in it"
    assert unread == []
