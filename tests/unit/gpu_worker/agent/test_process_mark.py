"""By what an agent knows the processes that an earlier life of it has left, and no others."""

import os
import subprocess
from pathlib import Path

from gpu_worker.agent.executor_process import MARK, kill_marked
from gpu_worker.agent.node_agent import make_process_mark
from gpu_worker.config import Pool, PoolSettings


def settings(folder: Path) -> PoolSettings:
    return Pool(folder=str(folder), slots=1).settings()


def start_marked(mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "10000"], env={**os.environ, MARK: f"{mark}/lease"})


def test_an_agent_ends_what_its_earlier_life_left_and_nothing_of_another_pools_at_the_same_path(tmp_path: Path) -> None:
    """As two containers have it that see each other's processes: each has a folder of its own there."""
    folder = tmp_path / "pool"
    folder.mkdir()
    own = make_process_mark(settings(folder))
    folder.rename(tmp_path / "of the other container")
    folder.mkdir()
    others = make_process_mark(settings(folder))
    left, foreign = start_marked(own), start_marked(others)
    try:
        assert kill_marked(own) == 1
        assert left.wait(60) == -9
        assert foreign.poll() is None
    finally:
        for process in (left, foreign):
            process.kill()
            process.wait()


def test_it_is_the_same_in_each_life(tmp_path: Path) -> None:
    assert make_process_mark(settings(tmp_path)) == make_process_mark(settings(tmp_path))
