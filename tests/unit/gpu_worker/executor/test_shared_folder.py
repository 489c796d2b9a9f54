"""Whether a node shares the notebook's folder, where others may write to that, too."""

import os
from pathlib import Path

import pytest

from bulletin.wire.messages import FolderProbe
from gpu_worker.executor.notebook_folders import is_shared

CELL = "0123456789abcdef"


@pytest.fixture
def token(tmp_path: Path) -> Path:
    return tmp_path / ".bulletin-token"


def find_out(token: Path) -> bool:
    return is_shared(FolderProbe(path=str(token.parent), token=token.name), CELL)


def test_a_folder_is_shared_in_which_is_what_the_notebook_has_just_put_there(token: Path) -> None:
    assert not find_out(token)
    token.write_text(CELL)
    assert find_out(token)


def test_what_others_put_there_under_that_name_is_not_taken_for_it_and_not_waited_for(token: Path) -> None:
    os.mkfifo(token)
    assert not find_out(token)
    token.unlink()
    token.write_text(CELL + "x" * 1000)
    assert not find_out(token)
    token.rename(token.with_name("other"))
    token.with_name("other").write_text(CELL)
    token.symlink_to(token.with_name("other"))
    assert not find_out(token)
