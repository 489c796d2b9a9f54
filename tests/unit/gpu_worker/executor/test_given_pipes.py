"""Who forks as root gives a user the pipes that an agent has made, and nothing else that it passes on."""

import os
from pathlib import Path

import pytest

from gpu_worker.executor.environment import give_pipes

ANYBODY = 65_534


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give anything away")
def test_pipes_become_the_users_and_files_do_not(tmp_path: Path) -> None:
    secret, named = tmp_path / "secret", tmp_path / "named"
    secret.write_text("of root")
    os.mkfifo(named)
    ends = os.pipe()
    opened = [os.open(secret, os.O_RDONLY), os.open(named, os.O_RDWR)]
    try:
        give_pipes([*ends, *opened], ANYBODY)
        assert {os.fstat(end).st_uid for end in ends} == {ANYBODY}
        assert {os.fstat(one).st_uid for one in opened} == {0}
    finally:
        for one in (*ends, *opened):
            os.close(one)
