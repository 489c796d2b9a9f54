"""Somebody starts the agent of a node a second time, on the same host and in the same folder."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.clean_environ import clean_environ
from tests.integration.conftest import PATIENCE_S, Notebook, PoolProcess

WAITS = "%%gpu\nimport os, time\nprint('began')\nwhile not os.path.exists({gate!r}): time.sleep(0.02)\nprint('ended')"


def test_a_second_agent_waits_for_the_first_and_its_cells_go_on(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    pool, gate = start_pool("--slots", "1"), tmp_path / "gate"
    notebook = open_notebook(pool)
    message = notebook.start_until(WAITS.format(gate=str(gate)), shows="began")
    words = ["agent", "--folder", str(pool.folder), "--device", "cpu", "--isolation", "shared"]
    second = subprocess.Popen(
        [sys.executable, "-m", "gpu_worker.cli", *words],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environ(),
    )
    try:
        assert second.stderr is not None
        said = next(line for line in second.stderr if "another agent runs in this folder" in line)
        assert f"process={pool.part('agent').pid}" in said
        assert "end one of them" in said
        gate.touch()
        ran = notebook.collect(message)
        assert ran.error is None, ran.shown
        assert ran.stream() == "ended\n", "it goes on where it was"
    finally:
        second.terminate()
        second.communicate(timeout=PATIENCE_S)
